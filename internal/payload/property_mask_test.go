package payload

import (
	"regexp"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
)

// TestPropertiesAreMaskedInSentences checks that no sentence about the body contains a part of a
// property that a mask hides by its pattern or name.
func TestPropertiesAreMaskedInSentences(t *testing.T) {
	t.Parallel()
	anywhere := Masks{Patterns: []*regexp.Regexp{regexp.MustCompile(`(?i)token[0-9]+`)}}
	whole := Masks{Patterns: []*regexp.Regexp{regexp.MustCompile(`(?i)^(.*; messageType=)?token777$`)}}
	named := Masks{Headers: []string{"content-type", "content-encoding", "type"}}
	message := payloadtest.LengthPrefixed(1, []byte("hello"))
	for _, tt := range []struct {
		name string
		h    Hints
	}{
		{"parameter of the content type", Hints{ContentType: "application/x-protobuf; messageType=TOKEN777"}},
		{"content type", Hints{ContentType: "application/token777+proto"}},
		{"type", Hints{Type: "TOKEN777"}},
		{"type of protobuf", Hints{Type: "type.googleapis.com/TOKEN777"}},
		{"content encoding", Hints{ContentEncoding: "TOKEN777"}},
		{"fourth content encoding", Hints{ContentEncoding: "TOKEN777, identity"}},
	} {
		for by, masks := range map[string]Masks{
			"a pattern": anywhere, "a pattern of the whole": whole, "its name": named,
		} {
			if by == "a pattern of the whole" && tt.name == "fourth content encoding" ||
				by == "a pattern of the whole" && tt.name == "content type" {
				continue // the pattern does not fit this property
			}
			plain := &Decoder{Types: schemas()}
			if text := everyText(plain.Decode(message, tt.h, nil)); !strings.Contains(
				strings.ToUpper(text), "TOKEN777",
			) {
				t.Fatalf("%s: without a mask it is not told, so this proves nothing:\n%s", tt.name, text)
			}
			d := &Decoder{Types: schemas(), Mask: masks.Body()}
			doc := d.Decode(message, tt.h, nil)
			if text := everyText(doc); strings.Contains(strings.ToUpper(text), "TOKEN777") {
				t.Errorf("%s, masked by %s, is told:\n%s", tt.name, by, text)
			}
			if text := everyText(d.Revealed().Decode(message, tt.h, nil)); !strings.Contains(strings.ToUpper(text), "TOKEN777") {
				t.Errorf("%s, masked by %s, is not told to who may see it:\n%s", tt.name, by, text)
			}
			if _, err := d.Editable(message, tt.h, nil); err != nil &&
				strings.Contains(strings.ToUpper(err.Error()), "TOKEN777") {
				t.Errorf("%s, masked by %s, is told by the editor: %v", tt.name, by, err)
			}
		}
	}
}

// TestMaskOfPropertiesLeavesBodies checks that a mask that applies only to properties hides nothing
// in bodies.
func TestMaskOfPropertiesLeavesBodies(t *testing.T) {
	t.Parallel()
	d := &Decoder{Types: schemas(), Mask: Masks{Headers: []string{"type"}}.Body()}
	if d.Hides() || d.BytesMasked(d.Decode([]byte("\xff\xfe\xfd"), Hints{Type: "no.Such"}, nil)) {
		t.Error("a body is hidden for the sake of a header")
	}
}
