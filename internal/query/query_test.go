package query

import (
	"errors"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       []Term
	}{
		{"nothing selects everything", "  ", nil},
		{"a comma is OR, a space is AND", "state:dead,held queue:sms", []Term{{State, []string{"dead", "held"}}, {Queue, []string{"sms"}}}},
		{"quotes hold spaces, commas, quotes and colons", `queue:"a b","c,d" type:"say \"x:y\" \\"`, []Term{{Queue, []string{"a b", "c,d"}}, {Type, []string{`say "x:y" \`}}}},
		{"a plain value may hold a colon", "queue:a:b", []Term{{Queue, []string{"a:b"}}}},
		{"field names in any case", "STATE:dead", []Term{{State, []string{"dead"}}}},
		{"a value once", "reason:x,x,y", []Term{{Reason, []string{"x", "y"}}}},
		{"an empty value is quoted", `reason:""`, []Term{{Reason, []string{""}}}},
		{"a group by its name", "group:G-418", []Term{{Group, []string{"G-418"}}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Parse(c.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.Terms); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMistakesHaveAPosition(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		pos  int
		want string
	}{
		{"state:dead attempts:3", 11, `no field "attempts"`},
		{"state:dead hello", 11, "a term looks like"},
		{"state:", 6, "value is missing"},
		{"state:dead,", 11, "value is missing"},
		{"state:deaf", 6, `no state "deaf"`},
		{`queue:"open`, 6, "not closed"},
		{`queue:"a"b`, 9, "after a closing quote"},
		{`queue:a"b"`, 7, "a quote stands around"},
		{"group:G-x", 6, "G-418"},
		{"-state:dead", 0, "no field"},
		{"queue:" + strings.Repeat("a", 5000), maxText, "at most"},
	} {
		_, err := Parse(c.text)
		var mistake *Error
		if !errors.As(err, &mistake) || mistake.Pos != c.pos || !strings.Contains(mistake.Want, c.want) || !errors.Is(err, deadletter.ErrInvalid) {
			t.Errorf("Parse(%.40q) = %v, want position %d with %q", c.text, err, c.pos, c.want)
		}
	}
}

func TestWithReplacesInPlace(t *testing.T) {
	t.Parallel()
	q, err := Parse("queue:a state:dead queue:b")
	if err != nil {
		t.Fatal(err)
	}
	if got := q.With(Queue, "c", "d e").String(); got != `queue:c,"d e" state:dead` {
		t.Error(got)
	}
	if got := q.With(Queue).With(Type, "T").String(); got != "state:dead type:T" {
		t.Error(got)
	}
	if q.Values(Queue) != nil || !cmp.Equal(q.Values(State), []string{"dead"}) {
		t.Error(q.Values(Queue), q.Values(State))
	}
}

// FuzzParse: any text is a query or a mistake with a position inside the text, and a query read back from its own text is the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"state:dead", `queue:"a b",c type:x`, "-x:y", `"`, "state:dead,", "group:G-1", "queue:\x00", `queue:"\`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := Parse(text)
		if err != nil {
			var mistake *Error
			if !errors.As(err, &mistake) || mistake.Pos < 0 || mistake.Pos > len(text) {
				t.Fatalf("%v", err)
			}
			return
		}
		again, err := Parse(q.String())
		if err != nil && len(q.String()) <= maxText {
			t.Fatalf("%q: %v", q.String(), err)
		}
		if err == nil && !cmp.Equal(q, again) {
			t.Fatalf("%q became %q", text, q.String())
		}
	})
}
