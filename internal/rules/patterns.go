package rules

import (
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Patterns is a list of globs of which at least one must match the whole text. A star stands for
// any text, even an empty one. Every other character stands for itself, even a question mark,
// because error texts and routing keys contain question marks. An empty list matches any text.
type Patterns []string

// Fit reports whether one of the patterns matches a text.
func (p Patterns) Fit(text string) bool {
	return len(p) == 0 || slices.ContainsFunc(
		p, func(pattern string) bool { return deadletter.Glob(pattern, text, false) },
	)
}

// String returns the patterns separated by commas.
func (p Patterns) String() string { return strings.Join(p, ", ") }

// covers reports whether every text that matches "other" also matches p. For example, billing.*
// covers billing.pdf-*.
func (p Patterns) covers(other Patterns) bool {
	if len(other) == 0 {
		other = Patterns{"*"}
	}
	// here, a star in o is an ordinary character, so only a star in p matches it
	return !slices.ContainsFunc(other, func(o string) bool { return !p.Fit(o) })
}

func (p Patterns) lower() Patterns {
	low := make(Patterns, len(p))
	for i := range p {
		low[i] = strings.ToLower(p[i])
	}
	return low
}
