package view

import (
	"html"
	"strings"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// ComparePage is two letters, field by field.
type ComparePage struct {
	Shell
	Query  string    // of the list that they are of
	Typed  [2]string // the letters as they were asked for
	Done   bool      // they were compared
	Edited bool      // they are one letter, as it was received and as it was edited
	A, B   deadletter.Row
	Fields []ComparedField
}

// ComparedField is a field of two letters.
type ComparedField struct {
	Part     string // fact, property, header or body
	Path     string // "" = the whole body
	A, B     string
	Sameness Sameness
}

// Sameness is what the comparison of a field came to.
type Sameness string

// What comparisons come to.
const (
	SameEqual      Sameness = "same"
	SameDifferent  Sameness = "different"
	SameOnlyA      Sameness = "only_a"
	SameOnlyB      Sameness = "only_b"
	SameHidden     Sameness = "hidden"
	SameUnfinished Sameness = "unfinished"
)

// What a comparison shows at most; the API has all of it.
const (
	comparedShown  = 200       // fields of one table
	comparedBudget = 50 * 1000 // bytes of HTML of one table
	comparedValue  = 300       // bytes of a value
)

// comparedRow is a field as its table shows it.
type comparedRow struct {
	ComparedField
	Name, ShownA, ShownB string
}

// fitCompared returns as many fields as a table has room for, and how many are left.
func fitCompared(fields []ComparedField) (rows []comparedRow, left int) {
	budget := comparedBudget
	for i, f := range fields {
		r := comparedRow{ComparedField: f, Name: f.name()}
		r.ShownA, r.ShownB = f.values()
		budget -= rowCost + len(html.EscapeString(r.Name)) + len(html.EscapeString(r.ShownA)) + len(html.EscapeString(r.ShownB))
		if i == comparedShown || budget < 0 {
			return rows, len(fields) - i
		}
		rows = append(rows, r)
	}
	return rows, 0
}

// sorted divides the fields: those that differ, those that were not compared to their end, and
// equal ones.
func (p ComparePage) sorted() (different, open, same []ComparedField) {
	for _, f := range p.Fields {
		switch f.Sameness {
		case SameEqual:
			same = append(same, f)
		case SameHidden, SameUnfinished:
			open = append(open, f)
		default:
			different = append(different, f)
		}
	}
	return different, open, same
}

// summary says what a comparison came to.
func (p ComparePage) summary() string {
	different, open, same := p.sorted()
	text := Number(len(different), "field differs", "fields differ") + ", " + Number(len(same), "is the same", "are the same")
	if len(open) > 0 {
		text += ", " + Number(len(open), "was not compared", "were not compared")
	}
	return text + "."
}

func (f ComparedField) name() string {
	if f.Path == "" {
		return "(whole body)"
	}
	return line(f.Path, 200)
}

// values are both values from where they begin to differ.
func (f ComparedField) values() (a, b string) {
	a, b = f.A, f.B
	const before = 40
	if f.Sameness == SameDifferent && (len(a) > comparedValue || len(b) > comparedValue) {
		if at := differAt(a, b); at > comparedValue/2 {
			a, b = "…"+from(a, at-before), "…"+from(b, at-before)
		}
	}
	return line(a, comparedValue), line(b, comparedValue)
}

// differAt is the first byte that differs.
func differAt(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

func from(text string, at int) string {
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	return text[at:]
}

// word says in short what a comparison came to where it is no difference.
func (f ComparedField) word() string {
	switch f.Sameness {
	case SameHidden:
		return "masked, not compared"
	case SameUnfinished:
		return "the same as far as shown"
	}
	return ""
}

// side is what one of the two is called.
func (p ComparePage) side(i int) string {
	if p.Edited {
		return []string{"Received", "Edited"}[i]
	}
	return []string{"A", "B"}[i]
}

func (p ComparePage) title() string {
	if p.Edited {
		return "What the edit changed"
	}
	return "Compare letters"
}

// CompareURL is the page that compares two letters; b "" asks for the other one.
func CompareURL(a, b deadletter.ID, q string) string {
	return address("/letters/compare", "a", string(a), "b", string(b), "q", carried(q))
}

// typed is what is in the fields of the form, short.
func (p ComparePage) typed(i int) string { return deadletter.Cut(strings.TrimSpace(p.Typed[i]), 60) }
