package web_test

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web"
)

// linksTo returns the URLs of the configured links on the page of a letter, by name.
func linksTo(t *testing.T, page string) map[string]string {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	list := map[string]string{}
	for n := range root.Descendants() {
		attributes := map[string]string{}
		for _, a := range n.Attr {
			attributes[a.Key] = a.Val
		}
		if n.Data == "a" && attributes["target"] == "_blank" {
			if attributes["rel"] != "noreferrer noopener" {
				t.Errorf("%v", n.Attr)
			}
			list[n.FirstChild.Data] = attributes["href"]
		}
	}
	return list
}

// configuredLinks returns the links in the text of a configuration.
func configuredLinks(t *testing.T, text string) []config.Link {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dlo.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(path, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	return c.Links
}

func TestLinksIntoOtherTools(t *testing.T) {
	t.Parallel()
	links := configuredLinks(t, `
links:
  - {name: trace, url: "https://tempo.example/trace/{trace_id}"}
  - {name: b3, url: "https://zipkin.example/zipkin/traces/{b3_trace_id}"}
  - {name: header, url: "https://a.example/p/{header.x-tenant}/q?x={header.X-Tenant}&y=1#{header.x-tenant}"}
  - {name: place, url: "https://a.example/?q={queue}&v={vhost}&b={broker}&g={group}&m={message_id}&n={header.tries}"}
  - {name: time, url: "https://a.example/?from={from}&to={to}&f={from_ms}&t={to_ms}"}
  - {name: joined, url: "https://a.example/.{header.dot}/x"}
  - {name: none, url: "https://a.example/{correlation_id}"}
`)
	h := open(t, func(o *web.Options) { o.Links = links })
	show := func(headers deadletter.Table) map[string]string {
		t.Helper()
		h.headers = headers
		return linksTo(t, h.get("/letters/"+string(h.receive("sms queue/ü", 1, "x")[0])).want(t, 200).text)
	}
	got := show(deadletter.Table{
		"Traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		"b3":          []byte("80f198ee56343ba864fe8b2a57d3eff7-e457b5a2e4d86bd1-1"), "x-tenant": "a b", "dot": "x",
	})
	for name, want := range map[string]string{
		"trace":  "https://tempo.example/trace/4bf92f3577b34da6a3ce929d0e0e4736",
		"b3":     "https://zipkin.example/zipkin/traces/80f198ee56343ba864fe8b2a57d3eff7",
		"header": "https://a.example/p/a%20b/q?x=a%20b&y=1#a%20b",
		"place":  "https://a.example/?q=sms%20queue%2F%C3%BC&v=%2F&b=main&g=G-1&m=m-1-0&n=3",
		"joined": "https://a.example/.x/x", "none": "",
		"time": "https://a.example/?from=" + url.QueryEscape(start.Add(-5*time.Minute).Format(time.RFC3339)) + "&to=" +
			url.QueryEscape(start.Add(5*time.Minute).Format(time.RFC3339)) + "&f=1795164900000&t=1795165500000",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	for value, want := range map[string]string{
		`/../..//evil.example/`: "https://a.example/p/%2F..%2F..%2F%2Fevil.example%2F/q?x=%2F..%2F..%2F%2Fevil.example%2F&y=1#%2F..%2F..%2F%2Fevil.example%2F",
		`&y=2#"><script>`:       "https://a.example/p/%26y%3D2%23%22%3E%3Cscript%3E/q?x=%26y%3D2%23%22%3E%3Cscript%3E&y=1#%26y%3D2%23%22%3E%3Cscript%3E",
		`\{trace_id}%2e`:        "https://a.example/p/%5C%7Btrace_id%7D%252e/q?x=%5C%7Btrace_id%7D%252e&y=1#%5C%7Btrace_id%7D%252e",
		"..":                    "", ".": "", "": "", "\xff": "", strings.Repeat("x", 501): "",
	} {
		if got := show(deadletter.Table{"x-tenant": value})["header"]; got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
	if got := show(deadletter.Table{"dot": "."})["joined"]; got != "" {
		t.Errorf("a way up: %s", got)
	}
	for _, wrong := range []string{
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01", "nonsense",
		"00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
		"x00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	} {
		if got := show(deadletter.Table{"traceparent": wrong, "b3": "0"}); got["trace"] != "" || got["b3"] != "" {
			t.Errorf("%s: %v", wrong, got)
		}
	}
	if got := show(deadletter.Table{
		"X-B3-TraceId": "463AC35C9F6413AD",
	})["b3"]; got != "https://zipkin.example/zipkin/traces/463ac35c9f6413ad" {
		t.Errorf("b3 in several headers: %s", got)
	}
}

// TestWhatIsMaskedLeadsNowhere checks that links do not give masked values to other tools.
func TestWhatIsMaskedLeadsNowhere(t *testing.T) {
	t.Parallel()
	links := configuredLinks(
		t,
		`links: [{name: whole, url: "https://a.example/{header.authorization}"}, {name: part, url: "https://a.example/{header.x-error-message}"}, {name: id, url: "https://a.example/{message_id}"}, {name: queue, url: "https://a.example/{queue}"}]`,
	)
	h, letters, _ := maskedHouse(t)
	h.Links = links
	for _, id := range letters {
		page := h.get("/letters/" + id)
		if betrayed(page.text) {
			t.Error(regexp.MustCompile(`href="https[^"]*"`).FindAllString(page.text, -1))
		}
		for name := range linksTo(t, page.text) {
			if name != "queue" {
				t.Errorf("%s is shown", name)
			}
		}
	}
	if got := linksTo(t, h.get("/letters/"+letters["header"]).text)["queue"]; got != "https://a.example/orders" {
		t.Error(got)
	}
}
