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
}
