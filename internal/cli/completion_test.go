package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestCompletion(t *testing.T) {
	t.Parallel()
	script := func(shell string) string {
		var out strings.Builder
		if err := Run(Program{
			Ctx: t.Context(), Getenv: func(string) string { return "" }, Stdin: nil, Stdout: &out, Stderr: &out,
			Version: "test", Check: nil,
		}, &Commands{}, []string{"completion", shell}); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	for _, c := range []struct{ words, want string }{
		{`dlo letters re`, "reveal requeue release retry-now reschedule restore"},
		{`dlo rules overrides ''`, "list add remove"},
		{`dlo queues ''`, "list pause resume drain drains stop"},
		{
			`dlo groups ''`,
			"list show requeue discard snooze resolve reopen assign note severity merge split undo pause resume",
		},
		{`dlo queues pause sms --r`, "--reason"},
		{`dlo letters list --o`, "--output --order"},
		{`dlo letters list -o ''`, "table json jsonl"},
		{`dlo letters requeue --order n`, "newest"},
		{`dlo letters count -q st`, "state: status:"},
		{`dlo letters count -q state : de`, "dead"},
		{`dlo letters list -q reason :`, "rejected expired maxlen delivery_limit"},
		{`dlo operations rate --s`, "--server"},
	} {
		test := script("bash") + "\nCOMP_WORDS=(" + c.words +
			"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _dlo; echo \"${COMPREPLY[*]}\"\n"
		out, err := exec.Command("bash", "-c", test).CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
			t.Errorf("%s: %q, want %q (%v)", c.words, got, c.want, err)
		}
	}
	for shell, check := range map[string][]string{"zsh": {"zsh", "-n"}, "fish": {"fish", "--no-execute"}} {
		text := script(shell)
		for _, wanted := range []string{"letters", "overrides", "--canary-wait", "state:", "newest"} {
			if shell == "fish" {
				wanted = strings.TrimPrefix(wanted, "--")
			}
			if !strings.Contains(text, wanted) {
				t.Errorf("%s: %s is missing", shell, wanted)
			}
		}
		if _, err := exec.LookPath(check[0]); err != nil {
			continue
		}
		file := filepath.Join(t.TempDir(), "completion")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(check[0], check[1], file).CombinedOutput(); err != nil {
			t.Errorf("%s: %s", shell, out)
		}
	}
	if err := Run(Program{
		Ctx: t.Context(), Getenv: func(string) string { return "" }, Stdin: nil, Stdout: &strings.Builder{},
		Stderr: &strings.Builder{}, Version: "test", Check: nil,
	}, &Commands{}, []string{"completion", "csh"}); err == nil {
		t.Error("a shell that nobody knows is completed")
	}
}
