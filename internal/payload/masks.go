package payload

import (
	"regexp"
	"slices"
	"strings"
)

// Masked is what stands where a masked value was.
const Masked = "••••"

// Masks is the one masking function of dlo: everything of a letter that is shown, listed, exported or logged goes through it.
type Masks struct {
	Headers  []string // names in lower case: their whole value is hidden
	Patterns []*regexp.Regexp
}

// Text hides what the patterns match in a text, and says whether anything was.
func (m Masks) Text(text string) (string, bool) {
	masked := false
	for _, p := range m.Patterns {
		if p.MatchString(text) {
			text, masked = p.ReplaceAllLiteralString(text, Masked), true
		}
	}
	return text, masked
}

// Header hides the value of a header or property.
func (m Masks) Header(name, text string) (string, bool) {
	if slices.Contains(m.Headers, strings.ToLower(name)) {
		return Masked, true
	}
	return m.Text(text)
}

// Names says what is masked: what changes when a mask does.
func (m Masks) Names() []string {
	names := slices.Clone(m.Headers)
	for _, p := range m.Patterns {
		names = append(names, p.String())
	}
	return names
}

// Body returns the Mask of bodies; nil when nothing in them is masked.
func (m Masks) Body() Mask {
	if len(m.Patterns) == 0 {
		return nil
	}
	return func(_, value string) (string, bool) { return m.Text(value) }
}
