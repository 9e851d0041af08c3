package cli

import (
	"encoding/json"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// requests are the types of the requests whose members are the arguments and flags of a command.
var requests = map[string]any{
	"POST /annotations":             api.Annotation{},
	"POST /bindings":                api.BindingRequest{},
	"POST /deploys":                 api.DeployRequest{},
	"POST /groups/decisions":        api.GroupsChange{},
	"POST /groups/{into}/merge":     api.MergeRequest{},
	"POST /groups/{group}/pause":    api.ReasonRequest{},
	"POST /groups/{group}/resume":   api.ReasonRequest{},
	"POST /letters/{id}/type":       api.PickRequest{},
	"PATCH /operations/{operation}": api.RateChange{},
	"POST /overrides":               api.OverrideRequest{},
	"POST /queues/drain":            deadletter.DrainRequest{},
	"POST /queues/pause":            api.QueueRequest{},
	"POST /queues/resume":           api.QueueRequest{},
	"POST /rules/apply":             api.ApplyRequest{},
	"POST /users":                   api.UserRequest{},
	"POST /views":                   api.ViewRequest{},
}

// everyCommand calls fn for each command that is a row of the table, with the node that kong made
// of it.
func everyCommand(t *testing.T, fn func(path string, c command, node *kong.Node)) {
	t.Helper()
	parser, err := newParser(&struct{}{}, Program{})
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range parser.Model.Leaves(false) {
		fn(pathOf(leaf), commandOf(leaf), leaf)
	}
}

// full sets everything in a value, so that each text about it has all of its parts.
func full(v reflect.Value) {
	switch at := v.Addr().Interface().(type) {
	case *time.Time:
		*at = time.Now().Add(-time.Hour)
		return
	case *json.RawMessage:
		*at = json.RawMessage(`{"a":1}`)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		full(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		full(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		full(key)
		full(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				full(v.Field(i))
			}
		}
	}
}

// samples returns values of a type: one in which nothing is set, and one in which everything is.
func samples(of reflect.Type) []reflect.Value {
	set := reflect.New(of)
	full(set.Elem())
	return []reflect.Value{reflect.New(of).Elem(), set.Elem()}
}

// note notes the texts that a template uses.
func note(source string, used map[string]bool) {
	for _, name := range regexp.MustCompile(`template "([^"]+)"`).FindAllStringSubmatch(source, -1) {
		used[name[1]] = true
	}
}

// holdTexts checks that the columns and the sentences of a command name only what the answer has,
// and that they have texts for its type. It notes the texts in "used".
func holdTexts(t *testing.T, path string, c command, used map[string]bool) {
	t.Helper()
	answer := reflect.TypeOf(c.answer)
	if answer == nil {
		answer = reflect.TypeFor[map[string]any]()
	}
	hold := func(columns columns, of reflect.Type, slices bool) {
		for _, one := range (answerFlags{}).list(columns) {
			used[one.text] = true
			for _, v := range samples(of) {
				member := memberOf(v, one.member)
				if !member.IsValid() && v.IsZero() && strings.Contains(one.member, ".") {
					continue // a member of something that is not set
				}
				if slices && member.IsValid() && member.Kind() == reflect.Slice && one.member != "" {
					if member.Len() == 0 {
						continue
					}
					member = member.Index(0)
				}
				switch {
				case !member.IsValid():
					t.Errorf("dlo %s: %s has no member %q", path, of, one.member)
				case one.text != "" && texts().Lookup(one.text) == nil:
					t.Errorf("dlo %s: there is no text %q", path, one.text)
				case one.text != "":
					if _, err := textOf(one.text, member.Interface()); err != nil {
						t.Errorf("dlo %s: %v", path, err)
					}
				}
			}
		}
	}
	note(c.text+c.note+c.ask, used)
	for _, source := range []string{c.text, c.note, c.failed, c.partly} {
		for _, v := range samples(answer) {
			if _, err := sentence(source, v.Interface()); err != nil {
				t.Errorf("dlo %s: %v", path, err)
			}
		}
	}
	if c.other != nil {
		holdTexts(t, path+", the other way", *c.other, used)
	}
	dry := answer
	if c.dry != nil {
		dry = reflect.TypeOf(c.dry.answer)
		holdTexts(t, path+" --dry-run", *c.dry, used)
	}
	for _, source := range []string{c.ask, c.nothing} {
		for _, v := range samples(dry) {
			if _, err := sentence(source, v.Interface()); err != nil {
				t.Errorf("dlo %s: %v", path, err)
			}
		}
	}
	if c.rows == "" {
		hold(c.columns, answer, true)
	}
	for i, rows := range strings.Fields(c.rows) {
		list := memberOf(reflect.Zero(answer), rows)
		if !list.IsValid() {
			t.Errorf("dlo %s: %s has no list %q", path, answer, rows)
		} else if i == 0 { // further lists may have only some of the members
			hold(c.columns, list.Type().Elem(), false)
		}
	}
	for _, part := range c.parts {
		part.answer = c.answer
		holdTexts(t, path, part, used)
	}
}

// TestEveryTextFits compares the columns and the sentences of all commands with the types of the
// API. Each text of texts.tmpl must be used.
func TestEveryTextFits(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	held := func(path string, c command) { holdTexts(t, path, c, used) }
	everyCommand(t, func(path string, c command, _ *kong.Node) {
		if c.answer != nil {
			held(path, c)
		}
	})
	held("letters requeue", operate(deadletter.VerbRequeue))
	held("letters hold", operate(deadletter.VerbHold))
	checked := newVerdict(api.Topology{Findings: []topology.Finding{{}}, Looks: []topology.Report{{}}}, 1)
	for name, about := range map[string]any{
		"check": checked,
		"explored": struct {
			Brokers []deadletter.BrokerStatus
			Unknown string
			Verdict verdict
			Plans   api.Plans
			Others  []string
			Lines   block
			More    int
			Refused bool
		}{[]deadletter.BrokerStatus{{}}, "", checked, api.Plans{}, []string{"a"}, "a\n", 1, true},
		"plans": api.Plans{}, "unread": api.Topology{}, "adopted": api.AdoptedPolicies{}, "applied": topology.Applied{}, "trial": api.Trial{}, "rights": []deadletter.BrokerStatus{}, "set": descriptor.Set{},
	} {
		used[name] = true
		for _, v := range append(samples(reflect.TypeOf(about)), reflect.ValueOf(about)) {
			if _, err := textOf(name, v.Interface()); err != nil {
				t.Error(err)
			}
		}
	}
	note(textsFile, used)
	for _, one := range texts().Templates() {
		if one.Name() != "" && !used[one.Name()] {
			t.Errorf("nothing uses the text %q", one.Name())
		}
	}
}

// TestATextShowsNothingRaw checks that a text makes visible what a letter may contain.
func TestATextShowsNothingRaw(t *testing.T) {
	t.Parallel()
	got, err := sentence("{{.}}\n{{range $i, $one := lines .}}{{if $i}}{{with $one}}{{.}}{{end}}{{end}}{{end}}", "a\x1b[2J\nb\u202e")
	if want := `a\x1b[2J\nb\u202e` + "\n" + `b\u202e`; err != nil || got != want {
		t.Errorf("%q, want %q (%v)", got, want, err)
	}
}

// TestEveryFlagIsInTheRequest compares the arguments and flags of all commands with the requests.
func TestEveryFlagIsInTheRequest(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	everyCommand(t, func(path string, c command, node *kong.Node) {
		request, known := requests[c.route]
		if !known {
			return
		}
		used[c.route] = true
		for _, v := range valuesOf(node) {
			in, ok := inRequest(v)
			if !ok || in == whole || strings.Contains(c.route, "{"+in+"}") {
				continue
			}
			if set := samples(reflect.TypeOf(request))[1]; !memberOf(set, in).IsValid() {
				t.Errorf("dlo %s: %s has no member %s", path, set.Type(), in)
			}
		}
	})
	for route := range requests {
		if !used[route] {
			t.Errorf("no command calls %s", route)
		}
	}
}

// TestEveryCommandDoesSomething checks that a command has a route or code of its own, and that the
// arguments in its route are those that it has.
func TestEveryCommandDoesSomething(t *testing.T) {
	t.Parallel()
	everyCommand(t, func(path string, c command, node *kong.Node) {
		_, embeds := reflect.TypeOf(node.Target.Interface()).FieldByName("callCmd")
		if is := node.Target.Type() == reflect.TypeFor[callCmd](); (is || embeds) && c.route == "" {
			t.Errorf("dlo %s makes no call", path)
		}
		for _, name := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(c.route, -1) {
			if !slices.ContainsFunc(valuesOf(node), func(v *kong.Value) bool { in, _ := inRequest(v); return in == name[1] }) &&
				path != "letters edit" {
				t.Errorf("dlo %s has no argument %s", path, name[1])
			}
		}
	})
}

// TestANounAlone checks that a noun without a command lists, also if flags follow it.
func TestANounAlone(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"groups":                   "groups list",
		"letters --server x -q ''": "letters list",
		"digest -o json":           "digest preview",
		"groups show G-1":          "groups show",
	} {
		p := Program{Ctx: t.Context(), Getenv: func(string) string { return "" }, Stdout: io.Discard, Stderr: io.Discard}
		c, err := Parse(p, &struct{}{}, strings.Fields(line))
		if err != nil || pathOf(c.Selected()) != want {
			t.Errorf("dlo %s: %v", line, err)
		}
	}
}

func TestZeroIsKnown(t *testing.T) {
	t.Parallel()
	for n, want := range map[deadletter.Amount]string{deadletter.UnknownAmount: "unknown", 0: "0", 12: "12"} {
		if got, err := textOf("count", n); got != want || err != nil {
			t.Errorf("%d is %q: %v", n, got, err)
		}
	}
}

// TestCSVHasTimes checks that CSV has a time where a table has an age.
func TestCSVHasTimes(t *testing.T) {
	t.Parallel()
	at := time.Now().Add(-2 * time.Hour).UTC().Truncate(time.Second)
	for output, want := range map[string]string{"table": "2 h ago", "csv": at.Format(time.RFC3339)} {
		f := answerFlags{Output: output}
		rows := f.facts("saved=at|age", reflect.ValueOf(deadletter.View{At: at}))
		if len(rows) != 1 || rows[0][1] != want {
			t.Errorf("%s: %q, want %q", output, rows, want)
		}
	}
}
