package payload

import (
	"regexp"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Masked is the text that replaces a masked value.
const Masked = "••••"

// Masks holds everything that dlo masks. It is the only code that masks: every part of a letter
// that is shown, listed, exported or logged passes through it.
type Masks struct {
	Headers  []string // names in lower case; the whole value of such a header is hidden
	Patterns []*regexp.Regexp
	Fields   []deadletter.MaskedField // fields of messages
	JSON     []deadletter.FieldPath   // paths in JSON bodies
}

// Text hides everything in a text that the patterns match, and reports whether they matched.
func (m Masks) Text(text string) (string, bool) {
	masked := false
	for _, p := range m.Patterns {
		if p.MatchString(text) {
			text, masked = p.ReplaceAllLiteralString(text, Masked), true
		}
	}
	return text, masked
}

// Header returns the value of a header or property in the form in which people may see it, and
// whether anything in it is masked.
func (m Masks) Header(name, text string) (string, bool) {
	if slices.Contains(m.Headers, strings.ToLower(name)) {
		return Masked, true
	}
	return m.Text(text)
}

// Field reports whether a query for a path in bodies must be rejected, because the value at this
// path is masked. This is the case if a rule for masks names the path itself, or the path of a
// value that contains it.
//
// Patterns and debug_redact cause no rejection, because patterns apply to values, and debug_redact
// applies to types. Instead, no query finds a value that a pattern or debug_redact hides.
func (m Masks) Field(path string) bool {
	return deadletter.Masked(m.Fields, m.JSON, path)
}

// Names returns a list of what is masked. If the masks change, the list changes. Paths of JSON
// bodies are in all spellings, because a rule with any of them hides a field.
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
		names = append(names, "json "+strings.Join(deadletter.Spellings(p.String()), " or "))
	}
	return names
}

// Body returns the Mask for bodies and for texts about them. It returns nil if nothing but
// debug_redact masks anything.
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
