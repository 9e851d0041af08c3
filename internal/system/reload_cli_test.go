package system

import (
	"os"
	"strings"
	"testing"
)

// TestReloadOnTheCommandLine changes the configuration file of a dlo that runs. `dlo config diff`
// must say what would change, and `dlo reload` must apply the same. A file with a mistake changes
// nothing.
func TestReloadOnTheCommandLine(t *testing.T) {
	t.Parallel()
	p := newChild(t, "", away)
	p.Start("")
	says := func(code int, command string, want ...string) {
		t.Helper()
		out, errs := p.dlo(t.Context(), code, "", strings.Fields(command)...)
		for _, text := range want {
			if !strings.Contains(out+errs, text) {
				t.Errorf("dlo %s does not say %q:\n%s%s", command, text, out, errs)
			}
		}
	}
	applied := func() bool {
		t.Helper()
		_, page := p.get("/rules")
		return strings.Contains(page, "nightly")
	}
	says(0, "config diff", p.config+": 0 changes would apply at once")
	p.Configure(away + "rules: [{name: nightly, discard: false}]\nops_listen: 127.0.0.1:0\n")
	says(0, "config diff", ": 2 changes would apply at once", "rules[0].name added", "wait for the next start of dlo:",
		"ops_listen added: 127.0.0.1:0")
	if applied() {
		t.Error("config diff has changed something")
	}
	says(0, "reload", ": 2 changes in use", "rules[0].name added", "ops_listen added: 127.0.0.1:0")
	if !applied() {
		t.Error("the reload has changed nothing")
	}
	says(0, "config diff", ": 0 changes would apply at once", "ops_listen added: 127.0.0.1:0")
	if err := os.WriteFile(p.config, []byte("read_only: false\nrequests: many\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"config diff", "reload"} {
		says(1, command, "dlo: configuration file:2:11: give a number", "many")
	}
	if !applied() {
		t.Error("a reload that was refused has changed something")
	}
}
