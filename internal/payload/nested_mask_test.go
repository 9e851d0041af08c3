package payload

import (
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// nestedSchema has texts that may contain JSON, and messages that may contain something hidden.
const nestedSchema = `syntax = "proto3"; package acme.nested;
import "google/protobuf/any.proto"; import "google/protobuf/struct.proto"; import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Letter {
  string headers = 1; int64 number = 2; google.protobuf.StringValue wrapped = 3; google.protobuf.Struct extra = 4;
  map<string, string> labels = 5; Card card = 6; map<string, Card> cards = 7; google.protobuf.Any any = 8;
  google.protobuf.Timestamp at = 9; bytes raw = 10; repeated string list = 11; Plain plain = 12;
}
message Card { string number = 1; string note = 2 REDACT; }
message Plain { string a = 1; }`

func nested(t *testing.T, option string) *descriptor.Registry {
	t.Helper()
	r := descriptor.NewRegistry()
	text := strings.ReplaceAll(nestedSchema, "REDACT", option)
	if _, err := r.AddSource("nested", fstest.MapFS{"nested.proto": {Data: []byte(text)}}); err != nil {
		t.Fatal(err)
	}
	return r
}

const nestedType = "acme.nested.Letter"

// TestTextInPlaceOfAnObject covers texts at places into which a rule leads, or where a message or a
// body may be that hides something. Such a text may be that object as JSON, so it must be hidden.
// Other texts must be shown.
func TestTextInPlaceOfAnObject(t *testing.T) {
	t.Parallel()
	const inner = `"{\"card\":{\"number\":\"canary\"},\"token\":\"canary\",\"note\":\"canary\"}"`
	json := Hints{ContentType: "application/json"}
	typed := Hints{ContentType: "application/json", Type: nestedType}
	message := Hints{Type: nestedType, ContentType: "application/protobuf"}
	rule := func(path string) *Mask {
		p, err := deadletter.ParseFieldPath(path)
		if err != nil {
			t.Fatal(err)
		}
		return &Mask{JSON: []deadletter.FieldPath{p}}
	}
	field := func(typ, path string) *Mask {
		m := rule(path)
		return &Mask{Fields: []deadletter.MaskedField{{Type: typ, Path: m.JSON[0]}}}
	}
	const redact = "[debug_redact = true]"
	for _, tt := range []struct {
		mask   *Mask
		body   string
		h      Hints
		hidden bool
		redact string
	}{
		{rule("card.number"), inner, json, true, ""},
		{rule("card.number"), inner, Hints{}, true, ""},
		{rule("card.number"), `[` + inner + `]`, json, true, ""},
		{rule("card.number"), `[[1, ` + inner + `]]`, Hints{}, true, ""},
		{rule("card.number"), string(cloudEvent("", `"data": `+inner)), Hints{ContentType: ce}, true, ""},
		{rule("data.card.number"), string(cloudEvent("", `"data": `+inner)), Hints{ContentType: ce}, true, ""},
		{rule("data.token"), string(cloudEvent("text/plain", `"data": "token=canary"`)), Hints{ContentType: ce}, true, ""},
		{rule("headers.token"), `{"headers":` + inner + `}`, json, true, ""},
		{rule("headers.token"), `{"headers":"token=canary"}`, Hints{}, true, ""},
		{rule("headers.token"), `{"headers":[{"a":1},"token=canary"]}`, Hints{}, true, ""},
		{rule("a.headers.token"), `{"a":[{"headers":"token=canary"}]}`, Hints{}, true, ""},
		{field("", "headers.token"), `{"headers":"token=canary"}`, typed, true, ""},
		{field("", "headers.token"), `{"headers":"token=canary"}`, message, true, ""},
		{field("", "raw.token"), `{"raw":"Y2FuYXJ5"}`, message, true, ""},
		{field("", "list.token"), `{"list":["a","token=canary"]}`, message, true, ""},
		{field("", "wrapped.token"), `{"wrapped":"token=canary"}`, message, true, ""},
		{field("", "extra.a.token"), `{"extra":{"a":"token=canary"}}`, message, true, ""},
		{field("", "labels.a.token"), `{"labels":{"a":"token=canary"}}`, message, true, ""},
		{field("acme.nested.Card", "note"), `{"card":` + inner + `}`, typed, true, ""},
		{field("acme.nested.Card", "note"), `{"cards":` + inner + `}`, typed, true, ""},
		{field("acme.nested.Card", "note"), `{"any":` + inner + `}`, typed, true, ""},
		{field("acme.*", "note"), inner, typed, true, ""},
		{nil, inner, typed, true, redact},
		{nil, `[` + inner + `]`, typed, true, redact},
		{nil, `{"card":` + inner + `}`, typed, true, redact},
		{nil, `{"cards":{"a":` + inner + `}}`, typed, true, redact},

		{rule("card.number"), `"canary"`, json, false, ""},
		{rule("card.number"), `{"other":` + inner + `}`, json, false, ""},
		{rule("card.number"), `["canary"]`, json, false, ""},
		{rule("headers.token"), `{"headers":{"a":"canary"}}`, json, false, ""},
		{rule("headers.token"), `{"headers":null,"a":"canary"}`, json, false, ""},
		{nil, inner, json, false, redact},
		{nil, `{"headers":` + inner + `}`, typed, false, redact},
		{nil, inner, typed, false, ""},
		{field("", "labels.token"), `{"labels":{"a":"canary"}}`, message, false, ""},
		{field("", "labels.token"), `{"labels":{"a":"canary"}}`, typed, false, ""},
		{field("", "ssn"), `{"headers":"canary","wrapped":"canary","extra":{"a":"canary"}}`, message, false, ""},
		{field("", "number.a"), `{"number":"1234567","headers":"canary"}`, message, false, ""},
		{field("", "at.a"), `{"at":"2026-01-02T03:04:05Z","headers":"canary"}`, message, false, ""},
		{field("", "headers.a"), `{"list":["canary"]}`, message, false, ""},
	} {
		d := &Decoder{Types: nested(t, tt.redact), Mask: tt.mask}
		body := []byte(tt.body)
		if tt.h.ContentType == message.ContentType {
			defs, _ := d.Types.Lookup(nestedType)
			m := dynamicpb.NewMessage(defs[0].Desc)
			if err := protojson.Unmarshal(body, m); err != nil {
				t.Fatal(err, tt.body)
			}
			var err error
			if body, err = proto.Marshal(m); err != nil {
				t.Fatal(err)
			}
		}
		doc := d.Decode(body, tt.h, nil)
		shown := shownTexts(doc) + " " + Words(doc)
		found := strings.Contains(shown, "canary") || strings.Contains(shown, "63616e61")
		if found == tt.hidden || doc.Masked != tt.hidden {
			t.Errorf(
				"%+v %s: %s as %s, masked %v, shows the value: %v\n%s",
				tt.mask, tt.redact, tt.body, doc.Kind, doc.Masked, found, shown,
			)
		}
		if strings.Count(doc.JSON, Masked) != strings.Count(nodesText(doc.Fields), Masked) {
			t.Errorf(
				"%+v: the tree and the JSON of %s hide other values:\n%s\n%s",
				tt.mask, tt.body, doc.JSON, nodesText(doc.Fields),
			)
		}
	}
}

func nodesText(nodes []Node) string {
	text := ""
	for i := range nodes {
		text += nodes[i].Name + " " + nodes[i].Value + "\n" + nodesText(nodes[i].Children)
	}
	return text
}

// TestUnknownNamesAreValues covers JSON that names a type. A pattern hides names that the type does
// not have, because they may be values, but no names of its fields.
func TestUnknownNamesAreValues(t *testing.T) {
	t.Parallel()
	pattern := Masks{Patterns: []*regexp.Regexp{regexp.MustCompile(`[0-9]{16}|headers|number`)}}.Body()
	d := &Decoder{Types: nested(t, ""), Mask: pattern}
	h := Hints{ContentType: "application/json", Type: nestedType}
	const card = "4111111111111111"
	for _, body := range []string{
		`{"headers":"a","` + card + `":"x"}`,
		`{"headers":"a","card":{"` + card + `":1,"number":"b"}}`,
		`{"headers":"a","[` + card + `]":{"a":1}}`,
		`{"headers":"a","any":{"@type":"x/acme.nested.Card","number":"b","` + card + `":1}}`,
	} {
		doc := d.Decode([]byte(body), h, nil)
		shown := shownTexts(doc) + Words(doc)
		if strings.Contains(shown, card) || !doc.Masked || !strings.Contains(doc.JSON, `"headers": "a"`) ||
			strings.Contains(body, "number") && !strings.Contains(doc.JSON, `"number": "b"`) {
			t.Errorf("%s: masked %v\n%s", body, doc.Masked, shown)
		}
	}
	if doc := d.Decode([]byte(`{"headers":"a","card":{"number":"b"}}`), h, nil); doc.Masked {
		t.Errorf("names of the type are masked: %s", doc.JSON)
	}
}
