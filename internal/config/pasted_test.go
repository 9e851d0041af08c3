package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/google/go-cmp/cmp"
)

// inUse returns rules that differ from the defaults of dlo. The tests use them as the rules in use.
func inUse() *rules.Set {
	return &rules.Set{
		Seed: 7, Channels: []string{"oncall"},
		Rules: []rules.Rule{{Name: "loaded", Match: rules.Match{Queue: rules.Patterns{"loaded"}}}},
		Default: rules.Rule{
			Name: rules.DefaultName, Retry: &rules.Retry{Delays: []time.Duration{time.Hour}, Waiter: rules.WaiterStore},
			Severity: deadletter.SeverityPage,
		},
	}
}

// TestRulesThatAreWritten checks the texts of rules that a person can paste: a list of rules, one
// rule, a part of a file and a whole file. It also checks which parts are taken from the rules in
// use.
func TestRulesThatAreWritten(t *testing.T) {
	t.Parallel()
	const rule = "name: a\nmatch: {queue: sms}\ndead: {notify: [oncall]}\n"
	indented := "  " + strings.ReplaceAll(strings.TrimSpace(rule), "\n", "\n  ") + "\n"
	listed := "- " + strings.TrimPrefix(indented, "  ")
	for _, c := range []struct {
		name, text  string
		names       []string
		own         bool // the text contains a default
		kept, other []string
	}{
		{"a list", listed, []string{"a"}, false, []string{"default"}, nil},
		{"one rule", rule, []string{"a"}, false, []string{"default"}, nil},
		{
			"a list in brackets",
			"[{name: a, match: {queue: sms}}, {name: b}]",
			[]string{"a", "b"},
			false,
			[]string{"default"},
			nil,
		},
		{"with CR LF", strings.ReplaceAll(listed, "\n", "\r\n"), []string{"a"}, false, []string{"default"}, nil},
		{"the rules", "rules:\n" + listed, []string{"a"}, false, []string{"default"}, nil},
		{"no rules", "rules: []", nil, false, []string{"default"}, nil},
		{"the default", "default: {watch: 1h}", []string{"loaded"}, true, []string{"rules"}, nil},
		{"both", "rules:\n" + listed + "default: {watch: 1h}", []string{"a"}, true, nil, nil},
		{
			"a whole file",
			"listen: 127.0.0.1:1\nchannels: {oncall: {}}\nrules:\n" + listed,
			[]string{"a"},
			true,
			nil,
			[]string{"channels", "listen"},
		},
		{"a whole file without rules", "listen: 127.0.0.1:1", nil, true, nil, []string{"listen"}},
	} {
		got, err := config.ReadRules(c.text, inUse())
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var names []string
		for _, r := range got.Rules.Rules {
			names = append(names, r.Name)
		}
		slices.Sort(got.Other)
		if !slices.Equal(names, c.names) || !slices.Equal(got.Kept, c.kept) || !slices.Equal(got.Other, c.other) {
			t.Errorf("%s: rules %q, kept %q, other %q", c.name, names, got.Kept, got.Other)
		}
		if own := got.Rules.Default.Severity == deadletter.SeverityDigest; own != c.own {
			t.Errorf("%s: the default is %+v", c.name, got.Rules.Default)
		}
		if got.Rules.Seed != 7 {
			t.Errorf("%s: the seed in use is gone: %+v", c.name, got.Rules)
		}
	}
}

// TestWrittenRulesAreAsThoseOfAFile checks that rules in a text are read exactly like those in a
// file. The same mistakes must be reported.
func TestWrittenRulesAreAsThoseOfAFile(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile("../../docs/examples/dlo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		string(example),
		"rules: [{name: a, match: {queue: a*}}, {name: b, match: {queue: abc}}, {name: a, match: {attempts: '<0'}}]\ndefault: {retry: {first: 1s}}",
		"rules:\n  - name: a\n    mach: {}\n    retry: &r {delays: [1s, 366d]}\n  - name: b\n    match: {queue: *-dlq}\n",
		"rules:\n  - {name: a, retry: {delays: [50d], waiter: wait-queue, jitter: 0.1}, mirror_x_death: true}\nrulse: []\n",
		"rules:\n  - name: a\n     match: x\n",
		"---\nrules: []\n---\nrules: []\n",
		"rules: billing",
		"auth: {}\nrules: []",
	} {
		c, want := load(t, text)
		got, err := config.ReadRules(text, &rules.Set{})
		if want != nil {
			var one, other *config.Error
			if !errors.As(want, &one) || !errors.As(err, &other) || !cmp.Equal(one.Mistakes, other.Mistakes) {
				t.Errorf("%s\nas a file: %v\nas written: %v", text, want, err)
			}
			continue
		}
		for i := range c.Rules.Rules {
			c.Rules.Rules[i].YAML = ""
		}
		if diff := cmp.Diff(c.Rules, got.Rules, origin); diff != "" || err != nil {
			t.Errorf("%s\n%v (-file +written):\n%s", text, err, diff)
		}
	}
}

func TestTextsThatAreNoRules(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                  "there are no rules in this text",
		"# nothing\n":                       "there are no rules in this text",
		"null":                              "there are no rules in this text",
		"hello":                             "rules:1:1: give rules: a list of them, or rules: and default: as in a configuration file",
		"- a":                               "rules:1:3: rules: give keys with values",
		"- {name: a, dead: {notify: [me]}}": `rules:1:29: there is no channel "me"; there are oncall`,
		"channels: {me: }\nrules: [{name: a, dead: {notify: [oncall]}}]": `rules:2:35: there is no channel "oncall"; there are me`,
		strings.Repeat(
			"#", config.MaxPasted+1,
		): "rules to try have at most 64 KiB, and these have 65 KiB",
	} {
		if _, err := config.ReadRules(text, inUse()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
}

// TestNothingElseIsReadOfAText checks that ReadRules opens no file that the text names, and reads
// no other settings. A word that begins with * or & can look like an anchor of YAML. A mistake
// about such a word must not contain the word, because it may be a secret.
func TestNothingElseIsReadOfAText(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("kanarie"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(`
listen: kanarie
brokers:
  - {url: "amqp://guest:kanarie@h/", rates: {"*": kanarie}, management: {url: x, password_file: %[1]s}}
channels:
  gone: {slack: {url_file: /there/is/no/such/file}}
  oncall: {webhook: {url: "http://kanarie", secret_file: %[1]s}, kanarie: kanarie}
masking: [{pattern: "(kanarie"}]
schemas: {directory: %[1]s, reflection: [kanarie]}
rules: [{name: a, match: {queue: a}, dead: {notify: [gone]}}]
`, secret)
	got, err := config.ReadRules(text, &rules.Set{})
	if err != nil || len(got.Rules.Rules) != 1 {
		t.Errorf("a file with mistakes elsewhere is not read: %v", err)
	}
	for _, text := range []string{
		text + "retry: {}\n", text + "rules: [{nam: a}]\n", "password: *kanarie\nrules: []\n", "password: \"kanarie\n",
		"password: 'kanarie' kanarie\n", "a: kanarie: b\n", "kanarie\x00", "password: !<kanarie\n", "%kanarie 1\n",
		"password: &a\nx: \t- kanarie\n",
	} {
		_, err := config.ReadRules(text, &rules.Set{})
		if err == nil || strings.Contains(err.Error(), "kanarie") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestHostileTextsCostLittle checks texts of rules that are made to cost dlo much time or memory.
// dlo must reject a text whose YAML aliases expand to a very large document. If a text has many
// mistakes, dlo must list only the first ones and count the others. The test takes a few seconds.
func TestHostileTextsCostLittle(t *testing.T) {
	t.Parallel()
	fill := func(one func(i int) string) string {
		var b strings.Builder
		for i := 0; ; i++ {
			if text := one(i); b.Len()+len(text) < config.MaxPasted-200 {
				b.WriteString(text)
				continue
			}
			return b.String()
		}
	}
	laughs := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 30; i++ {
		laughs += fmt.Sprintf("a%d: &a%[1]d [%s*a%d]\n", i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), i-1)
	}
	long := strings.Repeat("a", 900)
	for name, c := range map[string]struct{ text, want string }{
		"ten to the thirtieth": {
			laughs + "rules: [{name: a, match: {queue: *a29}}]", "with its aliases written out, this text is too long",
		},
		"a list in itself": {"rules: &a [*a]", "with its aliases written out, this text is too long"},
		"a rule in itself": {
			"- &a {name: a, match: *a, retry: *a, dead: *a}", "with its aliases written out, this text is too long",
		},
		"one long text, a thousand times": {
			"- {name: &a '" + strings.Repeat("x", 60000) + "'}\n" + strings.Repeat("- {name: *a}\n", 400),
			"with its aliases written out, this text is too long",
		},
		"ten thousand lists in each other": {strings.Repeat("[", 60000), "exceeded max depth"},
		"keys in each other":               {strings.Repeat("{a: ", 15000), "exceeded max depth"},
		"nothing but mistakes":             {fill(func(int) string { return "- {x: 1}\n" }), "more"},
		"channels that are not there": {fill(func(i int) string {
			return fmt.Sprintf("- {name: n%d, match: {queue: q%[1]d}, dead: {notify: [c%[1]d]}}\n", i)
		}), "more"},
		"ten thousand retries, in queues": {fill(func(i int) string {
			return fmt.Sprintf(
				"- {name: n%d, match: {queue: q%[1]d}, retry: {attempts: 10000, first: 1s, factor: 1.001, waiter: wait-queue}}\n",
				i,
			)
		}), "10000 different delays"},
		"globs that nearly fit": {fill(func(i int) string {
			return fmt.Sprintf("- {name: n%d, match: {queue: ['*%sb%[1]d', '%[2]s%[2]sc%[1]d']}}\n", i, long)
		}), ""},
		"rules that nearly fit": {
			fill(func(i int) string { return fmt.Sprintf("- {name: n%d, match: {queue: '*aaaaaaaaaab%[1]d'}}\n", i) }),
			"",
		},
		"lists of comparisons": {
			"- {name: a, match: {attempts: [" + strings.Repeat("1, ", 10000) + "1]}}\n" + fill(func(i int) string {
				return fmt.Sprintf("- {name: n%d, match: {queue: q%[1]d, attempts: 2}}\n", i)
			})[:30000], "",
		},
	} {
		_, err := config.ReadRules(c.text, &rules.Set{Channels: []string{"x"}})
		if c.want == "" && name != "lists of comparisons" && err != nil ||
			c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %.300v", name, err)
		}
		var wrong *config.Error
		if errors.As(err, &wrong) && (len(wrong.Mistakes) > 51 || len(err.Error()) > 64<<10) {
			t.Errorf("%s: %d mistakes, %d bytes of them", name, len(wrong.Mistakes), len(err.Error()))
		}
	}
}
