package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deadletteroffice/dlo/internal/config"
)

func TestLinks(t *testing.T) {
	t.Parallel()
	c, err := load(t, `
links:
  - {name: Trace, url: "https://tempo.example/trace/{trace_id}"}
  - name: Logs
    url: http://grafana:3000/explore?q=%7B{header.x-tenant}%7D&from={from_ms}#{queue}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := []config.Link{
		{Name: "Trace", Parts: []config.LinkPart{{Text: "https://tempo.example/trace/"}, {Value: "trace_id"}}},
		{
			Name: "Logs",
			Parts: []config.LinkPart{
				{Text: "http://grafana:3000/explore?q=%7B"},
				{Value: "header.x-tenant"},
				{Text: "%7D&from="},
				{Value: "from_ms"},
				{Text: "#"},
				{Value: "queue"},
			},
		},
	}
	if diff := cmp.Diff(want, c.Links); diff != "" {
		t.Error(diff)
	}
	const wanted = "an address such as https://tempo.example/trace/{trace_id} is wanted here"
	link := func(address string) string { return `links: [{name: a, url: "` + address + `"}]` }
	for _, c := range []struct {
		name, text string
		want       []place
	}{
		{
			"an unknown placeholder",
			link("https://a/{tarce}"),
			[]place{{1, 24, "there is no placeholder {tarce}; there are {trace_id}, {b3_trace_id}, {queue}"}},
		},
		{"an open brace", link("https://a/{trace_id"), []place{{1, 24, "there is no placeholder {trace_id}"}}},
		{"a header without a name", link("https://a/{header.}"), []place{{1, 24, "there is no placeholder {header.}"}}},
		{
			"another scheme",
			link("javascript:alert({queue})"),
			[]place{{1, 24, "a placeholder may only come after the host"}},
		},
		{"another scheme with a host", link("ftp://a/{queue}"), []place{{1, 24, wanted}}},
		{"no scheme", link("//a/x"), []place{{1, 24, wanted}}},
		{
			"a host of the letter",
			link("https://{queue}/x"),
			[]place{{1, 24, "a placeholder may only come after the host"}},
		},
		{
			"a part of the host",
			link("https://a.{queue}/x"),
			[]place{{1, 24, "a placeholder may only come after the host"}},
		},
		{
			"a port of the letter",
			link("https://a:{queue}/x"),
			[]place{{1, 24, "a placeholder may only come after the host"}},
		},
		{"a user", link("https://u:p@a/{queue}"), []place{{1, 24, wanted}}},
		{"a space", link("https://a/ {queue}"), []place{{1, 24, wanted}}},
		{"a closing brace", link("https://a/}"), []place{{1, 24, wanted}}},
		{"no name", `links: [{url: "https://a/"}]`, []place{{1, 9, "a link needs a name and a url"}}},
		{"no url", `links: [{name: a}]`, []place{{1, 9, "a link needs a name and a url"}}},
		{
			"an unknown key",
			`links: [{name: a, url: "https://a/", to: b}]`,
			[]place{{1, 38, `there is no key "to" in links`}},
		},
		{
			"two of a name",
			`links: [{name: a, url: "https://a/"}, {name: a, url: "https://b/"}]`,
			[]place{{1, 39, "two links with the name a"}},
		},
		{"too many", "links:\n" + nine, []place{{10, 5, "more than 8 links"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, c.text)
			mistakes(t, err, c.want)
		})
	}
}

const nine = "  - {name: 1, url: \"https://a/\"}\n  - {name: 2, url: \"https://a/\"}\n  - {name: 3, url: \"https://a/\"}\n  - {name: 4, url: \"https://a/\"}\n  - {name: 5, url: \"https://a/\"}\n  - {name: 6, url: \"https://a/\"}\n  - {name: 7, url: \"https://a/\"}\n  - {name: 8, url: \"https://a/\"}\n  - {name: 9, url: \"https://a/\"}\n"
