package rules

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// letter returns the facts that most tests use.
func letter() Facts {
	return Facts{
		Broker: "main", VHost: "/", Queue: "billing.invoices", Exchange: "shop", Key: "order.created",
		Reason: "rejected", Type: "acme.v1.Order", Error: "Timeout: is db-1 up?",
		Attempts: 5, Reset: 2, Age: 90 * time.Minute, Serial: 7,
		Header: func(name string) (string, bool) {
			v, ok := map[string]string{"x-tenant": "48213", "x-empty": ""}[name]
			return v, ok
		},
		Field: func(path string) ([]string, bool) {
			v, ok := map[string][]string{"items.sku": {"A-1", "B-2"}, "customer.tier": {"gold"}}[path]
			return v, ok
		},
	}
}

func attempts(texts ...string) Comparisons {
	return comparisons(func(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) }, texts)
}

func age(texts ...string) Comparisons {
	return comparisons(func(text string) (int64, error) {
		d, err := time.ParseDuration(text)
		return int64(d), err
	}, texts)
}

func comparisons(value func(string) (int64, error), texts []string) Comparisons {
	var list Comparisons
	for _, text := range texts {
		c, err := ParseComparison(text, value)
		if err != nil {
			panic(err)
		}
		list = append(list, c)
	}
	return list
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		match Match
		want  bool
	}{
		{"nothing is asked", Match{}, true},
		{"a queue", Match{Queue: Patterns{"billing.invoices"}}, true},
		{"a glob", Match{Queue: Patterns{"billing.*"}}, true},
		{"a glob is for the whole name", Match{Queue: Patterns{"billing"}}, false},
		{"in its own case", Match{Queue: Patterns{"Billing.*"}}, false},
		{"one of a list", Match{Queue: Patterns{"sms", "billing.*"}}, true},
		{"none of a list", Match{Queue: Patterns{"sms", "email"}}, false},
		{
			"all clauses",
			Match{
				Queue:    Patterns{"billing.*"},
				VHost:    Patterns{"/"},
				Broker:   Patterns{"main"},
				Exchange: Patterns{"shop"},
				Key:      Patterns{"order.*"},
				Reason:   Patterns{"rejected"},
			},
			true,
		},
		{"one clause does not fit", Match{Queue: Patterns{"billing.*"}, Reason: Patterns{"expired"}}, false},
		{"a type", Match{Type: Patterns{"acme.*"}}, true},
		{"no schema", Match{NoSchema: true}, false},
		{"an error, whatever its case", Match{Error: Patterns{"*TIMEOUT*"}}, true},
		{"a question mark is one", Match{Error: Patterns{"*up?"}}, true},
		{"and nothing else", Match{Queue: Patterns{"billing?invoices"}}, false},
		{"a header", Match{Header: []Named{{"x-tenant", Patterns{"48*"}}}}, true},
		{"a header that is there", Match{Header: []Named{{"x-empty", Patterns{"*"}}}}, true},
		{"a header that is not", Match{Header: []Named{{"x-source", Patterns{"*"}}}}, false},
		{"names of headers have a case", Match{Header: []Named{{"X-Tenant", Patterns{"*"}}}}, false},
		{"two headers", Match{Header: []Named{{"x-tenant", Patterns{"48*"}}, {"x-empty", Patterns{"x"}}}}, false},
		{"a field", Match{Field: []Named{{"customer.tier", Patterns{"gold", "silver"}}}}, true},
		{"any of the values of a field", Match{Field: []Named{{"items.sku", Patterns{"B-*"}}}}, true},
		{"none of the values of a field", Match{Field: []Named{{"items.sku", Patterns{"C-*"}}}}, false},
		{"a field that is not there", Match{Field: []Named{{"customer.name", Patterns{"*"}}}}, false},
		{"attempts since they were started again", Match{Attempts: attempts("3")}, true},
		{"more attempts", Match{Attempts: attempts(">3")}, false},
		{"fewer or more", Match{Attempts: attempts("<1", ">=3")}, true},
		{"age", Match{Age: age(">1h")}, true},
		{"too old", Match{Age: age("<=1h")}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := c.match.isTrueOf(letter()); got != c.want {
				t.Errorf("%v", got)
			}
		})
	}
	m := Match{Header: []Named{{"x", Patterns{"*"}}}, Field: []Named{{"y", Patterns{"*"}}}}
	if m.isTrueOf(Facts{}) {
		t.Error("a letter without headers and fields fits")
	}
	if m := (Match{
		NoSchema: true,
		Type:     Patterns{"*"},
		Attempts: attempts("=0"),
		Age:      age(">=0s"),
	}); !m.isTrueOf(Facts{Age: -time.Hour, Attempts: 1, Reset: 2}) {
		t.Error("a letter from a clock that ran ahead, without a type")
	}
}

func TestComparisons(t *testing.T) {
	t.Parallel()
	for text, holds := range map[string][3]bool{ // the expected results are for the numbers 2, 3 and 4
		"3":     {false, true, false},
		"=3":    {false, true, false},
		"<3":    {true, false, false},
		"<=3":   {true, true, false},
		">3":    {false, false, true},
		">= 3":  {false, true, true},
		" < 4 ": {true, true, false},
	} {
		c := attempts(text)
		if got := [3]bool{c.Hold(2), c.Hold(3), c.Hold(4)}; got != holds || c.String() != text {
			t.Errorf("%s: %v", c, got)
		}
	}
	for _, text := range []string{"", "x", "-1", "<-1", "!3", "=>3", "3<", "<<3"} {
		if c, err := ParseComparison(
			text, func(text string) (int64, error) { return strconv.ParseInt(text, 10, 64) },
		); err == nil {
			t.Errorf("%q is %+v", text, c)
		}
	}
	if _, err := ParseComparison(
		">1", func(string) (int64, error) { return 0, errors.New("no") },
	); err == nil || err.Error() != "no" {
		t.Error(err)
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	set := Set{
		Rules: []Rule{
			{
				Name: "sms",
				Match: Match{
					Queue:  Patterns{"sms", "mms"},
					Error:  Patterns{"*timeout*"},
					Header: []Named{{"x-tenant", Patterns{"1*"}}},
				},
			},
			{
				Name: "billing",
				Match: Match{
					Queue:    Patterns{"billing.*"},
					Attempts: attempts("<9"),
					Age:      age(">1h"),
					Field:    []Named{{"items.sku", Patterns{"B*"}}},
				},
			},
			{Name: "rest", Match: Match{}},
			{Name: "plain", Match: Match{NoSchema: true}},
		},
		Default: Rule{Name: DefaultName},
	}
	want := []Step{
		{
			Rule: "sms",
			Clauses: []Clause{
				{Condition{"queue", "sms, mms"}, false},
				{Condition{"error", "*timeout*"}, true},
				{Condition{"header x-tenant", "1*"}, false},
			},
		},
		{
			Rule:    "billing",
			Matched: true,
			Applies: true,
			Clauses: []Clause{
				{Condition{"queue", "billing.*"}, true},
				{Condition{"attempts", "<9"}, true},
				{Condition{"age", ">1h"}, true},
				{Condition{"field items.sku", "B*"}, true},
			},
		},
		{Rule: "rest", Matched: true},
		{Rule: "plain", Clauses: []Clause{{Condition{"schema", "none"}, false}}},
		{Rule: "default", Matched: true},
	}
	if diff := cmp.Diff(want, set.Explain(letter())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	set.Rules = set.Rules[3:]
	if diff := cmp.Diff([]Step{
		want[3],
		{Rule: "default", Matched: true, Applies: true},
	}, set.Explain(letter())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	told := fmt.Sprintf("%+v", set.Explain(letter()))
	for _, value := range []string{"48213", "gold", "A-1"} {
		if strings.Contains(told, value) {
			t.Errorf("%s is told", value)
		}
	}
}

// anyText returns a random short text of only a few different characters, so that texts and
// patterns often match.
func anyText(t *rapid.T, letters, label string) string {
	return rapid.StringOfN(rapid.SampledFrom([]rune(letters)), 0, 4, -1).Draw(t, label)
}

func anyPatterns(t *rapid.T, label string) Patterns {
	var p Patterns
	for range rapid.IntRange(0, 2).Draw(t, label+" patterns") {
		p = append(p, anyText(t, "abA*", label))
	}
	return p
}

func anyComparisons(t *rapid.T, label string) Comparisons {
	var c Comparisons
	for range rapid.IntRange(0, 2).Draw(t, label+" comparisons") {
		c = append(
			c,
			attempts(
				rapid.SampledFrom([]string{"<", "<=", "=", ">", ">="}).Draw(t, "op")+strconv.Itoa(rapid.IntRange(0, 4).Draw(t, label)),
			)...,
		)
	}
	return c
}

func anyMatch(t *rapid.T, label string) Match {
	m := Match{
		Queue: anyPatterns(t, label+" queue"), Type: anyPatterns(t, label+" type"),
		Error: anyPatterns(t, label+" error"), Attempts: anyComparisons(t, label+" attempts"),
		Age: anyComparisons(t, label+" age"),
	}
	m.NoSchema = rapid.Bool().Draw(t, label+" schema")
	for _, name := range []string{"h", "i"} {
		if p := anyPatterns(t, label+" header"); len(p) > 0 {
			m.Header = append(m.Header, Named{name, p})
		}
		if p := anyPatterns(t, label+" field"); len(p) > 0 {
			m.Field = append(m.Field, Named{name, p})
		}
	}
	return m
}

func anyFacts(t *rapid.T) Facts {
	f := Facts{
		Queue: anyText(t, "abA", "queue"), Type: anyText(t, "ab", "type"), Error: anyText(t, "abAB", "error"),
		Attempts: rapid.IntRange(0, 5).Draw(t, "attempts"),
		Reset:    rapid.IntRange(0, 5).Draw(t, "reset"), Age: time.Duration(rapid.IntRange(-1, 5).Draw(t, "age")),
	}
	headers, fields := map[string]string{}, map[string][]string{}
	for _, name := range []string{"h", "i"} {
		if rapid.Bool().Draw(t, "has header") {
			headers[name] = anyText(t, "ab", "header")
		}
		if rapid.Bool().Draw(t, "has field") {
			fields[name] = []string{anyText(t, "ab", "field"), anyText(t, "ab", "field")}
		}
	}
	f.Header = func(name string) (string, bool) { v, ok := headers[name]; return v, ok }
	f.Field = func(path string) ([]string, bool) { v, ok := fields[path]; return v, ok }
	return f
}

// TestCoversAndNeverAreNotClaimedWrongly checks two claims. If Covers says that one rule covers
// another rule, the first rule must match every letter that the second one matches. If Never
// returns a clause of a rule, that rule must match no letter.
func TestCoversAndNeverAreNotClaimedWrongly(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		one, other, f := anyMatch(t, "one"), anyMatch(t, "other"), anyFacts(t)
		never, _ := one.Never()
		switch {
		case never != "" && one.isTrueOf(f):
			t.Fatalf("%+v never matches, and fits %+v", one, f)
		case never == "" && one.Covers(&other) && other.isTrueOf(f) && !one.isTrueOf(f):
			t.Fatalf("%+v covers %+v, and does not fit %+v", one, other, f)
		}
		fits := true
		for _, c := range one.Clauses(f) {
			fits = fits && c.Fits
		}
		if fits != one.isTrueOf(f) {
			t.Fatal("the clauses say otherwise")
		}
	})
}

func TestCovers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name       string
		one, other Match
		want       bool
	}{
		{"everything", Match{}, Match{Queue: Patterns{"a"}}, true},
		{
			"itself",
			Match{Queue: Patterns{"a*"}, Error: Patterns{"x"}},
			Match{Queue: Patterns{"a*"}, Error: Patterns{"x"}},
			true,
		},
		{"a wider glob", Match{Queue: Patterns{"a*"}}, Match{Queue: Patterns{"a.b*", "ac"}}, true},
		{"a narrower glob", Match{Queue: Patterns{"a.b*"}}, Match{Queue: Patterns{"a*"}}, false},
		{"stars at other places", Match{Queue: Patterns{"*a*"}}, Match{Queue: Patterns{"b*a"}}, true},
		{"a bare star is no condition", Match{Queue: Patterns{"*"}}, Match{}, true},
		{"a header that must be there is one", Match{Header: []Named{{"x", Patterns{"*"}}}}, Match{}, false},
		{"a clause more", Match{Queue: Patterns{"a"}, Reason: Patterns{"expired"}}, Match{Queue: Patterns{"a"}}, false},
		{"errors in another case", Match{Error: Patterns{"*TIMEOUT*"}}, Match{Error: Patterns{"db timeout*"}}, true},
		{"no schema", Match{NoSchema: true}, Match{Type: Patterns{""}}, true},
		{"a type is none of no schema", Match{NoSchema: true}, Match{Type: Patterns{"a.*"}}, false},
		{"no schema is any type", Match{Type: Patterns{"*"}}, Match{NoSchema: true}, true},
		{"no schema, and yet a type of a framework", Match{Type: Patterns{""}}, Match{NoSchema: true}, false},
		{"attempts in two parts", Match{Attempts: attempts("<3", ">=3")}, Match{}, true},
		{"attempts with a gap", Match{Attempts: attempts("<3", ">3")}, Match{}, false},
		{"attempts within others", Match{Attempts: attempts(">=2")}, Match{Attempts: attempts("3", ">5")}, true},
		{"age", Match{Age: age(">1h")}, Match{Age: age(">=1h")}, false},
	} {
		if got := c.one.Covers(&c.other); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestNever(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		match  Match
		clause string
	}{
		{Match{}, ""},
		{Match{NoSchema: true, Type: Patterns{"*"}}, ""},
		{Match{NoSchema: true, Type: Patterns{"acme.*"}}, ""},
		{Match{Attempts: attempts("<0")}, "attempts"},
		{Match{Attempts: attempts("<0", "1")}, ""},
		{Match{Attempts: attempts(">5", "<3")}, ""},
		{Match{Attempts: attempts(">9223372036854775807")}, "attempts"},
		{Match{Age: age("<0s")}, "age"},
	} {
		if clause, why := c.match.Never(); clause != c.clause || (why == "") != (clause == "") {
			t.Errorf("%+v: %s, %s", c.match, clause, why)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	set := Set{Default: Rule{Name: DefaultName, Retry: &Retry{Attempts: 3, First: time.Second}}}
	for i := range 100 {
		set.Rules = append(set.Rules, Rule{
			Name:  fmt.Sprint(i),
			Match: Match{Queue: Patterns{"billing.*"}, Error: Patterns{fmt.Sprintf("*no such thing %d*", i)}},
		})
	}
	f := letter()
	b.ReportAllocs()
	for b.Loop() {
		set.Decide(f)
	}
}

func (m *Match) isTrueOf(f Facts) bool { return m.matches(&f) }

// TestStopEndsAComparison checks the function Stop, which can end the comparison of a letter with
// the rules. As soon as Stop returns true, no further pattern may be checked, and no rule may
// match.
func TestStopEndsAComparison(t *testing.T) {
	t.Parallel()
	asked := 0
	f := Facts{Queue: "sms", Stop: func() bool { asked++; return asked > 2 }}
	set := &Set{
		Rules: []Rule{
			{Name: "a", Match: Match{Queue: Patterns{"x", "y", "sms"}}},
			{Name: "b", Match: Match{Queue: Patterns{"sms"}}},
		},
		Default: Rule{Name: DefaultName},
	}
	if d := set.Decide(f); d.Rule != DefaultName || asked != 4 {
		t.Errorf("rule %s after %d patterns", d.Rule, asked)
	}
	f.Stop = func() bool { return false }
	if d := set.Decide(f); d.Rule != "a" {
		t.Errorf("rule %s", d.Rule)
	}
}
