package payload

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestFieldsWithOneJSONName reads and edits messages of proto2 whose fields have the same JSON
// name. JSON must tell them apart, in any order of the fields, and an edit must reach the right
// one.
func TestFieldsWithOneJSONName(t *testing.T) {
	t.Parallel()
	const set = `syntax = "proto2"; package old;
message First { optional string lampState = 1; optional fixed32 lamp_state = 2; optional string note = 3; }
message Second { optional string lamp_state = 1; optional fixed32 lampState = 2; optional string note = 3; }
message Third { optional string lamp_state = 1; optional fixed32 lamp__state = 2; optional string note = 3; }
message Fourth { optional string lamp_state = 1; optional fixed32 lampState = 2;
  optional string note = 3 [json_name = "lamp_state"]; }
message Outer { optional First lamp = 1; repeated First lamps = 2; }`
	d := &Decoder{Types: registry(t, "old", set, "bus", busSet)}
	lamp := func(state string, number uint32, note string) []byte {
		b := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), state)
		b = protowire.AppendFixed32(protowire.AppendTag(b, 2, protowire.Fixed32Type), number)
		return protowire.AppendString(protowire.AppendTag(b, 3, protowire.BytesType), note)
	}
	outer := func(l []byte) []byte {
		b := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), l)
		return protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), l)
	}
	for name, c := range map[string]struct {
		typ           string
		body          func(lamp []byte) []byte
		text, number  string // the names in JSON
		at, otherPath string // where the message is in JSON, and the name of another field
	}{
		"the JSON name comes first":  {"old.First", nil, "lampState", "lamp_state", "", "note"},
		"the JSON name comes second": {"old.Second", nil, "lamp_state", "lampState", "", "note"},
		"neither has it":             {"old.Third", nil, "lamp_state", "lamp__state", "", "note"},
		"a third has the other name": {"old.Fourth", nil, "lamp_state", "lampState", "", "note"},
		"nested":                     {"old.Outer", outer, "lampState", "lamp_state", "/lamp", "note"},
		"in a list":                  {"old.Outer", outer, "lampState", "lamp_state", "/lamps/0", "note"},
		"in an Any": {
			"bus.Carrier", func(l []byte) []byte { return carrier(anyOf("old.First", l)) }, "lampState", "lamp_state",
			"/load", "note",
		},
	} {
		frame := func(l []byte) []byte {
			if c.body == nil {
				return l
			}
			return c.body(l)
		}
		h := Hints{Type: c.typ}
		doc := d.Decode(frame(lamp("on", 9, "dusk")), h, nil)
		if !strings.Contains(doc.JSON, `"`+c.text+`": "on"`) || !strings.Contains(doc.JSON, `"`+c.number+`": 9`) {
			t.Errorf("%s: %s", name, doc.JSON)
		}
		for path, want := range map[string][]byte{
			c.text: lamp("other", 9, "dusk"), c.number: lamp("on", 4, "dusk"), c.otherPath: lamp("on", 9, "other"),
		} {
			value := `"other"`
			if path == c.number {
				value = "4"
			}
			e, err := d.Patch(
				frame(lamp("on", 9, "dusk")), h,
				[]byte(`[{"op":"replace","path":"`+c.at+"/"+path+`","value":`+value+`}]`), nil,
			)
			if err != nil {
				t.Errorf("%s, %s: %v", name, path, err)
				continue
			}
			if got, want := e.JSON, d.Decode(frame(want), h, nil).JSON; c.typ != "old.Outer" && got != want {
				t.Errorf("%s, %s: got %s, want %s", name, path, got, want)
			}
		}
		for _, rule := range []string{"lampState", "lamp_state"} { // as before, either name hides both
			masked := *d
			masked.Mask = &Mask{Fields: []deadletter.MaskedField{{Path: deadletter.FieldPath{rule}}}}
			doc := masked.Decode(frame(lamp("4111", 4222, "dusk")), h, nil)
			if strings.Contains(everything(doc), "4111") || strings.Contains(everything(doc), "4222") && name != "neither has it" {
				t.Errorf("%s: the rule %s: %s", name, rule, everything(doc))
			}
		}
	}
}
