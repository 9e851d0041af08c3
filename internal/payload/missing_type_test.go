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
// body must be readable, whatever the missing types are, and masks must hide the fields of these
// types. The option debug_redact must be in force beside options of the missing import.
func TestFieldsWhoseTypeIsMissing(t *testing.T) {
	t.Parallel()
	r := descriptor.NewRegistry()
	if _, err := r.AddSource("s", fstest.MapFS{"x.proto": {Data: []byte(`syntax = "proto3"; import "gone.proto";
message Price { string sku = 1; far.Money amount = 2; far.Region region = 3; string pin = 4 [debug_redact = true, (far.x) = 1];
  repeated far.Region more = 5; }`)}}); err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{
		"amount": "\x12\x08\x0a\x06canary", "region": "\x18\x2a", "more": "\x2a\x02\x01\x02", "pin": "\x22\x06canary",
	} {
		path, err := deadletter.ParseFieldPath(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, masked := range []bool{false, true} {
			d := &Decoder{Types: r}
			if masked {
				d.Mask = &Mask{Fields: []deadletter.MaskedField{{Path: path}}}
			}
			doc := d.Decode([]byte("\x0a\x01a"+body), Hints{Type: "Price", ContentType: "application/protobuf"}, nil)
			text := fmt.Sprint(doc.Fields)
			shown := strings.Contains(text, "canary") || strings.Contains(text, "42") || strings.Contains(text, "0102")
			if doc.Type != "Price" || shown == (masked || name == "pin") {
				t.Errorf("%s, masked %v, type %q: %s", name, masked, doc.Type, text)
			}
		}
	}
}
