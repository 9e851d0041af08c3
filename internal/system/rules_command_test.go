package system

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

func TestRulesOnTheCommandLine(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	p := serve(t, "", "brokers: [{url: 'amqp://127.0.0.1:1/'}]\ndefault: {retry: {delays: [10s, 100s]}}\n", nil).child
	ctx := t.Context()
	has := func(text string, wanted ...string) {
		t.Helper()
		for _, w := range wanted {
			if !strings.Contains(text, w) {
				t.Errorf("%q is missing in:\n%s", w, text)
			}
		}
	}
	p.dlo(ctx, 0, exportLine(1, "sms", 2)+exportLine(2, "sms", 1), "letters", "import", "-")
	eventually(t, "the letters are classified", func() bool { return p.letters("dead") == 2 })
	list, _ := p.dlo(ctx, 0, "", "letters", "list", "-o", "jsonl")
	var l deadletter.Row
	if err := api.Unmarshal([]byte(strings.SplitN(list, "\n", 2)[0]), &l); err != nil {
		t.Fatal(err)
	}

	out, _ := p.dlo(ctx, 0, "", "rules", "list")
	if !strings.HasPrefix(out, "read from ") ||
		!strings.Contains(strings.SplitN(out, "\n", 2)[0], "dlo.yaml, loaded ") {
		t.Errorf("the first line does not say where the rules were read from:\n%s", out)
	}
	has(out, "default", "every letter", "10s 1m40s", "digest")
	out, _ = p.dlo(ctx, 0, "", "rules", "list", "-o", "jsonl")
	has(out, `"name":"default"`, `"delays":["10s","1m40s"]`)
	out, _ = p.dlo(ctx, 0, "", "rules", "list", "-o", "json")
	has(out, `"default": {`)
	out, _ = p.dlo(ctx, 0, "", "rules", "list", "--yaml")
	has(out, "default:\n  retry: {delays: [10s")

	out, errs := p.dlo(ctx, 0, "", "rules", "test", "-q", "state:dead", "-n", "1")
	has(out, "1        yes      default: dead (digest)  default: retry  10 s, 1 min 40 s, then dead: digest")
	has(errs, "looked at 1 of 2 letters, newest first")
	out, _ = p.dlo(ctx, 0, "", "rules", "test", "-o", "jsonl")
	has(out, `"looked":2,`, `"action":"retry"`)

	tried := filepath.Join(t.TempDir(), "tried.yaml")
	if err := os.WriteFile(
		tried,
		[]byte(
			"listen: 127.0.0.1:1\nbrokers: [{url: 'amqp://u:kanarie@h/'}]\nrules:\n  - name: sms\n    match: {queue: sms}\n    retry: {delays: [5s, 30s], jitter: 0.1}\n",
		),
		0o600,
	); err != nil {
		t.Fatal(err)
	}
	out, errs = p.dlo(ctx, 0, "", "rules", "test", "--config", tried, "-q", "state:dead")
	has(
		out, "2        yes      default: dead (digest)  sms: retry  4.5 s to 5.5 s, 27 s to 33 s, then dead: digest",
		string(l.ID),
	)
	has(
		errs, "looked at 2 of 2 letters, newest first",
		"Only rules and default are tried. These settings were not read: listen, brokers.",
	)
	out, _ = p.dlo(
		ctx, 0, "- {name: noise, discard: true, match: {queue: sms}}", "rules", "test", "--config", "-", "-o", "jsonl",
	)
	has(out, `"letters":2,`, `"would":{"rule":"noise","action":"discard"`)
	out, _ = p.dlo(ctx, 0, "default: {retry: {delays: []}}", "rules", "test", "--config", "-", "-n", "1")
	has(out, "1        no       default: dead (digest)  default: dead (digest)  no retry, dead: digest")
	out, _ = p.dlo(ctx, 0, "", "rules", "test", "--config", tried, "-q", "id:"+string(l.ID))
	has(out, "1        yes      default: dead (digest)  sms: retry", string(l.ID))
	if _, errs = p.dlo(
		ctx, 2, "- name: a\n  mach: kanarie\n", "rules", "test", "--config", "-",
	); strings.Contains(errs, "kanarie") {
		t.Error(errs)
	}
	has(errs, `standard input:2:3: there is no key "mach" in rules`)
	if out, _ = p.dlo(
		ctx, 0, "", "rules", "list",
	); strings.Contains(out, "sms") || p.letters("dead") != 2 || strings.Contains(p.Log(), "kanarie") {
		t.Error("trying has left something behind")
	}
	p.dlo(ctx, 2, "", "rules", "test", "--config", tried+"x")

	for _, args := range [][]string{
		{string(l.ID)},
		{"-q", "state:deaf"},
		{"-q", "state:dead", "-n", "501"},
		{"--queue", "sms"},
	} {
		p.dlo(ctx, 2, "", append([]string{"rules", "test"}, args...)...)
	}
}
