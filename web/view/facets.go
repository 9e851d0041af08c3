package view

import "github.com/a-h/templ"

// Facet lists the values of one field with their counts.
type Facet struct {
	Title  string
	Values []FacetValue // the first facetShown are visible, and all selected ones
	More   int          // values left out
	Closed bool         // the values are collapsed

	Sampled int // number of newest letters counted; 0: all
}

// FacetValue is one value of a facet. Its buttons request the list with Term added, removed or
// excluded.
type FacetValue struct {
	Label string
	Term  string // field:value in the query language
	Count int
	On    bool
	Not   bool // excluded
}

// facetShown is the number of visible values of a facet. The other values are collapsed.
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

// facetBudget is the maximum number of bytes of a page that all facets may take together. The bytes
// of a long query, which appears in several places, are subtracted.
const facetBudget = 20_000

// fitFacets drops values that exceed the budget and counts them in More. Selected and excluded
// values are always kept.
func fitFacets(facets []Facet, budget int) []Facet {
	out := make([]Facet, 0, len(facets))
	for _, f := range facets {
		kept := f
		kept.Values = nil
		for _, v := range f.Values {
			cost := 350 + 2*len(templ.EscapeString(v.Term)) + 2*len(templ.EscapeString(middle(v.Label, 26))) + len(templ.EscapeString(line(v.Label, 200)))
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
