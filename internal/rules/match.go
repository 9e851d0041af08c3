package rules

import (
	"fmt"
	"slices"
	"strings"
)

// Match describes the letters to which a rule applies. A letter must match every clause that is
// present. An empty Match matches every letter.
type Match struct {
	Queue, VHost, Broker Patterns // broker, vhost and queue in which the letter died
	Exchange, Key        Patterns // exchange and routing key with which the letter was first published
	Reason               Patterns
	Type                 Patterns // type of the payload; a letter without a type has the type ""
	Error                Patterns // error text; upper and lower case make no difference
	Header               []Named  // headers that must exist and match, in the order of the configuration file
	Field                []Named  // paths in the decoded body; at least one value at each path must match
	Attempts             Comparisons
	Age                  Comparisons // time since the letter was first received, in nanoseconds
	NoSchema             bool        // only letters that no schema can read match
}

// Named is a condition on the value of a header or on the values at a path in the body.
type Named struct {
	Name string
	Want Patterns
}

// matches reports whether a letter matches all clauses.
func (m *Match) matches(f *Facts) bool {
	all := true
	m.visit(f, func(_, _ string, _ fmt.Stringer, fits bool) bool {
		all = fits
		return fits
	})
	return all
}

// Clauses returns the result of each clause for a letter, in the order of docs/rules.md.
func (m *Match) Clauses(f Facts) []Clause {
	var list []Clause
	m.visit(&f, func(field, name string, want fmt.Stringer, fits bool) bool {
		list = append(list, Clause{Condition{strings.TrimSpace(field + " " + name), want.String()}, fits})
		return true
	})
	return list
}

// Conditions returns the conditions, in the order of docs/rules.md.
func (m *Match) Conditions() (list []Condition) {
	for _, c := range m.Clauses(Facts{}) {
		list = append(list, c.Condition)
	}
	return list
}

// visit calls "report" with the result of each clause. It stops when "report" returns false.
func (m *Match) visit(f *Facts, report func(field, name string, want fmt.Stringer, fits bool) bool) {
	for _, c := range []struct {
		field string
		want  *Patterns
		is    string
	}{
		{"queue", &m.Queue, f.Queue},
		{"vhost", &m.VHost, f.VHost},
		{"broker", &m.Broker, f.Broker},
		{"exchange", &m.Exchange, f.Exchange},
		{"key", &m.Key, f.Key},
		{"reason", &m.Reason, f.Reason},
		{"type", &m.Type, f.Type},
	} {
		if len(*c.want) > 0 && !report(c.field, "", c.want, f.matchesAny(*c.want, c.is)) {
			return
		}
	}
	if m.NoSchema && !report("schema", "", noSchema{}, f.Unread || f.Type == "") {
		return
	}
	if len(m.Error) > 0 && !report("error", "", &m.Error, f.matchesAny(m.Error.lower(), strings.ToLower(f.Error))) {
		return
	}
	if len(m.Attempts) > 0 && !report("attempts", "", &m.Attempts, m.Attempts.Hold(int64(f.usedAttempts()))) {
		return
	}
	if len(m.Age) > 0 && !report("age", "", &m.Age, m.Age.Hold(int64(max(0, f.Age)))) {
		return
	}
	for i := range m.Header {
		if h := &m.Header[i]; !report("header", h.Name, &h.Want, f.header(h)) {
			return
		}
	}
	for i := range m.Field {
		if p := &m.Field[i]; !report("field", p.Name, &p.Want, f.field(p)) {
			return
		}
	}
}

type noSchema struct{}

func (noSchema) String() string { return "none" }

// usedAttempts returns the number of attempts that count as retries. These are the attempts since
// the letter's retries were last restarted.
func (f *Facts) usedAttempts() int { return max(0, f.Attempts-f.Reset) }

// matchesAny reports whether one of the patterns matches a text. If the function Stop returns true,
// matchesAny checks no further patterns and returns false.
func (f *Facts) matchesAny(p Patterns, text string) bool {
	if f.Stop == nil || len(p) == 0 {
		return p.Fit(text)
	}
	return slices.ContainsFunc(p, func(one string) bool { return !f.Stop() && Patterns{one}.Fit(text) })
}

func (f *Facts) header(h *Named) bool {
	if f.Header == nil {
		return false
	}
	value, ok := f.Header(h.Name)
	return ok && f.matchesAny(h.Want, value)
}

func (f *Facts) field(p *Named) bool {
	if f.Field == nil {
		return false
	}
	values, ok := f.Field(p.Name)
	return ok && slices.ContainsFunc(values, func(value string) bool { return f.matchesAny(p.Want, value) })
}
