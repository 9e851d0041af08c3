package payload

import (
	"regexp"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Masked is what stands where a masked value was.
const Masked = "••••"

// Masks is the one masking function of dlo: everything of a letter that is shown, listed, exported
// or logged goes through it.
type Masks struct {
	Headers  []string // names in lower case: their whole value is hidden
	Patterns []*regexp.Regexp
	Fields   []deadletter.MaskedField // of messages
	JSON     []deadletter.FieldPath   // in JSON bodies
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

// Field says whether queries may not ask for a path of bodies: a rule names it, or what it is in.
// Patterns act on values, and debug_redact on types: what they hide is never found, but no path is
// refused for it.
func (m Masks) Field(path string) bool {
	return deadletter.Masked(m.Fields, m.JSON, path)
}

// Names says what is masked: what changes when a mask does.
func (m Masks) Names() []string {
	names := []string{"debug_redact"}
	for _, h := range m.Headers {
		names = append(names, "header "+h)
	}
	for _, p := range m.Patterns {
		names = append(names, "pattern "+p.String())
	}
	for _, f := range m.Fields {
		names = append(names, "field "+f.Path.String()+" of "+f.Type)
	}
	for _, p := range m.JSON {
		names = append(names, "json "+p.String())
	}
	return names
}

// Body returns the Mask of bodies and of what is said about them; nil when nothing is masked
// besides debug_redact.
func (m Masks) Body() *Mask {
	mask := &Mask{Fields: m.Fields, JSON: m.JSON}
	if len(m.Patterns) > 0 {
		mask.Text = m.Text
	}
	if len(m.Patterns)+len(m.Headers) > 0 {
		mask.Property = m.Header
	}
	if !mask.hides() && mask.Property == nil {
		return nil
	}
	return mask
}
