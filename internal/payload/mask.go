package payload

import (
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Mask says what of bodies is hidden besides the fields with the option debug_redact, which always
// are. What a rule hides is hidden with all below it: messages, lists, maps with their keys. A nil
// *Mask hides nothing more. It must not be changed once it is in use; then it may be used
// concurrently.
type Mask struct {
	Fields []deadletter.MaskedField
	JSON   []deadletter.FieldPath                        // from the outermost value of a JSON body, also of one inside an envelope; names as they stand there
	Text   func(text string) (shown string, masked bool) // hides parts of any value; nil: none. Numbers come in decimal, enums by name, bytes as they are

	// Property hides a property of the letter, or parts of it, in what is said about its body; nil:
	// none.
	Property func(name, text string) (shown string, masked bool)
}

// revealed is the Mask of who may see everything.
var revealed = &Mask{}

// Revealed returns a decoder that hides nothing, not even fields with debug_redact: for a person
// with the right to reveal.
func (d *Decoder) Revealed() *Decoder {
	plain := *d
	plain.Mask = revealed
	return &plain
}

// hides says whether the mask may hide anything of bodies; it is safe on nil.
func (m *Mask) hides() bool {
	return m != nil && (len(m.Fields) > 0 || len(m.JSON) > 0 || m.Text != nil)
}

// Hides says whether bodies that nobody could read may hold something that is masked by the
// configuration.
func (d *Decoder) Hides() bool { return d.Mask.hides() }

// told is what may be said of a part of a property of the letter: the part, unless the property as
// it is shown lacks it.
func (m *Mask) told(property, value, part string) string {
	if m == nil || m.Property == nil || value == "" || part == "" {
		return part
	}
	shown, masked := m.Property(property, value)
	if masked && !strings.Contains(strings.ToLower(shown), strings.ToLower(part)) {
		return Masked
	}
	return m.said(part)
}

// said is a text about a body, without what the patterns hide.
func (m *Mask) said(text string) string {
	if m != nil && m.Text != nil {
		text, _ = m.Text(text)
	}
	return text
}

// begun is what the rules say of messages of a type.
type begun struct {
	all   bool
	paths []deadletter.FieldPath // that count from here
}

func (m *Mask) begin(name string) begun {
	var b begun
	for _, f := range m.Fields {
		switch {
		case f.Type != "" && !deadletter.Glob(f.Type, name, true):
		case len(f.Path) == 0:
			return begun{all: true}
		default:
			b.paths = append(b.paths, f.Path)
		}
	}
	return b
}

// numbered says whether a rule names a field of any message by its number: it may lie anywhere in
// what is unknown.
func (m *Mask) numbered() bool {
	return slices.ContainsFunc(m.Fields, func(f deadletter.MaskedField) bool {
		return f.Type == "" && len(f.Path) > 0 && f.Path[0][0] >= '0' && f.Path[0][0] <= '9'
	})
}
