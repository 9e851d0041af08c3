package payload

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const busSet = `syntax = "proto3"; package bus; import "google/protobuf/any.proto";
message Carrier { string id = 1; google.protobuf.Any load = 2; repeated google.protobuf.Any more = 3; }`

// anyOf returns a google.protobuf.Any.
func anyOf(typ string, content []byte) []byte {
	b := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "type.googleapis.com/"+typ)
	return protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), content)
}

func carrier(load []byte) []byte {
	b := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "c-1")
	return protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), load)
}

// everything returns all that people and the search index get of a document.
func everything(d *Document) string {
	return fmt.Sprint(d.Fields, d.JSON, d.Text, d.Steps, d.Notes, Words(d), Summary(d, ""))
}

// TestAnyOfAnotherSet reads an Any whose content has a type of another set.
func TestAnyOfAnotherSet(t *testing.T) {
	t.Parallel()
	d := &Decoder{Types: registry(t, "bus", busSet, "shop", parcels)}
	load := anyOf(parcelType, parcel("left at the gateway"))
	for name, c := range map[string]struct {
		body []byte
		typ  string
		path string
	}{
		"in a message":     {carrier(load), "bus.Carrier", "load.note"},
		"at the top level": {load, "google.protobuf.Any", "value.note"},
		"in an Any":        {carrier(anyOf("google.protobuf.Any", load)), "bus.Carrier", "load.value.note"},
		"in an Any of a third set": {
			anyOf("bus.Carrier", carrier(load)), "google.protobuf.Any", "value.load.note",
		},
	} {
		h := Hints{Type: c.typ}
		doc := d.Decode(c.body, h, nil)
		if got, _, _ := doc.Value(c.path); got != "left at the gateway" {
			t.Errorf("%s: %q in %+v", name, got, doc.Fields)
		}
		if !strings.Contains(everything(doc), "shop.v1.ParcelSent, set shop ") ||
			!strings.Contains(doc.JSON, `"parcelId": "parcel-31"`) || doc.JSONProblem != "" {
			t.Errorf("%s: %s\n%s", name, doc.JSON, everything(doc))
		}
		e := change(t, d, c.body, h, "left at the gateway", "elsewhere")
		if got, _, _ := d.Decode(e.Body, h, nil).Value(c.path); got != "elsewhere" {
			t.Errorf("%s: after an edit %q", name, got)
		}
		masked := *d
		masked.Mask = &Mask{Fields: []deadletter.MaskedField{{Type: "shop.v1.*", Path: deadletter.FieldPath{"note"}}}}
		if doc := masked.Decode(c.body, h, nil); strings.Contains(everything(doc), "gateway") || !doc.Masked {
			t.Errorf("%s: masked: %v, %s", name, doc.Masked, everything(doc))
		}
	}
}

// TestAnyWithSeveralDefinitions reads an Any whose type several sets define. If only one definition
// fits, it is used. If several do, the page names their sets, and what one of them hides is hidden.
func TestAnyWithSeveralDefinitions(t *testing.T) {
	t.Parallel()
	const (
		texts    = `syntax = "proto2"; package pay; message Card { optional string owner = 1; optional string number = 2; }`
		numbers  = `syntax = "proto2"; package pay; message Card { optional int32 owner = 1; optional int32 number = 2; }`
		redacted = `syntax = "proto2"; package pay;
message Card { optional string owner = 1; optional string number = 2 [debug_redact = true]; }`
		nested = `syntax = "proto2"; package pay; message Digits { optional string all = 4 [debug_redact = true]; }
message Card { optional string owner = 1; optional Digits number = 2; }`
		shown = `syntax = "proto2"; package pay; message Inner { optional string all = 4; }
message Card { optional string owner = 1; optional Inner number = 2; }`
	)
	digits := protowire.AppendString(protowire.AppendTag(nil, 4, protowire.BytesType), "41111111")
	for name, c := range map[string]struct {
		sets   []string
		number []byte
		note   string
		owner  bool // it is shown
		secret bool // it is shown
	}{
		"one fits":             {[]string{"a", numbers, "b", texts}, []byte("41111111"), "pay.Card, set b", true, true},
		"both fit, alike":      {[]string{"a", texts, "b", texts}, []byte("41111111"), "pay.Card, set a", true, true},
		"the second redacts":   {[]string{"a", texts, "b", redacted}, []byte("41111111"), "pay.Card, set a", true, false},
		"the first redacts":    {[]string{"a", redacted, "b", texts}, []byte("41111111"), "pay.Card, set a", true, false},
		"one fits and redacts": {[]string{"a", numbers, "b", redacted}, []byte("41111111"), "pay.Card, set b", true, false},
		"they differ":          {[]string{"a", shown, "b", texts}, digits, "ambiguous: defined differently in b", true, true},
		"another type redacts": {[]string{"a", shown, "b", nested}, digits, "", false, false},
	} {
		card := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "Ada")
		card = protowire.AppendBytes(protowire.AppendTag(card, 2, protowire.BytesType), c.number)
		for typ, body := range map[string][]byte{
			"bus.Carrier": carrier(anyOf("pay.Card", card)), "google.protobuf.Any": anyOf("pay.Card", card),
		} {
			d := &Decoder{Types: registry(t, append([]string{"bus", busSet}, c.sets...)...)}
			doc := d.Decode(body, Hints{Type: typ}, nil)
			all := everything(doc)
			if strings.Contains(all, "Ada") != c.owner || strings.Contains(all, "41111111") != c.secret ||
				doc.Masked == c.secret || !strings.Contains(all, c.note) {
				t.Errorf("%s in %s: masked %v, %s", name, typ, doc.Masked, all)
			}
			plain := d.Revealed().Decode(body, Hints{Type: typ}, nil)
			if !strings.Contains(plain.JSON, "41111111") || plain.Masked {
				t.Errorf("%s in %s: revealed %s", name, typ, plain.JSON)
			}
		}
	}
}

// TestNestedAnysOfManyDefinitions reads an Any in an Any, and so on, of a type that eight sets
// define. The time must not grow with each level, and what is not read must be hidden.
func TestNestedAnysOfManyDefinitions(t *testing.T) {
	t.Parallel()
	var sets []string
	for i := range 8 {
		sets = append(sets, fmt.Sprint("s", i), fmt.Sprintf(`syntax = "proto3"; package wrap; import "google/protobuf/any.proto";
message Wrap { google.protobuf.Any in = 1; string pin = 2 [debug_redact = true]; string more%d = %d; }`, i, 10+i))
	}
	d := &Decoder{Types: registry(t, sets...)}
	body := protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), "4321-4321")
	for range 8 {
		body = protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), anyOf("wrap.Wrap", body))
	}
	start := time.Now()
	doc := d.Decode(body, Hints{Type: "wrap.Wrap"}, nil)
	if strings.Contains(everything(doc), "4321") || !doc.Masked {
		t.Error(everything(doc))
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("%d bytes took %s", len(body), took)
	}
}

// TestEachDefinitionHides reads a message of a type that two sets define, as protobuf and as JSON.
// What either definition hides is hidden.
func TestEachDefinitionHides(t *testing.T) {
	t.Parallel()
	d := &Decoder{Types: registry(t, "bus", busSet, "a", `syntax = "proto2"; package pay;
message Inner { optional string all = 4; }
message Card { optional string owner = 1; optional Inner number = 2; }`, "b", `syntax = "proto2"; package pay;
message Digits { optional string all = 4 [debug_redact = true]; }
message Card { optional string owner = 1; optional Digits number = 2; optional string pin = 3 [debug_redact = true]; }`)}
	const load = `{"@type": "type.googleapis.com/pay.Card", "owner": "Ada", `
	for body, typ := range map[string]string{
		"\x0a\x03Ada\x12\x0a\x22\x0841111111":                             "pay.Card",
		`{"owner": "Ada", "number": {"all": "41111111"}}`:                 "pay.Card",
		`{"owner": "Ada", "number": "{\"all\": \"41111111\"}"}`:           "pay.Card",
		`{"owner": "Ada", "pin": "41111111"}`:                             "pay.Card",
		load + `"number": {"all": "41111111"}}`:                           "google.protobuf.Any",
		load + `"pin": "41111111"}`:                                       "google.protobuf.Any",
		`{"id": "c", "load": ` + load + `"number": {"all": "41111111"}}}`: "bus.Carrier",
		`{"id": "c", "more": [` + load + `"pin": "41111111"}]}`:           "bus.Carrier",
	} {
		doc := d.Decode([]byte(body), Hints{Type: typ}, nil)
		if all := everything(doc); strings.Contains(all, "41111111") || !doc.Masked || doc.Kind == JSON && !strings.Contains(all, "Ada") {
			t.Errorf("%q as %s: masked %v, %s", body, typ, doc.Masked, all)
		}
	}
}
