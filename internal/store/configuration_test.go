package store_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
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
		{func(map[string]string) {}, ""}, // the first configuration
		{func(map[string]string) {}, ""},
		{func(m map[string]string) { m["requests"] = "5" }, "requests: 5, before 200"},
		{func(m map[string]string) { m["auth.proxy.secret"] = "#dcba" }, "auth.proxy.secret changed"},
		{
			func(m map[string]string) { delete(m, "read_only"); m["grants[0].role"] = "admin"; m["url"] = "#1234" },
			"grants[0].role added: admin; read_only removed; url added",
		},
	} {
		before := len(audited(t, s, "action:configuration-changed", c.now()))
		step.change(outline)
		if err := s.Configured(t.Context(), deadletter.Service.Name, maps.Clone(outline), nil); err != nil {
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
	if err := s.Configured(t.Context(), deadletter.Service.Name, outline, nil); err != nil {
		t.Fatal(err)
	}
	if acts := audited(
		t, s, "action:configuration-changed", c.now(),
	); !strings.HasSuffix(acts[0].Detail, "; and 20 more") {
		t.Errorf("%s", acts[0].Detail)
	}
}

// TestAReloadOfTheConfiguration checks changed keys of the configuration. If the new value of a key
// is used only after a restart, the change must not be recorded before that. Sessions must end only
// if the grants change.
func TestAReloadOfTheConfiguration(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	u, err := deadletter.NewUser("lena", deadletter.Grant{Role: deadletter.RoleViewer}, "test")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AddUser(t.Context(), u, [32]byte{}, c.now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	reloaded := func(path string) bool { return !strings.HasPrefix(path, "requests") }
	for i, step := range []struct {
		outline  map[string]string
		inUse    func(string) bool
		want     string // newest act
		sessions int
	}{
		{map[string]string{"requests": "1", "grants[0].role": "viewer", "digest.at": "8"}, nil, "", 1},
		{
			map[string]string{"requests": "2", "grants[0].role": "viewer", "digest.at": "9"},
			reloaded,
			"digest.at: 9, before 8",
			2,
		},
		{
			map[string]string{"requests": "2", "grants[0].role": "admin", "digest.at": "9"},
			reloaded,
			"grants[0].role: admin, before viewer",
			0,
		},
		{
			map[string]string{"grants[0].role": "admin", "digest.at": "9"},
			reloaded,
			"grants[0].role: admin, before viewer",
			1,
		},
		{
			map[string]string{"requests": "3", "grants[0].role": "admin", "digest.at": "9"},
			nil,
			"requests: 3, before 1",
			2,
		},
	} {
		if err := s.StartSession(t.Context(), deadletter.Session{
			User: "lena",
			Hash: [32]byte{byte(i)},
		}, "", c.now().Add(-time.Hour), c.now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
		if err := s.Configured(t.Context(), deadletter.Service.Name, step.outline, step.inUse); err != nil {
			t.Fatal(err)
		}
		got := ""
		if acts := audited(t, s, "action:configuration-changed", c.now()); len(acts) > 0 {
			got = acts[0].Detail
		}
		list, err := s.Sessions(t.Context(), "lena", c.now().Add(-time.Hour), c.now().Add(-time.Hour))
		if err != nil || len(list) != step.sessions || got != step.want {
			t.Errorf("step %d: %d sessions, %q, %v", i, len(list), got, err)
		}
		c.at = c.at.Add(1e9)
	}
}
