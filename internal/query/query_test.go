package query

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

var now = time.Date(2026, 11, 20, 14, 0, 0, 123_456_789, time.UTC)

// atNow permits every path of the body except the masked ones.
var atNow = Options{
	Now: now,
	Masked: func(field string) bool {
		return slices.Contains([]string{"header.authorization", "body.customer.email", "app"}, field)
	},
	Body: func(path string) bool { return path != "customer.name" },
}

func parse(t testing.TB, text string) Query {
	t.Helper()
	o := atNow
	o.Masked = nil
	q, err := Parse(text, o)
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	return q
}

func TestWithReplacesInPlace(t *testing.T) {
	t.Parallel()
	q := parse(t, "words queue:a state:dead queue:b -queue:c header.x:1")
	for _, c := range []struct {
		name   string
		field  Field
		values []string
		want   string
	}{
		{
			"several terms become one",
			Queue,
			[]string{"c", "d e", "c"},
			`queue:c,"d e" state:dead -queue:c header.x:1 words`,
		},
		{"without values the positive terms go", Queue, nil, "state:dead -queue:c header.x:1 words"},
		{
			"a new term stands before free text",
			Type,
			[]string{"T"},
			"queue:a state:dead queue:b -queue:c header.x:1 type:T words",
		},
		{"a star is a star", State, []string{"a*"}, `queue:a state:a\* queue:b -queue:c header.x:1 words`},
		{
			"another header is another field",
			"header.y",
			[]string{"2"},
			"queue:a state:dead queue:b -queue:c header.x:1 header.y:2 words",
		},
		{
			"the same header is replaced",
			"header.x",
			[]string{"2"},
			"queue:a state:dead queue:b -queue:c header.x:2 words",
		},
		{
			"free text is one term each",
			Words,
			[]string{"new", "text", "two words"},
			`queue:a state:dead queue:b -queue:c header.x:1 new text "two words"`,
		},
		{
			"a number compares",
			Attempts,
			[]string{">=3"},
			"queue:a state:dead queue:b -queue:c header.x:1 attempts:>=3 words",
		},
	} {
		before := q.String()
		if got := q.With(c.field, c.values...).String(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
		if q.String() != before {
			t.Fatalf("%s: changed the query itself to %s", c.name, q)
		}
	}
}

func TestValuesAreTheTextsOfTheOnlyPositiveTerm(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		field      Field
		want       []string
	}{
		{"each value", "state:dead,held", State, []string{"dead", "held"}},
		{"negated terms do not count", "queue:a -queue:b", Queue, []string{"a"}},
		{"two terms", "queue:a queue:b", Queue, nil},
		{"none", "state:dead", Queue, nil},
		{"only a negated one", "-queue:a", Queue, nil},
		{"a star among them", "queue:a,b*", Queue, nil},
		{"a literal star", `queue:a,b\*`, Queue, []string{"a", "b*"}},
		{"of one header", "header.x:1 header.y:2", "header.y", []string{"2"}},
		{"a group by its name", "group:418", Group, []string{"G-418"}},
		{"a comparison", "attempts:3", Attempts, nil},
		{"free text", `"a b"`, Words, []string{"a b"}},
	} {
		if got := parse(t, c.text).Values(c.field); !cmp.Equal(got, c.want) {
			t.Errorf("%s: Values(%s) of %s = %q, want %q", c.name, c.field, c.text, got, c.want)
		}
	}
}

func TestWithout(t *testing.T) {
	t.Parallel()
	q := parse(t, "word state:dead queue:a")
	for i, want := range map[int]string{
		0: "queue:a word", 1: "state:dead word", 2: "state:dead queue:a", 3: q.String(), -1: q.String(),
	} {
		if got := q.Without(i).String(); got != want {
			t.Errorf("without %d: %s, want %s", i, got, want)
		}
	}
}

func TestFixed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{
			"what is not relative stays", "state:dead since:2026-11-20 size:>1KB word",
			"state:dead since:2026-11-20 size:>1KB word",
		},
		{"since", "since:2h", "since:2026-11-20T12:00:00.123Z"},
		{"before, negated", "-before:1d", "-before:2026-11-19T14:00:00.123Z"},
		{"older than is before", "age:>2h", "before:2026-11-20T12:00:00.123Z"},
		{"at least as old as is before the next millisecond", "age:>=2h", "before:2026-11-20T12:00:00.124Z"},
		{"younger than is since the next millisecond", "age:<2h", "since:2026-11-20T12:00:00.124Z"},
		{"at most as old as is since", "-age:<=2h", "-since:2026-11-20T12:00:00.123Z"},
	} {
		q := parse(t, c.text)
		fixed := q.Fixed()
		if got := fixed.String(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
		if later, err := Parse(
			fixed.String(), Options{Now: now.Add(time.Hour)},
		); err != nil || !cmp.Equal(later, fixed) {
			t.Errorf("%s: an hour later %+v, was %+v, %v", c.name, later, fixed, err)
		}
		if q.String() != c.text {
			t.Errorf("%s: changed the query itself to %s", c.name, q)
		}
	}
}

func TestEveryResultOfAnOperationHasAName(t *testing.T) {
	t.Parallel()
	for _, r := range deadletter.Results {
		v := Value{Raw: "O-7/" + texts([]deadletter.Result{r})[0]}
		if got := parse(t, "op:"+v.Raw).Terms[0].Values[0]; got.Op != 7 || got.Result != r {
			t.Errorf("op:%s is %+v", v.Raw, got)
		}
	}
}

// TestHolds checks that a star in a term stands for any text, and that a minus reverses the result.
// If a letter does not have the field, no value matches.
func TestHolds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		term, value string
		ok, want    bool
	}{
		{"body.x:acme", "acme", true, true},
		{"body.x:acme", "acme.", true, false},
		{"body.x:acme", "", false, false},
		{"-body.x:acme", "", false, true},
		{"-body.x:acme", "acme", true, false},
		{"body.x:ac*", "acme", true, true},
		{"body.x:ac*", "ac", true, true},
		{"body.x:ac*", "a", true, false},
		{"body.x:*", "", true, true},
		{"body.x:*", "", false, false},
		{"body.x:a,b", "b", true, true},
		{`queue:a*b*c`, "a-b-c", true, true},
		{`queue:a*b*c`, "abc", true, true},
		{`queue:a*b*c`, "acb", true, false},
		{`queue:ab*b`, "ab", true, false},
		{`queue:*a*a`, "a", true, false},
		{`queue:a\*b`, "a*b", true, true},
	} {
		q, err := Parse(c.term, Options{Look: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := q.Terms[0].Holds(c.value, c.ok); got != c.want {
			t.Errorf("%s of %q, %v: %v", c.term, c.value, c.ok, got)
		}
	}
}
