package payload

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// TestFieldsWhoseTypeIsMissing reads bodies of a .proto file of which one import is not there. The
// body must be readable, whatever the missing types are. A field of these types must be hidden if
// anything in it may have to be hidden: if there is a rule for fields, or the option debug_redact.
func TestFieldsWhoseTypeIsMissing(t *testing.T) {
	t.Parallel()
	const source = `syntax = "proto3"; import "gone.proto"; message Price { string sku = 1; far.Money amount = 2;
  far.Region region = 3; string pin = 4 [REDACT(far.x) = 1]; repeated far.Region more = 5; map<string, far.Money> all = 6; }`
	for name, body := range map[string]string{
		"amount": "\x12\x08\x0a\x06canary", "region": "\x18\x2a", "more": "\x2a\x02\x01\x02", "pin": "\x22\x06canary",
		"all": "\x32\x0d\x0a\x01k\x12\x08\x0a\x06canary",
	} {
		path, err := deadletter.ParseFieldPath(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, redact := range []string{"", "debug_redact = true, "} {
			r := descriptor.NewRegistry()
			text := strings.Replace(source, "REDACT", redact, 1)
			if _, err := r.AddSource("s", fstest.MapFS{"x.proto": {Data: []byte(text)}}); err != nil {
				t.Fatal(err)
			}
			for _, mask := range []*Mask{
				nil,
				{Fields: []deadletter.MaskedField{{Path: path}}},
				// rules for something inside a field whose type is missing, by its type or by a name
				{Fields: []deadletter.MaskedField{{Type: "far.Money", Path: path}}},
				{Fields: []deadletter.MaskedField{{Path: deadletter.FieldPath{"number"}}}},
			} {
				d := &Decoder{Types: r, Mask: mask}
				hidden := redact != "" || mask != nil
				if name == "pin" { // its type is known
					hidden = redact != "" || mask != nil && mask.Fields[0].Type == "" && mask.Fields[0].Path[0] == "pin"
				}
				doc := d.Decode([]byte("\x0a\x01a"+body), Hints{Type: "Price", ContentType: "application/protobuf"}, nil)
				text := fmt.Sprint(doc.Fields, doc.JSON)
				shown := strings.Contains(text, "canary") || strings.Contains(text, "42") || strings.Contains(text, "0102") ||
					strings.Contains(text, "AQI=")
				if doc.Type != "Price" || shown == hidden {
					t.Errorf("%s, %q, %+v, type %q: %s", name, redact, mask, doc.Type, text)
				}
			}
		}
	}
}
