package payload

import (
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Mask defines which parts of bodies are hidden, in addition to fields with debug_redact, which are
// always hidden. A rule hides a value including everything below it: messages, lists, maps and
// their keys. A nil *Mask hides nothing beyond fields with debug_redact. A Mask must not be changed
// once it is in use, so that it can be used concurrently.
type Mask struct {
	Fields []deadletter.MaskedField
	JSON   []deadletter.FieldPath                        // from the top of a JSON body, also of one inside an envelope; names as written there
	Text   func(text string) (shown string, masked bool) // hides parts of any value; nil = none. Numbers are in decimal, enums by name, bytes unchanged

	// Property hides a property of the letter, or parts of that property, in texts about the body;
	// nil = none.
	Property func(name, text string) (shown string, masked bool)
}

// revealed is the Mask for people who may see everything.
var revealed = &Mask{}

// Revealed returns a decoder that hides nothing, not even fields with debug_redact. It is for
// people with the right to reveal.
func (d *Decoder) Revealed() *Decoder {
	plain := *d
	plain.Mask = revealed
	return &plain
}

// hides reports whether the mask may hide any part of bodies. A nil Mask is allowed.
func (m *Mask) hides() bool {
	return m != nil && (len(m.Fields) > 0 || len(m.JSON) > 0 || m.Text != nil)
}

// Hides reports whether bodies that could not be decoded may contain anything masked by the
// configuration.
func (d *Decoder) Hides() bool { return d.Mask.hides() }

// maskedPart returns a part of one of the letter's properties in the form in which it may be shown.
// The part is masked if the property as shown no longer contains it.
func (m *Mask) maskedPart(property, value, part string) string {
	if m == nil || m.Property == nil || value == "" || part == "" {
		return part
	}
	shown, masked := m.Property(property, value)
	if masked && !strings.Contains(strings.ToLower(shown), strings.ToLower(part)) {
		return Masked
	}
	return m.maskedText(part)
}

// maskedText returns a text about a body in which everything that the patterns match is hidden.
func (m *Mask) maskedText(text string) string {
	if m != nil && m.Text != nil {
		text, _ = m.Text(text)
	}
	return text
}

// typeRules is the part of the rules that applies to messages of a type.
type typeRules struct {
	all   bool
	paths []deadletter.FieldPath // relative to the message
}

func (m *Mask) begin(name string) typeRules {
	var b typeRules
	for _, f := range m.Fields {
		switch {
		case f.Type != "" && !deadletter.Glob(f.Type, name, true):
		case len(f.Path) == 0:
			return typeRules{all: true}
		default:
			b.paths = append(b.paths, f.Path)
		}
	}
	return b
}

// numbered reports whether a rule names a field of any message by its number. Such a field can be
// anywhere in unknown data.
func (m *Mask) numbered() bool {
	return slices.ContainsFunc(m.Fields, func(f deadletter.MaskedField) bool {
		return f.Type == "" && len(f.Path) > 0 && f.Path[0][0] >= '0' && f.Path[0][0] <= '9'
	})
}
