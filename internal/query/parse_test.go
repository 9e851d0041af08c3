package query

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// describe returns the parts of a term in one line.
func describe(term Term) string {
	s := string(term.Field)
	if term.Name != "" {
		s += fmt.Sprintf(".%q", term.Name)
	}
	if term.Not {
		s = "not " + s
	}
	for _, v := range term.Values {
		s += fmt.Sprintf(" %q", v.Pattern)
		if v.Raw != strings.Join(v.Pattern, "*") {
			s += fmt.Sprintf(" written %q", v.Raw)
		}
		if v.Compare != "" || v.Number != 0 {
			s += fmt.Sprintf(" number %s %d", v.Compare, v.Number)
		}
		if !v.Time.IsZero() {
			s += " time " + v.Time.Format(time.RFC3339Nano)
		}
		if v.Op != 0 {
			s += fmt.Sprintf(" operation %d %q", v.Op, v.Result)
		}
	}
	return s
}

// TestParse parses each query of testdata/parse.golden. A line with a query begins with == or, if
// the query is a text of Go, with =q. Arrows follow a query: its terms, or the mistake that people
// are told, with its position. `go test -update` rewrites what follows. Some queries are allowed
// only where nothing is masked; after their terms comes the mistake that they are elsewhere.
func TestParse(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("testdata/parse.golden")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for line := range strings.Lines(string(file)) {
		text, isQuery := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "== ")
		if quoted, found := strings.CutPrefix(text, "=q "); found {
			isQuery = true
			if text, err = strconv.Unquote(quoted); err != nil {
				t.Fatal(quoted, err)
			}
		}
		if !isQuery {
			if strings.HasPrefix(line, "# ") {
				all.WriteString(line)
			}
			continue
		}
		all.WriteString(line)
		_, err = Parse(text, atNow)
		var mistake *Error
		if err != nil && (!errors.As(err, &mistake) || !errors.Is(err, deadletter.ErrInvalid) ||
			deadletter.Visible(err.Error()) != err.Error()) {
			t.Errorf("Parse(%q) = %v, which is no mistake or is not safe on a terminal", text, err)
		}
		o := atNow
		o.Masked = nil
		got, bad := Parse(text, o)
		if bad == nil {
			for _, term := range got.Terms {
				all.WriteString("-> " + describe(term) + "\n")
			}
			if diff := cmp.Diff(got, parse(t, got.String())); diff != "" {
				t.Errorf("%s, read again: %s", got, diff)
			}
		}
		if mistake != nil {
			fmt.Fprintf(&all, "-> at %d: %s\n", mistake.Pos, mistake.Want)
		}
	}
	testenv.GoldenText(t, "parse.golden", all.String())
}

// TestQueriesAreBounded checks that a query with too many parts is a mistake at the first part that
// is too many.
func TestQueriesAreBounded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		pos  int
		want string
	}{
		{"queue:" + strings.Repeat("a", 5000), MaxText, "at most 4096 bytes"},
		{strings.Repeat("a ", maxTerms) + "b", 2 * maxTerms, "at most 50 terms"},
		{"queue:" + strings.Repeat("a,", maxValues) + "b", 6 + 2*maxValues, "at most 500 values"},
	} {
		_, err := Parse(c.text, atNow)
		var mistake *Error
		if !errors.As(err, &mistake) || mistake.Pos != c.pos || !strings.Contains(mistake.Want, c.want) {
			t.Errorf("Parse(%.60q) = %v, want position %d with %q", c.text, err, c.pos, c.want)
		}
	}
}

func TestAForgottenColonIsNoticed(t *testing.T) {
	t.Parallel()
	for _, h := range Help() {
		name, compared, _ := strings.Cut(h.Example, ":")
		if !strings.ContainsAny(compared, "<>") {
			continue
		}
		if _, err := Parse(name+compared, atNow); err == nil ||
			!strings.Contains(err.Error(), "a colon is missing here, for example "+h.Example) {
			t.Errorf("%s%s is answered %v", name, compared, err)
		}
	}
}

// TestAWrongNumberIsOfTheFieldThatWasAsked checks that the error for a wrong number names the right
// field, although all fields with numbers use the same parser.
func TestAWrongNumberIsOfTheFieldThatWasAsked(t *testing.T) {
	t.Parallel()
	if _, err := parseNumber("nacks", ""); err == nil || !strings.HasPrefix(err.Error(), "nacks is a number") {
		t.Error(err)
	}
}

func TestNothingOfTheBodyIsSearchableUnlessSaid(t *testing.T) {
	t.Parallel()
	if _, err := Parse("body.a:1", Options{}); err == nil || !strings.Contains(err.Error(), "search.fields") {
		t.Error(err)
	}
	if q, err := Parse(
		"header.authorization:1 since:1h", Options{},
	); err != nil || time.Since(q.Terms[1].Values[0].Time) < time.Hour {
		t.Error(q, err)
	}
}

func TestEveryFieldHasHelpWhoseExampleAndValuesParse(t *testing.T) {
	t.Parallel()
	var fields []Field
	for _, h := range Help() {
		fields = append(fields, h.Field)
		if h.Help == "" || parse(t, h.Example).Terms[0].Field != h.Field {
			t.Errorf("%+v", h)
		}
		for _, v := range h.Values {
			parse(t, string(h.Field)+":"+v)
		}
	}
	if !slices.Equal(fields, Fields) {
		t.Errorf("help is about %s, and the fields are %s", fields, Fields)
	}
}

func Example() {
	q, err := Parse(`"tenant unknown" state:dead,held queue:billing.* -reason:expired since:2h`, Options{
		Now: time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(q)
	fmt.Println(q.Fixed())
	fmt.Println(q.With(Queue, "sms").Without(3))
	_, err = Parse("state:dead quue:sms", Options{})
	sentence, _, _ := strings.Cut(err.Error(), ";")
	fmt.Println(sentence)
	// Output:
	// state:dead,held queue:billing.* -reason:expired since:2h "tenant unknown"
	// state:dead,held queue:billing.* -reason:expired since:2026-11-20T12:00:00.000Z "tenant unknown"
	// state:dead,held queue:sms -reason:expired "tenant unknown"
	// at character 12: there is no field "quue" (did you mean queue?)
}

// TestAnIndexedPathWithoutItsPrefixIsNamed checks a query in which the path of a body field lacks
// its prefix. People forget the prefix because the titles of facets do not contain it. The error
// must suggest the path with its prefix.
func TestAnIndexedPathWithoutItsPrefixIsNamed(t *testing.T) {
	t.Parallel()
	_, err := Parse("tenant_id:48213", Options{Body: func(path string) bool { return path == "tenant_id" }})
	if err == nil || !strings.Contains(err.Error(), `there is no field "tenant_id" (did you mean body.tenant_id?)`) {
		t.Error(err)
	}
}
