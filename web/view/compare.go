package view

import (
	"html"
	"strings"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// ComparePage compares two letters field by field.
type ComparePage struct {
	Shell
	Query  string    // the query of the list that contains the letters
	Typed  [2]string // the two ids that were requested
	Done   bool      // the letters were compared
	Edited bool      // the two sides are one letter as received and as edited
	A, B   deadletter.Row
	Fields []ComparedField
}

// ComparedField is one field of both letters.
type ComparedField struct {
	Part     string // "fact", "property", "header" or "body"
	Path     string // "" is the whole body
	A, B     string
	Sameness Sameness
}

// Sameness is the result of comparing one field.
type Sameness string

// These are the possible results when one field of two letters is compared.
const (
	SameEqual      Sameness = "same"
	SameDifferent  Sameness = "different"
	SameOnlyA      Sameness = "only_a"
	SameOnlyB      Sameness = "only_b"
	SameHidden     Sameness = "hidden"
	SameUnfinished Sameness = "unfinished"
)

// These constants limit what the page of a comparison shows. The API has no such limits.
const (
	comparedShown  = 200       // the maximum number of fields in one table
	comparedBudget = 50 * 1000 // the maximum size of the HTML of one table in bytes
	comparedValue  = 300       // the maximum size of a value in bytes
)

// comparedRow is a field as the table shows it.
type comparedRow struct {
	ComparedField
	Name, ShownA, ShownB string
}

// fitCompared returns as many fields as the table has room for. It also returns the number of
// fields that it omits.
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

// sorted divides the fields into three lists: the fields that differ, the fields that were not
// fully compared, and the fields that are equal.
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

// summary describes the result of the comparison.
func (p ComparePage) summary() string {
	different, open, same := p.sorted()
	text := Number(
		len(different), "field differs", "fields differ",
	) + ", " + Number(len(same), "is the same", "are the same")
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

// values returns the values of both letters. If long values differ, both begin shortly before the
// first difference.
func (f ComparedField) values() (a, b string) {
	a, b = f.A, f.B
	const before = 40
	if f.Sameness == SameDifferent && (len(a) > comparedValue || len(b) > comparedValue) {
		if at := differAt(a, b); at > comparedValue/2 {
			a, b = "…"+textFrom(a, at-before), "…"+textFrom(b, at-before)
		}
	}
	return line(a, comparedValue), line(b, comparedValue)
}

// differAt returns the index of the first byte in which a and b differ.
func differAt(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

func textFrom(text string, at int) string {
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	return text[at:]
}

// whyNotCompared returns a few words on why a field was not fully compared. It returns "" if the
// field was fully compared.
func (f ComparedField) whyNotCompared() string {
	switch f.Sameness {
	case SameHidden:
		return "masked, not compared"
	case SameUnfinished:
		return "the same as far as shown"
	}
	return ""
}

// side returns the name of one of the two compared letters: "A" or "B". If the page compares the
// two versions of an edited letter, the names are "Received" and "Edited".
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

// CompareURL returns the URL of the page that compares the letters a and b. If b is "", the page
// asks for the second letter.
func CompareURL(a, b deadletter.ID, q string) string {
	return address("/letters/compare", "a", string(a), "b", string(b), "q", shortQuery(q))
}

// typedID returns the id that was entered for the side with index i, shortened.
func (p ComparePage) typedID(i int) string { return deadletter.Cut(strings.TrimSpace(p.Typed[i]), 60) }
