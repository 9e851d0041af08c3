package query

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// samples contains values that fields accept, as people might write them. A field that is not in
// samples accepts any text.
var samples = map[Field][]string{
	State:    {"dead", "Held", `"received"`},
	Severity: {"page", "digest"},
	Status:   {"new", "SNOOZED"},
	Group:    {"G-418", "7", `"g-12"`},
	ID:       {"a6b18c20", "0197a3c2-5b1e-7ac0-9d3f-44e2a6b18c20", "0197A3C2-5B1E-7AC0-9D3F-44E2A6B18C20"},
	Op:       {"O-77", "77/done", "o-77/came-back"},
	Doubt:    {"restart", "Cut-Off"},
	Sort:     {"oldest", "SIZE"},
	Read:     {"json", "JSON", "unk*", `""`},
	Attempts: {"3", ">=3", `"<10"`, "007"},
	Size:     {"0", "<=64KiB", ">1MB", ">=1gib"},
	Age:      {">2h", ">=1d12h", "<90s", `"<=1w"`},
	Since:    {"2h", "1d12h", "2026-11-20", "2026-11-20T14:00Z", `"2026-11-20T14:00:30.5+01:00"`},
	Before:   {"3d", "2026-11-20T14:00", "0001-01-01T00:00:00Z"},
}

// nastyText generates texts from all characters that have a meaning in the language. Each test
// needs its own generators, because rapid 1.3 sets their names without a lock.
func nastyText() *rapid.Generator[string] {
	return rapid.StringOf(rapid.SampledFrom([]rune("ab*\\\"-,:; .\t\n\x00é<>=/O")))
}

// queries generates random queries.
func queries() *rapid.Generator[string] { return rapid.Custom(anyQuery) }

func anyQuery(t *rapid.T) string {
	var terms []string
	sorted := false
	for range rapid.IntRange(0, 6).Draw(t, "terms") {
		f := rapid.SampledFrom(append(slices.Clone(Fields), Words, Words)).Draw(t, "field")
		term := rapid.SampledFrom([]string{"", "", "-"}).Draw(t, "minus")
		if f == Sort {
			if sorted {
				continue
			}
			term, sorted = "", true
		}
		if f == Words {
			terms = append(terms, term+rapid.SampledFrom([]string{
				"word", "wo-rd", "pre*", `st\*r`, "a,b", `a\b`, `"quoted text"`,
				quote("x" + nastyText().Draw(t, "free text")),
			}).Draw(t, "word"))
			continue
		}
		term += string(f)
		if f == Header || f == Body {
			term += "." + rapid.SampledFrom([]string{
				"x-tenant", "a.b.c", `"a b"`, quote("x" + nastyText().Draw(t, "name")),
			}).Draw(t, "name")
		}
		count := rapid.IntRange(1, 4).Draw(t, "values")
		if f == Age || f == Since || f == Before || f == Sort {
			count = 1
		}
		var values []string
		for range count {
			switch own := samples[f]; {
			case own != nil:
				values = append(values, rapid.SampledFrom(own).Draw(t, "value"))
			case slices.Contains(prefixes, f):
				literal := strings.ReplaceAll(quote(nastyText().Draw(t, "value")), "*", `\*`)
				values = append(values, rapid.SampledFrom([]string{
					literal, literal[:len(literal)-1] + `*"`, "*", "acme*", `a\*`, "acme",
				}).Draw(t, "value"))
			default:
				values = append(values, rapid.SampledFrom([]string{
					quote(nastyText().Draw(t, "value")), "*", "acme*", `a\*b*c`, "**x**", "acme", `back\slash`,
				}).Draw(t, "value"))
			}
		}
		terms = append(terms, term+":"+strings.Join(values, ","))
	}
	return strings.Join(terms, " ")
}

// TestQueriesSurviveTheirText checks that the text of a query parses to an equal query. It also
// checks the text of a query in which Fixed has replaced relative times. This text must parse to an
// equal query even a year later.
func TestQueriesSurviveTheirText(t *testing.T) {
	t.Parallel()
	o := Options{Now: now, Body: func(string) bool { return true }}
	later := o
	later.Now = now.Add(365 * 24 * time.Hour)
	rapid.Check(t, func(t *rapid.T) {
		text := queries().Draw(t, "query")
		q, err := Parse(text, o)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if again, err := Parse(q.String(), o); err != nil || !cmp.Equal(q, again) {
			t.Fatalf("%q is written as %q, which is %v: %s", text, q, err, cmp.Diff(q, again))
		}
		fixed := q.Fixed()
		if again, err := Parse(fixed.String(), later); err != nil || !cmp.Equal(fixed, again) {
			t.Fatalf("%q is fixed as %q, which is %v: %s", text, fixed, err, cmp.Diff(fixed, again))
		}
		for i, term := range q.Terms {
			if one, err := Parse(term.String(), o); err != nil || !cmp.Equal(one.Terms, []Term{term}) {
				t.Fatalf("term %q is %v: %s", term, err, cmp.Diff(one.Terms, []Term{term}))
			}
			if rest := q.Without(i); len(rest.Terms) != len(q.Terms)-1 ||
				slices.ContainsFunc(rest.Terms, func(r Term) bool { return len(r.Values) == 0 }) {
				t.Fatalf("%q without %d is %q", q, i, rest)
			}
		}
	})
}

// TestWithMeansExactlyItsTexts checks that a query can select any value of a letter, even if the
// value contains special bytes.
func TestWithMeansExactlyItsTexts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfNDistinct(
			rapid.OneOf(
				nastyText(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
			),
			1, 4, rapid.ID[string],
		).Draw(t, "values")
		for _, f := range []Field{Queue, Type, Reason, ErrorText, Exchange, "header.x", "header.a b:*"} {
			q := Query{}.With(f, values...)
			again, err := Parse(q.String(), Options{})
			if err != nil || !cmp.Equal(q, again) || !slices.Equal(again.Values(f), values) {
				t.Fatalf("%s:%q is written as %q, which is %v: %q", f, values, q, err, again.Values(f))
			}
		}
	})
}

// matches reports whether a term on the age is true for a letter that was received at a given time.
// The test compares this result with that of the language.
func matches(t Term, received time.Time) bool {
	v := t.Values[0]
	var ok bool
	switch {
	case t.Field == Since:
		ok = !received.Before(v.Time)
	case t.Field == Before, v.Compare == More:
		ok = received.Before(v.Time)
	case v.Compare == AtLeast:
		ok = !received.After(v.Time)
	case v.Compare == Less:
		ok = received.After(v.Time)
	case v.Compare == AtMost:
		ok = !received.Before(v.Time)
	}
	return ok != t.Not
}

func TestFixedSelectsWhatItSelectedThen(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"age:>2h", "age:>=2h", "age:<2h", "age:<=2h", "-age:>=2h", "since:2h", "before:2h", "-before:2h",
	} {
		q := parse(t, text)
		edge := now.Truncate(time.Millisecond).Add(-2 * time.Hour)
		for _, d := range []time.Duration{-time.Hour, -time.Millisecond, 0, time.Millisecond, time.Hour} {
			received := edge.Add(d)
			if was, is := matches(q.Terms[0], received), matches(q.Fixed().Terms[0], received); was != is {
				t.Errorf("%s, received %s after the edge: %v, and %v as %s", text, d, was, is, q.Fixed())
			}
		}
	}
}

// FuzzParse checks that any text is either a query or a mistake. The position of a mistake must be
// inside the text. The text of a query must parse to an equal query. If the method Fixed is called
// twice, its result must be the same as after the first call.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"state:dead", `queue:"a b",c type:x`, "-x:y", `"`, "state:dead,", "group:G-1", "queue:\x00", `queue:"\`,
		`header."a b":x*`, "since:2h age:>1d size:>=1KiB", `a\*b "c" pre*`, "op:O-7/came-back",
	} {
		f.Add(s)
	}
	seeded := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		f.Add(queries().Example(seeded.IntN(1000)))
	}
	o := Options{Now: now, Body: func(string) bool { return true }}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := Parse(text, o)
		if err != nil {
			var mistake *Error
			if !errors.As(err, &mistake) || mistake.Pos < 0 || mistake.Pos > len(text) || mistake.Want == "" {
				t.Fatalf("%v", err)
			}
			return
		}
		for name, q := range map[string]Query{"itself": q, "fixed": q.Fixed()} {
			written := q.String()
			again, err := Parse(written, o)
			if len(written) > MaxText && err != nil {
				continue // the id or time in the text of the query may be longer than the given one
			}
			if err != nil || !cmp.Equal(q, again) {
				t.Fatalf("%q, %s, became %q: %v", text, name, written, err)
			}
		}
		if once := q.Fixed(); !cmp.Equal(once, once.Fixed()) {
			t.Fatalf("%q fixed twice is %q", text, once.Fixed())
		}
	})
}

func ExampleQuery_With() {
	q, _ := Parse("queue:sms timeout", Options{})
	fmt.Println(q.With(Queue, "sms", "my queue").With(State, "dead"))
	// Output: queue:sms,"my queue" state:dead timeout
}
