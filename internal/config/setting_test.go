package config

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

func noEnvironment(string) string { return "" }

func delaysOf(rule string, delays ...string) deadletter.Setting {
	return deadletter.Setting{Key: deadletter.SettingDelays, Rule: rule, Delays: append([]string{}, delays...)}
}

func deadOf(rule string, severity deadletter.Severity, notify ...string) deadletter.Setting {
	return deadletter.Setting{Key: deadletter.SettingDead, Rule: rule, Severity: severity, Notify: notify}
}

func fieldsOf(fields ...string) deadletter.Setting {
	return deadletter.Setting{Key: deadletter.SettingFields, Fields: append([]string{}, fields...)}
}

const hook = "channels: {ops: {alertmanager: {url: \"https://ops.example.com\"}}}\n"

// TestASettingChangesItsBytesOnly changes settings in files of many forms. The parameter "want" of
// each case is the new file, or the reason why dlo does not change the file.
func TestASettingChangesItsBytesOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		text string
		to   deadletter.Setting
		want string
	}{
		{
			"a list in brackets",
			"# of the team\ndefault:\n  retry: {delays: [10s, 1m], jitter: 0.1} # agreed\n\n\nlisten: \"127.0.0.1:1\"\n",
			delaysOf("default", "5s"),
			"# of the team\ndefault:\n  retry: {delays: [5s], jitter: 0.1} # agreed\n\n\nlisten: \"127.0.0.1:1\"\n",
		},
		{
			"a list of lines, one more item, comments between them",
			"search:\n  fields:\n    - a # first\n    # second\n    - 'b''c'   # last\n\nstore: x.db",
			fieldsOf("a", "b'c", "d.e"),
			"search:\n  fields:\n    - a # first\n    # second\n    - 'b''c'   # last\n    - d.e\n\nstore: x.db",
		},
		{
			"a list of lines at the column of its key",
			"search:\n  fields:\n  - a\n  - b\nstore: x.db\n",
			fieldsOf("b", "c"),
			"search:\n  fields:\n  - b\n  - c\nstore: x.db\n",
		},
		{
			"a list of lines becomes empty",
			"default:\n  retry:\n    delays:\n    - 1s\n    - 2s\n",
			delaysOf("default"),
			"default:\n  retry:\n    delays: []\n",
		},
		{
			"a list of lines with a comment is changed in the middle",
			"search:\n  fields:\n    - a # first\n    - b\n",
			fieldsOf("b"),
			"(" + commented + ")",
		},
		{
			"CR LF, a byte order mark, no last line break, tabs before a comment",
			"\ufeffsearch:\r\n  fields:\r\n    - 日本.語\t# ü\r\nrules:\r\n  - name: ü\r\n    match: {queue: x}",
			delaysOf("ü", "1s"),
			"\ufeffsearch:\r\n  fields:\r\n    - 日本.語\t# ü\r\nrules:\r\n  - name: ü\r\n    match: {queue: x}\r\n    retry: {delays: [1s]}",
		},
		{
			"on the first line, after a byte order mark, behind other characters",
			"\ufeffsearch: {\"fields\": [\"日本\", b]} # ü",
			fieldsOf("c"),
			"\ufeffsearch: {\"fields\": [c]} # ü",
		},
		{
			"a new key of a rule in brackets, over lines, with a comma at the end",
			"rules: [\n  {name: a, match: {queue: \"]#\"}, # first\n  },\n  {name: b}]\n",
			deadOf("a", deadletter.SeverityNotify),
			"rules: [\n  {name: a, match: {queue: \"]#\"}, dead: {severity: notify}, # first\n  },\n  {name: b}]\n",
		},
		{
			"severity and channels of a rule",
			hook + "rules:\n- name: a\n  dead:\n    severity: page # at night\n  match: {queue: q}\n- name: b\n",
			deadOf("a", deadletter.SeverityNotify, "ops"),
			hook + "rules:\n- name: a\n  dead:\n    severity: notify # at night\n    notify: [ops]\n  match: {queue: q}\n- name: b\n",
		},
		{
			"a back-off that grows becomes a list",
			"default:\n  retry:\n    first: 10s\n    attempts: 3\n    jitter: 0.2\nlisten: 127.0.0.1:1\n",
			delaysOf("default", "10s", "1m"),
			"default:\n  retry: {delays: [10s, 1m], jitter: 0.2}\nlisten: 127.0.0.1:1\n",
		},
		{
			"a new top-level key, below the comments at the end",
			"listen: 127.0.0.1:1\n# rules:\n#   - name: x\n\n",
			fieldsOf("a: b", "# c", "- d", "&f", "!g", "{h", "yes", "1"),
			"listen: 127.0.0.1:1\n# rules:\n#   - name: x\n" +
				"search: {fields: ['a: b', '# c', '- d', '&f', '!g', '{h', \"yes\", \"1\"]}\n\n",
		},
		{
			"a rule for a queue, after the rules that apply now, with what the default says",
			"rules:\n  - name: a\n    match: {queue: q*, type: x} # last\ndefault: {retry: {delays: [9s], jitter: 0.5}, watch: 5m}\n",
			deadletter.Setting{Key: deadletter.SettingDelays, Queue: "q: 1", VHost: "/", Delays: []string{"1s"}},
			"rules:\n  - name: a\n    match: {queue: q*, type: x} # last\n  - name: 'delays of q: 1'\n" +
				"    match: {queue: 'q: 1', vhost: /, reason: [rejected, delivery_limit]}\n" +
				"    retry: {delays: [1s], jitter: 0.5}\n    watch: 5m0s\n" +
				"default: {retry: {delays: [9s], jitter: 0.5}, watch: 5m}\n",
		},
		{
			"the first rule", "listen: 127.0.0.1:1",
			deadletter.Setting{Key: deadletter.SettingDelays, Queue: "q", Delays: []string{"1s"}},
			"listen: 127.0.0.1:1\nrules:\n  - name: delays of q\n    match: {queue: q, reason: [rejected, delivery_limit]}\n" +
				"    retry: {delays: [1s]}",
		},
		{
			"an empty list of rules", "rules: []\n",
			deadletter.Setting{Key: deadletter.SettingDelays, Queue: "q", Delays: []string{"1s"}},
			"rules: [{name: delays of q, match: {queue: q, reason: [rejected, delivery_limit]}, retry: {delays: [1s]}}]\n",
		},
		{
			"an anchor elsewhere", "search: {fields: &f [a]}\nhosts: *f\ndefault: {retry: {delays: [1s]}}\n",
			delaysOf("default", "2s"),
			"search: {fields: &f [a]}\nhosts: *f\ndefault: {retry: {delays: [2s]}}\n",
		},
		{"an anchor", "search: {fields: &f [a]}\nhosts: *f\n", fieldsOf("b"), "(" + anchored + ")"},
		{"one more item for an anchor", "search: {fields: &f [a]}\nhosts: *f\n", fieldsOf("a", "b"), "(" + anchored + ")"},
		{"an alias", "hosts: &f [a]\nsearch: {fields: *f}\n", fieldsOf("b"), "(" + anchored + ")"},
		{
			"an alias on the way", "rules: [{name: a, dead: &d {severity: page}}]\ndefault: {dead: *d}\n",
			deadOf("default", deadletter.SeverityNotify), "(" + anchored + ")",
		},
		{"an item is an alias", "hosts: [&f a]\nsearch: {fields: [b, *f]}\n", fieldsOf("b"), "(" + anchored + ")"},
		{"filled in", "search: {fields: ['${FIELDS:-x}']}\n", fieldsOf("b"), "(" + templated + ")"},
		{"a file in brackets", "{search: {fields: [a]}}\n", fieldsOf("b"), "(" + unusual + ")"},
		{"a file that is indented", "  search: {fields: [a]}\n", fieldsOf("b"), "(" + unusual + ")"},
		{"an empty file", "# nothing\n", fieldsOf("b"), "(" + unusual + ")"},
		{"a key without a value", "search:\n  fields:\n", fieldsOf("b"), "(" + unusual + ")"},
		{"an end of the document", "listen: 127.0.0.1:1\n...\n", fieldsOf("b"), "(" + unusual + ")"},
		{"a tag", "search: {fields: !!seq [a]}\n", fieldsOf("b"), "search: {fields: [b]}\n"},
		{"other line breaks", "search: {fields: [a]} # \u2028\n", fieldsOf("b"), "(" + unusual + ")"},
		{"a text over lines", "search:\n  fields:\n    - a\n    - >-\n      b\n", fieldsOf("a"), "(" + unusual + ")"},
		{"nothing new", "search: {fields: [a]}\n", fieldsOf("a"), "fields: this is what the configuration file has already"},
		{"no such rule", "rules: [{name: a}]\n", delaysOf("b", "1s"), "rule: the file has no rule b"},
		{
			"no duration", "default: {retry: {delays: [1s]}}\n", delaysOf("default", "soon"),
			`delays: "soon" is not a duration; it looks like 250ms, 10s, 1h30m or 30d`,
		},
		{
			"no channel", "default: {dead: {severity: page}}\n", deadOf("default", deadletter.SeverityNotify, "x"),
			`notify: there is no channel "x": define it under channels`,
		},
		{"masked", "masking: [{field: a.b}]\n", fieldsOf("a.b"), "fields: a.b is masked, so letters cannot be found by it"},
		{
			"a line break", "search: {fields: [a]}\n", fieldsOf("a\nlisten: x"),
			`fields: give visible characters only, without ${ and $$, and not a\nlisten: x`,
		},
		{
			"filled in later", "search: {fields: [a]}\n", fieldsOf("${X}"),
			"fields: give visible characters only, without ${ and $$, and not ${X}",
		},
		{
			"dollar signs that would become one", "default: {retry: {delays: [1s]}}\n",
			deadletter.Setting{Key: deadletter.SettingDelays, Queue: "a$$b", Delays: []string{"1s"}},
			"delays: give visible characters only, without ${ and $$, and not a$$b",
		},
		{
			"a queue with the name of another", "rules:\n- name: delays of q\n  match: {queue: q, vhost: a}\n",
			deadletter.Setting{Key: deadletter.SettingDelays, Queue: "q", VHost: "b", Delays: []string{"1s"}},
			"rules:\n- name: delays of q\n  match: {queue: q, vhost: a}\n- name: delays of q 2\n" +
				"  match: {queue: q, vhost: b, reason: [rejected, delivery_limit]}\n  retry: {delays: [1s]}\n",
		},
		{
			"several more items", "search: {fields: [a]}\n", fieldsOf("a", "b", "c"), "search: {fields: [a, b, c]}\n",
		},
		{
			"too many items", "search: {fields: [a]}\n", fieldsOf(slices.Repeat([]string{"a"}, 501)...),
			"fields: a list has at most 500 items here; for more, edit the file",
		},
		{
			"no list", "search: {fields: [a]}\n",
			deadletter.Setting{Key: deadletter.SettingFields},
			"fields: give a list; it may be empty",
		},
		{
			"a star", "listen: 127.0.0.1:1",
			deadletter.Setting{Key: deadletter.SettingDelays, Queue: "q*", Delays: []string{"1s"}},
			"delays: in a rule, a star in the name of the queue, vhost or broker would match others too",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, _, err := Change("dlo.yaml", c.text, c.to, noEnvironment)
			text := got.Now
			if err != nil {
				text = err.Error()
			} else if got.Unsaved != "" {
				text += "(" + got.Unsaved + ")"
			}
			if text != c.want {
				t.Errorf("got:\n%s\nwant:\n%s", text, c.want)
			}
			if err == nil && (got.YAML == "" || got.Place == "" || got.Changes == "") {
				t.Errorf("nothing to copy: %+v", got)
			}
		})
	}
}

// pieces are parts of files, of which each can stand at the top level.
var pieces = []string{
	"# a comment: with [ and {\n", "\n", "hosts: [a, \"b # c\"]\n", "store: 'it''s # [x]'\n", "schemas:\n    directory: \"a\\\"b\"\n",
	"links:\n- name: ü [x]\n  url: \"https://example.com/{queue}\" # ]\n", "retention: {dead: 0s,\n  quiet: 1h # }\n  }\n", "base_path: &p /dlo\n",
}

var forms = []string{
	"search:\n  text: true\n  fields:\n  - a\n  - b.ü # it's\n", "search: {fields: [\"a\", 'b.ü'], text: true}\n",
	"\"search\":\n    fields:   [ a , # one\n      b.ü ]\n", "search:\n  fields:\n\n      - a\n\n      -   b.ü\n\n", "search: {text: true}\n", "",
	"search: {fields: [a, &x b.ü]}\n", "search:\n  fields: [a,\n    b.ü,\n    ]\n  text: true # [\n",
}

// TestASpliceIsWhatWasIntended changes the fields of generated files. A changed file must mean what
// it meant before, apart from the fields. Its bytes must be the same before and behind one place.
func TestASpliceIsWhatWasIntended(t *testing.T) {
	t.Parallel()
	changed := 0
	rapid.Check(t, func(t *rapid.T) {
		parts := []string{rapid.SampledFrom(forms).Draw(t, "form")}
		for _, piece := range rapid.SliceOfNDistinct(rapid.SampledFrom(pieces), 0, 5, rapid.ID[string]).Draw(t, "pieces") {
			at := rapid.IntRange(0, len(parts)).Draw(t, "at")
			parts = append(parts[:at:at], append([]string{piece}, parts[at:]...)...)
		}
		text := rapid.SampledFrom([]string{"", "\ufeff", "---\n"}).Draw(t, "head") + strings.Join(parts, "")
		if rapid.Bool().Draw(t, "no last line break") {
			text = strings.TrimRight(text, "\n")
		}
		if rapid.Bool().Draw(t, "CR LF") {
			text = strings.ReplaceAll(text, "\n", "\r\n")
		}
		to := rapid.SliceOfN(rapid.OneOf(
			rapid.SampledFrom([]string{"a", "b.ü", "x: y", "#", "]", "'", "\"", "~", "null", "0x1", "=", "%", "日本.語"}),
			rapid.StringMatching(`[!-~]{1,5}`),
		), 0, 4).Draw(t, "to")
		got, _, err := Change("dlo.yaml", text, fieldsOf(to...), noEnvironment)
		var wrong deadletter.FieldErrors
		if errors.As(err, &wrong) {
			return
		} else if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if got.Unsaved != "" {
			return
		}
		changed++
		var before, after map[string]any
		if err := errors.Join(yaml.Unmarshal([]byte(text), &before), yaml.Unmarshal([]byte(got.Now), &after)); err != nil {
			t.Fatalf("%q became %q: %v", text, got.Now, err)
		}
		var fields []string
		for _, v := range after["search"].(map[string]any)["fields"].([]any) {
			fields = append(fields, v.(string))
		}
		if strings.Join(fields, "\x00") != strings.Join(to, "\x00") {
			t.Fatalf("%q: %q and not %q", got.Now, fields, to)
		}
		for _, m := range []map[string]any{before, after} {
			if search, ok := m["search"].(map[string]any); ok {
				delete(search, "fields")
				if len(search) == 0 {
					delete(m, "search")
				}
			}
		}
		if a, b := encoded(before), encoded(after); a != b {
			t.Fatalf("%q became %q", a, b)
		}
		for line := range strings.SplitSeq(text, "\n") { // no comment is lost
			if _, comment, ok := strings.Cut(line, " # "); ok && !strings.Contains(got.Now, comment) {
				t.Fatalf("%q is lost in %q", comment, got.Now)
			}
		}
		head, tail := commonHead(text, got.Now)
		if rest := text[head : len(text)-tail]; strings.ContainsAny(rest, "#&") || strings.Contains(rest, "hosts") {
			t.Fatalf("%q was replaced in %q", rest, text)
		}
	})
	if changed == 0 {
		t.Error("no file was changed")
	}
}

func encoded(v any) string {
	text, _ := yaml.Marshal(v)
	return string(text)
}

func commonHead(a, b string) (head, tail int) {
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head, tail
}

// TestARuleCanNotifyNobody checks that an empty list of channels is different from no list, with
// which the channels of the default are notified.
func TestARuleCanNotifyNobody(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"{severity: page, notify: []}": 0, "{severity: page}": 1, "{notify: }": 1} {
		c, err := Parse("", hook+"rules: [{name: a, dead: "+text+"}]\ndefault: {dead: {notify: [ops]}}\n", noEnvironment)
		if got := c.Rules.Told("a"); err != nil || len(got) != want {
			t.Errorf("%s: %q are notified (%v)", text, got, err)
		}
	}
}
