package rules

import (
	"fmt"
	"slices"
	"strings"
)

// Match is what a letter must be like: every clause that is there must fit. An empty one fits every
// letter.
type Match struct {
	Queue, VHost, Broker Patterns // where it died
	Exchange, Key        Patterns // of its first publish
	Reason               Patterns
	Type                 Patterns // of the payload; a letter without one has the type ""
	Error                Patterns // whatever the case of its letters
	Header               []Named  // headers that must be there and fit, in the order of the file
	Field                []Named  // paths of the decoded body at which one value must fit
	Attempts             Comparisons
	Age                  Comparisons // nanoseconds since it was received first
	NoSchema             bool        // no schema may read it
}

// Named is what stands under a name or path must be like.
type Named struct {
	Name string
	Want Patterns
}

// fits says whether a letter fits all clauses; was are earlier names of its broker.
func (m *Match) fits(f *Facts, was []string) bool {
	all := true
	m.visit(f, was, func(_, _ string, _ fmt.Stringer, fits bool) bool {
		all = fits
		return fits
	})
	return all
}

// Clauses holds a letter against each clause, in the order in which docs/rules.md names them; was
// are earlier names of its broker.
func (m *Match) Clauses(f Facts, was []string) []Clause {
	var list []Clause
	m.visit(&f, was, func(field, name string, want fmt.Stringer, fits bool) bool {
		list = append(list, Clause{Field: strings.TrimSpace(field + " " + name), Want: want.String(), Fits: fits})
		return true
	})
	return list
}

// visit calls see for each clause until it returns false.
func (m *Match) visit(f *Facts, was []string, see func(field, name string, want fmt.Stringer, fits bool) bool) {
	for _, c := range []struct {
		field string
		want  *Patterns
		is    string
		or    []string
	}{
		{"queue", &m.Queue, f.Queue, nil},
		{"vhost", &m.VHost, f.VHost, nil},
		{"broker", &m.Broker, f.Broker, was},
		{"exchange", &m.Exchange, f.Exchange, nil},
		{"key", &m.Key, f.Key, nil},
		{"reason", &m.Reason, f.Reason, nil},
		{"type", &m.Type, f.Type, nil},
	} {
		if len(*c.want) > 0 && !see(c.field, "", c.want, f.fits(*c.want, c.is) || slices.ContainsFunc(c.or, func(is string) bool { return f.fits(*c.want, is) })) {
			return
		}
	}
	if m.NoSchema && !see("schema", "", noSchema{}, f.Unread || f.Type == "") {
		return
	}
	if len(m.Error) > 0 && !see("error", "", &m.Error, f.fits(m.Error.lower(), strings.ToLower(f.Error))) {
		return
	}
	if len(m.Attempts) > 0 && !see("attempts", "", &m.Attempts, m.Attempts.Hold(int64(f.used()))) {
		return
	}
	if len(m.Age) > 0 && !see("age", "", &m.Age, m.Age.Hold(int64(max(0, f.Age)))) {
		return
	}
	for i := range m.Header {
		if h := &m.Header[i]; !see("header", h.Name, &h.Want, f.header(h)) {
			return
		}
	}
	for i := range m.Field {
		if p := &m.Field[i]; !see("field", p.Name, &p.Want, f.field(p)) {
			return
		}
	}
}

type noSchema struct{}

func (noSchema) String() string { return "none" }

// used is how many attempts count: those since its retries were begun again.
func (f *Facts) used() int { return max(0, f.Attempts-f.Reset) }

// fits says whether one of the patterns fits a text, until Stop says that this is of no use.
func (f *Facts) fits(p Patterns, text string) bool {
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
	return ok && f.fits(h.Want, value)
}

func (f *Facts) field(p *Named) bool {
	if f.Field == nil {
		return false
	}
	values, ok := f.Field(p.Name)
	return ok && slices.ContainsFunc(values, func(value string) bool { return f.fits(p.Want, value) })
}
