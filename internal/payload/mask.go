package payload

import (
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Mask says which parts of bodies are hidden. Fields with debug_redact are always hidden as well,
// even if the *Mask is nil. A rule hides a value and everything below it: messages, lists, maps and
// their keys. A Mask that is in use must not be changed, so that several goroutines can use it.
type Mask struct {
	Fields []deadletter.MaskedField
	// paths from the top of a JSON body, with the names in the JSON; they also apply to a JSON body
	// inside an envelope
	JSON []deadletter.FieldPath
	// hides parts of any value; nil = nothing. Numbers are in decimal, enums by name, bytes
	// unchanged
	Text func(text string) (shown string, masked bool)

	// Property returns a property of the letter, or a part of a property, as a text about the body
	// may show it. If the field Property is nil, nothing is hidden.
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

// Hides reports whether the configuration may mask something in a body that could not be decoded.
func (d *Decoder) Hides() bool { return d.Mask.hides() }

// maskedPart returns the given part of a property, for example the media type in a content type. If
// a mask hides this part, so that it no longer occurs in the masked property, maskedPart returns
// the mask instead.
func (m *Mask) maskedPart(property, value, part string) string {
	if m == nil || m.Property == nil || value == "" || part == "" {
		return part
	}
	shown, masked := m.Property(property, value)
	if !masked && value == part {
		return part
	}
	if masked && !strings.Contains(strings.ToLower(shown), strings.ToLower(part)) {
		return Masked
	}
	return m.maskedText(part)
}

// maskedText returns a text about a body, in which every match of the masking patterns is masked.
func (m *Mask) maskedText(text string) string {
	if m != nil && m.Text != nil {
		text, _ = m.Text(text)
	}
	return text
}

// typeRules holds those rules that apply to messages of one type.
type typeRules struct {
	all   bool
	paths []deadletter.FieldPath // paths from the message on
}

func (m *Mask) rulesFor(name string) typeRules {
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

// usesNumbers reports whether a rule that applies to all messages names a field by its number. Such
// a field can be anywhere in unknown data.
func (m *Mask) usesNumbers() bool {
	return slices.ContainsFunc(m.Fields, func(f deadletter.MaskedField) bool {
		return f.Type == "" && len(f.Path) > 0 && f.Path[0][0] >= '0' && f.Path[0][0] <= '9'
	})
}
