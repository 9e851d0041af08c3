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
	run := func(args ...string) (string, error) {
		var out strings.Builder
		err := Run(Program{
			Ctx: t.Context(), Getenv: func(string) string { return "" }, Stdout: &out, Stderr: &out,
		}, &struct{}{}, args)
		return strings.TrimSpace(out.String()), err
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
		{`dlo letters list -o ''`, "table json jsonl csv"},
		{`dlo letters requeue --order n`, "newest"},
		{`dlo letters count -q st`, "state: status:"},
		{`dlo letters count -q state : de`, "dead"},
		{`dlo letters list -q state:de`, "state:dead"},
		{`dlo letters list -q reason :`, "rejected expired maxlen delivery_limit"},
		{`dlo operations rate --s`, "--server"},
	} {
		words := strings.Fields(strings.ReplaceAll(c.words, "''", "\x00"))
		for i := range words {
			words[i] = strings.Trim(words[i], "\x00")
		}
		got, err := run(append([]string{"complete", "--"}, words[1:]...)...)
		if got = strings.ReplaceAll(got, "\n", " "); err != nil || got != c.want {
			t.Errorf("%s: %q, want %q (%v)", c.words, got, c.want, err)
		}
	}
	for shell, check := range map[string]string{"bash": "-n", "zsh": "-n", "fish": "--no-execute"} {
		text, err := run("completion", shell)
		if _, missing := exec.LookPath(shell); err != nil || missing != nil {
			continue
		}
		file := filepath.Join(t.TempDir(), "completion")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(shell, check, file).CombinedOutput(); err != nil {
			t.Errorf("%s: %s", shell, out)
		}
	}
	if _, err := run("completion", "csh"); err == nil {
		t.Error("a shell that nobody knows is completed")
	}
}

// TestCompletionInBash checks that bash passes the words of a command line on, and offers what dlo
// answers.
func TestCompletionInBash(t *testing.T) {
	t.Parallel()
	script, err := completions.ReadFile("completion/dlo.bash")
	if err != nil {
		t.Fatal(err)
	}
	test := string(script) + `
		dlo() { printf '%s|' "$@" >&2; printf 'state:\nstatus:\n'; }
		COMP_WORDS=(dlo letters list -q st); COMP_CWORD=4; _dlo 2>"$1"; echo "${COMPREPLY[*]}"`
	test = strings.Replace(test, " 2>/dev/null))", "))", 1)
	file := filepath.Join(t.TempDir(), "words")
	out, err := exec.Command("bash", "-c", test, "bash", file).Output()
	words, _ := os.ReadFile(file)
	if err != nil || string(out) != "state: status:\n" || !strings.HasPrefix(string(words), "complete|--|letters|list|-q|st|") {
		t.Errorf("%v: %q, dlo got %q", err, out, words)
	}
}
