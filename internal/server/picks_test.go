package server

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestBindingsOfPicks checks that picks for queues come before the bindings of the configuration,
// with their keys and paths, and that picks for letters and groups are no bindings.
func TestBindingsOfPicks(t *testing.T) {
	t.Parallel()
	picked := deadletter.Binding{Queue: "sms", Key: "sms.*", Type: "acme.Picked", Path: "row.payload"}
	configured := deadletter.Binding{Queue: "*", Type: "acme.Configured"}
	got := bindingsOf(&config.Config{Schemas: config.Schemas{Bindings: []deadletter.Binding{configured}}}, []deadletter.Pick{
		{Binding: picked},
		{Binding: deadletter.Binding{Type: "acme.Letter"}, Letter: "01a2212b-1000-7000-b035-3cad28c678bc"},
		{Binding: deadletter.Binding{Type: "acme.Group"}, Group: 1},
	})
	if diff := cmp.Diff([]deadletter.Binding{picked, configured}, got); diff != "" {
		t.Error(diff)
	}
}
