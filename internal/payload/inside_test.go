package payload

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
)

// TestMessagesInJSON reads JSON bodies that hold messages as base64, and finds the fields below the
// member.
func TestMessagesInJSON(t *testing.T) {
	t.Parallel()
	d := &Decoder{
		Types: registry(t, "shop", parcels),
		Bindings: []deadletter.Binding{
			{Queue: "outbox", Path: "row.payload", Type: "shop.v1.Pair"}, {Queue: "bodies", Type: "shop.v1.Pair"},
		},
	}
	std := func(b []byte) string { return string(encodeStd(b)) }
	message, two := parcel("left at the gateway"), pair("first text", "second text")
	for name, c := range map[string]struct {
		h    Hints
		body string
		path string // of the field with the text
		want string // "" = the member holds no message
	}{
		"member":         {Hints{}, `{"payload": "` + std(message) + `"}`, "payload.note", "left at the gateway"},
		"deeper":         {Hints{}, `{"row": {"payload": "` + std(message) + `"}}`, "row.payload.note", "left at the gateway"},
		"in a list":      {Hints{}, `{"rows": ["x", "` + std(message) + `"]}`, "rows.[1].note", "left at the gateway"},
		"the whole list": {Hints{}, `["` + std(message) + `"]`, "[0].note", "left at the gateway"},
		"URL alphabet": {
			Hints{},
			`{"payload": "` + base64.RawURLEncoding.EncodeToString(message) + `"}`, "payload.note",
			"left at the gateway",
		},
		"escaped":                 {Hints{}, `{"payload": "` + strings.ReplaceAll(std(message), "/", `\/`) + `"}`, "payload.note", "left at the gateway"},
		"in a frame":              {Hints{}, `{"payload": "` + std(confluent(42, []byte{0}, message)) + `"}`, "payload.note", "left at the gateway"},
		"in gzip":                 {Hints{}, `{"payload": "` + std(payloadtest.Gzipped(t, message)) + `"}`, "payload.note", "left at the gateway"},
		"bound":                   {Hints{Queue: "outbox"}, `{"row": {"payload": "` + std(two) + `"}}`, "row.payload.b", "second text"},
		"another path":            {Hints{Queue: "outbox"}, `{"payload": "` + std(two) + `"}`, "payload.b", ""},
		"another queue":           {Hints{Queue: "other"}, `{"row": {"payload": "` + std(two) + `"}}`, "row.payload.b", ""},
		"the binding of the body": {Hints{Queue: "bodies"}, `{"payload": "` + std(two) + `"}`, "payload.b", ""},
		"text":                    {Hints{}, `{"payload": "` + std([]byte("a text of some length, no message")) + `"}`, "payload.note", ""},
		"noise":                   {Hints{}, `{"payload": "AAECAwQFBgcICQoLDA0ODxAREhM="}`, "payload.note", ""},
		"word":                    {Hints{}, `{"payload": "passwordpassword"}`, "payload.note", ""},
	} {
		doc := d.Decode([]byte(c.body), c.h, nil)
		got, _, _ := doc.Value(c.path)
		if got != c.want || doc.Kind != JSON || doc.Masked || (c.want != "") != (len(doc.Inside) == 1) {
			t.Errorf("%s: %q, %+v, masked %v", name, got, doc.Inside, doc.Masked)
			continue
		}
		if c.want == "" {
			continue
		}
		in := doc.Inside[0]
		if !strings.Contains(Words(doc), c.want) || !strings.Contains(string(in.JSON), c.want) || !strings.HasPrefix(in.Set, "shop ") ||
			in.Chosen == "" {
			t.Errorf("%s: %+v, words %q", name, in, Words(doc))
		}
		// the member is edited as text, and what is below it is not
		if e := change(t, d, []byte(c.body), c.h, `"`, `"`); string(e.Body) != c.body {
			t.Errorf("%s: %s", name, e.Body)
		}
	}
	var many []string
	for i := range 100 {
		many = append(many, `"`+std(parcel(fmt.Sprintf("note %d", i)))+`"`)
	}
	if doc := d.Decode([]byte("["+strings.Join(many, ",")+"]"), Hints{}, nil); len(doc.Inside) != maxInside {
		t.Errorf("%d messages in a long list", len(doc.Inside))
	}
}

// TestMasksOfMessagesInJSON masks the messages in JSON bodies as their types say. If anything in a
// message is masked, so is its base64. If several types fit, it is masked if one of them hides
// anything.
func TestMasksOfMessagesInJSON(t *testing.T) {
	t.Parallel()
	const cards = `syntax = "proto2"; package pay;
message Card { optional string owner = 1; optional string number = 2 [debug_redact = true]; optional int64 since = 3; }
message Seat { optional string row = 1; optional string seat = 2; }`
	card := append(pair("the owner", "4111222233334444"), 0x18, 0x07)
	seat := pair("4111222233334444", "another text")
	d := &Decoder{Types: registry(t, "shop", parcels), Mask: patternMask().Mask}
	body := []byte(`{"payload": "` + string(encodeStd(parcel("4111222233334444"))) + `"}`)
	if doc := d.Decode(body, Hints{}, nil); strings.Contains(everything(doc)+string(doc.Inside[0].JSON), "4111222233334444") ||
		!doc.Masked || strings.Contains(doc.JSON, string(encodeStd(parcel("4111222233334444")))) {
		t.Errorf("a pattern: %s", everything(doc))
	}
	for name, c := range map[string]struct {
		mask  *Mask
		body  []byte
		owner bool // it is shown
	}{
		"debug_redact":      {nil, card, true},
		"a rule for fields": {&Mask{Fields: []deadletter.MaskedField{{Type: "pay.*", Path: deadletter.FieldPath{"number"}}}}, card, true},
		"a rule for JSON":   {&Mask{JSON: []deadletter.FieldPath{{"row", "payload"}}}, card, false},
		"a rule into it":    {&Mask{JSON: []deadletter.FieldPath{{"row", "payload", "number"}}}, card, false},
		"several types fit": {nil, seat, false},
		"no type fits":      {&Mask{Fields: []deadletter.MaskedField{{Path: deadletter.FieldPath{"number"}}}}, parcel("4111222233334444"), false},
		"framed":            {nil, grpc(card), true},
	} {
		d := &Decoder{Types: registry(t, "pay", cards), Mask: c.mask}
		body := []byte(`{"row": {"payload": "` + string(encodeStd(c.body)) + `", "n": 1}}`)
		doc := d.Decode(body, Hints{}, nil)
		all := everything(doc)
		for _, in := range doc.Inside {
			all += string(in.JSON)
		}
		if strings.Contains(all, "4111222233334444") || strings.Contains(all, string(encodeStd(c.body))) || !doc.Masked {
			t.Errorf("%s: masked %v, %s", name, doc.Masked, all)
		}
		if strings.Contains(all, "the owner") != c.owner {
			t.Errorf("%s: owner, %s", name, all)
		}
		plain := d.Revealed().Decode(body, Hints{}, nil)
		if !strings.Contains(plain.JSON, string(encodeStd(c.body))) || plain.Masked {
			t.Errorf("%s: revealed %s", name, plain.JSON)
		}
	}
	redacting := &Decoder{Types: registry(t, "pay", cards)}
	var many []string
	for i := range maxInside + 4 {
		many = append(many, `"`+string(encodeStd(parcel(fmt.Sprintf("note %d 4111222233334444", i))))+`"`)
	}
	hidden := `"` + string(encodeStd(card)) + `"`
	for name, c := range map[string]struct {
		d            *Decoder
		body, secret string
	}{
		"more than are read": {d, "[" + strings.Join(many, ",") + "]", many[maxInside]},
		"too deep":           {redacting, strings.Repeat(`{"a":`, 70) + hidden + strings.Repeat("}", 70), hidden},
		"a long name":        {redacting, `{"` + strings.Repeat("n", 5000) + `":` + hidden + "}", hidden},
	} {
		doc := c.d.Decode([]byte(c.body), Hints{}, nil)
		if strings.Contains(everything(doc), strings.Trim(c.secret, `"`)) || !doc.Masked {
			t.Errorf("%s: masked %v, %.300s", name, doc.Masked, everything(doc))
		}
	}
}

// TestMasksOfJSONInJSON masks JSON and texts that a JSON body holds as base64. The base64 is hidden
// if a mask hides anything in it, also if no type is registered, and if it holds base64 itself.
func TestMasksOfJSONInJSON(t *testing.T) {
	t.Parallel()
	const secret = "4111222233334444"
	member := func(content []byte) string { return string(encodeStd(content)) }
	inner := []byte(`{"card": {"number": "` + secret + `"}, "name": "somebody"}`)
	nested := []byte(`{"inner": "` + member(inner) + `"}`)
	path := deadletter.FieldPath{"card", "number"}
	types := registry(t, "pay", `syntax = "proto3"; package pay; message Holder { Card card = 1; string name = 2; }
message Card { string number = 1 [debug_redact = true]; string owner = 2; }`)
	bound := []deadletter.Binding{{Queue: "holders", Path: "row", Type: "pay.Holder"}}
	for name, c := range map[string]struct {
		d       *Decoder
		content []byte
		shown   bool
	}{
		"a path":                    {&Decoder{Mask: &Mask{JSON: []deadletter.FieldPath{path}}}, inner, false},
		"a path, nested":            {&Decoder{Mask: &Mask{JSON: []deadletter.FieldPath{path}}}, nested, false},
		"a path, compressed":        {&Decoder{Mask: &Mask{JSON: []deadletter.FieldPath{path}}}, payloadtest.Gzipped(t, inner), false},
		"a path, in UTF-16":         {&Decoder{Mask: &Mask{JSON: []deadletter.FieldPath{path}}}, utf16Of(string(inner)), false},
		"a path from the outside":   {&Decoder{Mask: &Mask{JSON: []deadletter.FieldPath{{"row", "card"}}}}, inner, false},
		"another path":              {&Decoder{Mask: &Mask{JSON: []deadletter.FieldPath{{"card", "owner"}}}}, inner, true},
		"a pattern":                 {&Decoder{Mask: patternMask().Mask}, inner, false},
		"a pattern in a text":       {&Decoder{Mask: patternMask().Mask}, []byte("the card " + secret), false},
		"the pattern fits nothing":  {&Decoder{Mask: patternMask().Mask}, []byte("the card of somebody"), true},
		"the type of a binding":     {&Decoder{Types: types, Bindings: bound}, inner, false},
		"a binding, nothing hidden": {&Decoder{Types: types, Bindings: bound}, []byte(`{"card": {"owner": "o"}, "name": "s"}`), true},
		"no mask":                   {&Decoder{}, inner, true},
	} {
		doc := c.d.Decode([]byte(`{"row": "`+member(c.content)+`", "n": 1}`), Hints{Queue: "holders"}, nil)
		if strings.Contains(everything(doc), member(c.content)) != c.shown || doc.Masked == c.shown || doc.Kind != JSON {
			t.Errorf("%s: masked %v, %s", name, doc.Masked, everything(doc))
		}
		if _, _, ok := doc.Value("n"); !ok {
			t.Errorf("%s: the rest of the body is not shown", name)
		}
	}
}

func utf16Of(ascii string) (b []byte) {
	b = []byte("\xff\xfe")
	for _, c := range []byte(ascii) {
		b = append(b, c, 0)
	}
	return b
}
