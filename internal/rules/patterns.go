package rules

import (
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Patterns are globs of which one must fit: a star stands for any text, also none, every other
// character for itself, and the whole text must fit. None at all = any text fits. A question mark
// stands for itself too: error texts and routing keys have them.
type Patterns []string

// Fit says whether one of the patterns fits a text.
func (p Patterns) Fit(text string) bool {
	return len(p) == 0 || slices.ContainsFunc(p, func(pattern string) bool { return deadletter.Glob(pattern, text, false) })
}

// String returns the patterns with commas between them.
func (p Patterns) String() string { return strings.Join(p, ", ") }

// cover says whether every text that other fits is known to fit p.
func (p Patterns) cover(other Patterns) bool {
	if len(other) == 0 {
		other = Patterns{"*"}
	}
	return !slices.ContainsFunc(other, func(o string) bool { return !p.Fit(o) }) // a star of o is a character that only a star of p fits
}

func (p Patterns) lower() Patterns {
	low := make(Patterns, len(p))
	for i := range p {
		low[i] = strings.ToLower(p[i])
	}
	return low
}
