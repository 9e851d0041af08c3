package view

import "github.com/a-h/templ"

// Facet contains the values of one field with their counts.
type Facet struct {
	Title  string
	Values []FacetValue // the first facetShown values and all selected values are visible
	More   int          // the number of omitted values
	Closed bool         // the values are collapsed

	Sampled int // the number of newest letters that were counted; 0 means all
}

// FacetValue is one value of a facet. Its buttons request the list again with Term added, removed
// or excluded.
type FacetValue struct {
	Label string
	Term  string // a term of the query language, such as field:value
	Count int
	On    bool
	Not   bool // the value is excluded
}

// facetShown is the number of values of a facet that are visible. The other values are collapsed.
const facetShown = 8

// split returns the visible values and the collapsed values.
func (f Facet) split() (shown, rest []FacetValue) {
	for i, v := range f.Values {
		if i < facetShown || v.On || v.Not || len(f.Values) <= facetShown+1 {
			shown = append(shown, v)
		} else {
			rest = append(rest, v)
		}
	}
	return shown, rest
}

func (p LettersPage) filters() int {
	n := 0
	for _, f := range p.Facets {
		for _, v := range f.Values {
			if v.On || v.Not {
				n++
			}
		}
	}
	return n
}

func facetCount(n int) string {
	if n < 10_000 {
		return Count(n)
	}
	return Compact(n)
}

// facetBudget is the maximum number of bytes of HTML that all facets of a page may take. A long
// query leaves less for them, because the page repeats the query several times.
const facetBudget = 20_000

// fitFacets omits values for which the budget is too small. The budget is in bytes of HTML. It adds
// the number of omitted values to the field More. It never omits selected or excluded values.
func fitFacets(facets []Facet, budget int) []Facet {
	out := make([]Facet, 0, len(facets))
	for _, f := range facets {
		kept := f
		kept.Values = nil
		for _, v := range f.Values {
			cost := 350 + 2*len(templ.EscapeString(v.Term)) + 2*len(templ.EscapeString(cutMiddle(v.Label, 26))) + len(templ.EscapeString(line(v.Label, 200)))
			if budget < cost && !v.On && !v.Not {
				kept.More++
				continue
			}
			budget -= cost
			kept.Values = append(kept.Values, v)
		}
		out = append(out, kept)
	}
	return out
}
