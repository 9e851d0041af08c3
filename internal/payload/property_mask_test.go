package payload

import (
	"regexp"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
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

// TestAMaskedNameOfAType checks that no sentence about a body contains the name of a type that a
// masked property or header names, if the body is not of this type. An edit still knows the type.
func TestAMaskedNameOfAType(t *testing.T) {
	t.Parallel()
	const name = "pay.v1.Refund"
	headers := deadletter.Table{"X-Message-Type": name}
	gzip := deadletter.Table{"compression": "pay.v1.Refund-zip"}
	types := registry(t, "pay", `syntax = "proto3"; package pay.v1; message Refund { string note = 1; bytes id = 2; }`,
		"other", `syntax = "proto3"; package pay.v2; message Refund { int32 n = 3; }`)
	for _, masks := range []Masks{
		{Headers: []string{"x-message-type", "type", "content-type", "compression"}},
		{Patterns: []*regexp.Regexp{regexp.MustCompile(`(?i)pay\.v[0-9]|refund`)}},
	} {
		d := &Decoder{Types: types, TypeHeaders: []string{"x-message-type"}, Mask: masks.Body()}
		for what, h := range map[string]Hints{
			"a header":                      {Headers: headers},
			"a header, and protobuf":        {Headers: headers, ContentType: "application/x-protobuf"},
			"the property":                  {Type: name},
			"the property, short":           {Type: "Refund"},
			"the property, as a URL":        {Type: "type.googleapis.com/" + name},
			"a parameter":                   {ContentType: "application/x-protobuf; messageType=" + name},
			"the header of the compression": {Compression: gzip["compression"].(string), Headers: gzip},
		} {
			for _, body := range []string{
				"\xff\xff\xff", "\x0a\x02\xff\xfe", "\x0a\xff", "\x7a\x01a", "plain text", `{"note": "x"}`, `{"note": 1}`, "\x00",
			} {
				doc := d.Decode([]byte(body), h, nil)
				text := everyText(doc) + Summary(doc, "")
				if strings.Contains(strings.ToLower(text), "refund") && (doc.Type == "" || strings.Contains(doc.Problem, "efund")) {
					t.Errorf("%s, %q is told:\n%s", what, body, text)
				}
				if _, err := d.Editable([]byte(body), h, nil); err != nil && strings.Contains(err.Error(), "efund") {
					t.Errorf("%s, %q: the editor tells %v", what, body, err)
				}
			}
			_, err := d.Patch([]byte(`{"note": "x"}`), h, []byte(`[{"op": "remove", "path": "/note"}]`), nil)
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}
