package rules

import "strings"

// Patterns are globs of which one must fit: a star stands for any text, also none, every other character for itself, and the whole text must fit. None at all = any text fits.
type Patterns []string

// Fit says whether one of the patterns fits a text.
func (p Patterns) Fit(text string) bool {
	if len(p) == 0 {
		return true
	}
	for _, pattern := range p {
		if fits(pattern, text) {
			return true
		}
	}
	return false
}

// fitLower is Fit for patterns whose capitals do not count; text has none.
func (p Patterns) fitLower(text string) bool {
	for _, pattern := range p {
		if fits(strings.ToLower(pattern), text) {
			return true
		}
	}
	return len(p) == 0
}

// String returns the patterns with commas between them.
func (p Patterns) String() string { return strings.Join(p, ", ") }

// cover says whether every text that other fits is known to fit p.
func (p Patterns) cover(other Patterns) bool {
	if len(p) == 0 {
		return true
	}
	if len(other) == 0 {
		other = Patterns{"*"}
	}
	for _, o := range other {
		if !p.Fit(o) { // a star of o is a character that only a star of p fits
			return false
		}
	}
	return true
}

func (p Patterns) lower() Patterns {
	low := make(Patterns, len(p))
	for i := range p {
		low[i] = strings.ToLower(p[i])
	}
	return low
}

// fits is Glob without the question mark: error texts and routing keys have real ones.
func fits(pattern, text string) bool { return glob(pattern, text, false) }
