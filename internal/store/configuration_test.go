package store_test

import (
	"maps"
	"strings"
	"testing"
)

// TestChangesOfTheConfiguration checks the acts that record a changed configuration.
func TestChangesOfTheConfiguration(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	outline := map[string]string{"requests": "200", "auth.proxy.secret": "#abcd", "read_only": "true"}
	for _, step := range []struct {
		change func(map[string]string)
		want   string // "" = no act
	}{
		{func(map[string]string) {}, ""}, // the first
		{func(map[string]string) {}, ""},
		{func(m map[string]string) { m["requests"] = "5" }, "requests: 5, before 200"},
		{func(m map[string]string) { m["auth.proxy.secret"] = "#dcba" }, "auth.proxy.secret changed"},
		{func(m map[string]string) { delete(m, "read_only"); m["grants[0].role"] = "admin"; m["url"] = "#1234" }, "grants[0].role added: admin; read_only removed; url added"},
	} {
		before := len(audited(t, s, "action:configuration-changed", c.now()))
		step.change(outline)
		if err := s.Configured(t.Context(), maps.Clone(outline)); err != nil {
			t.Fatal(err)
		}
		acts := audited(t, s, "action:configuration-changed", c.now())
		switch {
		case step.want == "" && len(acts) != before, step.want != "" && len(acts) != before+1:
			t.Errorf("%d acts after %d, want one of %q", len(acts), before, step.want)
		case step.want != "" && (acts[0].Detail != step.want || acts[0].Actor != "dlo"):
			t.Errorf("%+v, want %q", acts[0], step.want)
		}
		c.at = c.at.Add(1e9)
	}
	for i := range 40 {
		outline[strings.Repeat("x", i+1)] = "1"
	}
	if err := s.Configured(t.Context(), outline); err != nil {
		t.Fatal(err)
	}
	if acts := audited(t, s, "action:configuration-changed", c.now()); !strings.HasSuffix(acts[0].Detail, "; and 20 more") {
		t.Errorf("%s", acts[0].Detail)
	}
}
