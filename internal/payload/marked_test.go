package payload

import (
	"bytes"
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
)

// compact removes white space from JSON.
func compact(s string) string { return regexp.MustCompile(`\n\s*|(:) `).ReplaceAllString(s, "$1") }

// TestMarkedValues checks that a mark takes the place of a value without a JSON form. An edit must
// be able to change the marked value, and to replace it with a valid one.
func TestMarkedValues(t *testing.T) {
	t.Parallel()
	str := func(num protowire.Number, s string) []byte { return payloadtest.LengthPrefixed(num, []byte(s)) }
	msg := func(num protowire.Number, parts ...[]byte) []byte {
		return payloadtest.LengthPrefixed(num, wire(parts...))
	}
	unknown := str(900, "unseen")
	nan := protowire.AppendFixed64(protowire.AppendTag(nil, 2, protowire.Fixed64Type), math.Float64bits(math.NaN()))
	tests := []struct {
		name, typ string
		body      []byte
		json      string // a part of the JSON, without white space
		old, new  string // texts in the JSON without white space
		want      []byte // the new body; "!" and a text = the error contains the text
	}{
		{
			"a Timestamp is mended", "Kinds", msg(21, varint(1, 1700000000000), unknown),
			`"at":{"@wire":{"seconds":"1700000000000"}}`, `{"@wire":{"seconds":"1700000000000"}}`,
			`"2023-11-14T22:13:20Z"`, msg(21, varint(1, 1700000000), unknown),
		},
		{
			"a Timestamp is edited", "Kinds", msg(21, varint(1, 1700000000000), unknown), `"at":{`, `1700000000000`,
			`1700000000001`, msg(21, varint(1, 1700000000001), unknown),
		},
		{
			"a Timestamp becomes good", "Kinds", msg(21, varint(1, 1700000000000)), `"at":{`, `"1700000000000"`,
			`1700000000`, msg(21, varint(1, 1700000000)),
		},
		{
			"a Timestamp is taken out", "Kinds", wire(varint(3, 1), msg(21, varint(1, 1<<60))), `"count":1`,
			`,"at":{"@wire":{"seconds":"1152921504606846976"}}`, ``, varint(3, 1),
		},
		{
			"a Timestamp is made bad", "Kinds", msg(21, varint(1, 1)), `"at":"1970-01-01T00:00:01Z"`,
			`"1970-01-01T00:00:01Z"`, `{"@wire":{"nanos":-1}}`, msg(21, varint(2, math.MaxUint64)),
		},
		{
			"a Duration is mended", "Kinds", msg(15, varint(1, 1), varint(2, math.MaxUint64)),
			`"timeout":{"@wire":{"seconds":"1","nanos":-1}}`, `{"@wire":{"seconds":"1","nanos":-1}}`, `"1s"`,
			msg(15, varint(1, 1)),
		},
		{
			"a FieldMask is edited", "Kinds", msg(16, str(1, "fooBar"), str(1, "a")),
			`"mask":{"@wire":{"paths":["fooBar","a"]}}`, `fooBar`, `foo_bar`, msg(16, str(1, "foo_bar"), str(1, "a")),
		},
		{
			"NaN in a Struct is mended", "Kinds", msg(17, msg(1, str(1, "k"), msg(2, nan))),
			`"extra":{"k":{"@wire":{"numberValue":"NaN"}}}`, `{"@wire":{"numberValue":"NaN"}}`, `"x"`,
			msg(17, msg(1, str(1, "k"), msg(2, str(3, "x")))),
		},
		{
			"a Value without a kind is mended", "Kinds", msg(25), `"anyValue":{"@wire":{}}`, `{"@wire":{}}`, `true`,
			msg(25, varint(4, 1)),
		},
		{
			"-0.0 is a text", "Kinds", protowire.AppendFixed64([]byte{0x09}, 1<<63), `"ratio":"-0"`, `"-0"`, `-1`,
			protowire.AppendFixed64([]byte{0x09}, math.Float64bits(-1)),
		},
		{
			"an Any is mended", "Kinds",
			msg(14, str(1, "x/acme.notify.v1.EmailAddress"), msg(2, []byte{0x0a, 9}), unknown),
			`"detail":{"@wire":{"typeUrl":"x/acme.notify.v1.EmailAddress","value":"Cgk="}}`,
			`{"@wire":{"typeUrl":"x/acme.notify.v1.EmailAddress","value":"Cgk="}}`,
			`{"@type":"x/acme.notify.v1.EmailAddress","address":"a"}`,
			msg(14, str(1, "x/acme.notify.v1.EmailAddress"), msg(2, str(1, "a")), unknown),
		},
		{
			"a text is mended", "acme.odd.Order", wire(str(1, "a\xff"), unknown), `"id":{"@wire":"Yf8="}`,
			`{"@wire":"Yf8="}`, `"b"`, wire(str(1, "b"), unknown),
		},
		{
			"a text is edited", "acme.odd.Order", wire(str(1, "a\xff"), unknown), `"id":{"@wire":"Yf8="}`, `Yf8=`,
			`Yfw=`, wire(str(1, "a\xfc"), unknown),
		},
		{
			"the name of the mark in a Struct", "Kinds", encode(t, "Kinds", `{"extra": {"@wire": "a"}}`),
			`"extra":{"@@wire":"a"}`, `"a"`, `"b"`, encode(t, "Kinds", `{"extra": {"@wire": "b"}}`),
		},
		{
			"a mark that is no number", "Kinds", msg(21, varint(1, 1<<60)), ``, `"1152921504606846976"`, `"x"`,
			[]byte(
				`!line 1, column 7: at: write a time of the years 1 to 9999, "2026-01-02T03:04:05.678Z", or {"@wire": {"seconds": "0", "nanos": 0}}`,
			),
		},
		{
			"a mark of another type", "Kinds", msg(21, varint(1, 1<<60)), ``, `"seconds"`, `"paths"`,
			[]byte(`!line 1, column 7: at: write a time`),
		},
		{
			"a mark where none can be", "Kinds", wire(varint(3, 1), msg(21, varint(1, 1<<60))), ``, `"count":1`,
			`"count":{"@wire":"MQ=="}`, []byte(`!line 1, column 10: count: write a whole number`),
		},
		{
			"bad base64", "acme.odd.Order", str(1, "a\xff"), ``, `Yf8=`, `Yf8`,
			[]byte(`!line 1, column 7: id: write a text, or {"@wire": "base64 of the text"}`),
		},
		{
			"the name of the mark, not escaped", "Kinds", encode(t, "Kinds", `{"extra": {"a": "x"}}`), ``, `"a"`,
			`"@wire"`,
			[]byte(
				`!line 1, column 10: extra: the name "@wire" stands for a value without a JSON form: write "@@wire"`,
			),
		},
		{
			"not UTF-8 in proto3", "Kinds", str(13, "a"), ``, `"a"`, `{"@wire":"/w=="}`,
			[]byte(`!a text that is marked "@wire" is not UTF-8`),
		},
		{
			"a mistake behind a mark", "Kinds", msg(21, varint(1, 1<<60)), ``, `}}}`, `}},"count":"x"}`,
			[]byte(`!line 1, column 59: count: write a whole number`),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			h := Hints{Type: tt.typ}
			text := compact(editText(t, editor(), tt.body, h))
			if !strings.Contains(text, tt.json) || strings.Count(text, tt.old) == 0 {
				t.Fatalf("JSON %s", text)
			}
			e, err := editor().Edit(tt.body, h, strings.Replace(text, tt.old, tt.new, 1), nil)
			if len(tt.want) > 0 && tt.want[0] == '!' {
				if mistake := (*EditError)(nil); !errors.As(err, &mistake) ||
					!strings.HasPrefix(err.Error(), string(tt.want[1:])) {
					t.Errorf("got  %v\nwant %s", err, tt.want[1:])
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(e.Body, tt.want) {
				t.Errorf("got  %q\nwant %q", e.Body, tt.want)
			}
			if again := editText(t, editor(), e.Body, h); again != e.JSON {
				t.Errorf("JSON %s, then %s", e.JSON, again)
			}
		})
	}
}

// TestMarkedValuesAreNamed checks the text that lists the values which are marked in the JSON
// because they have no JSON form. If the decoder has any mask, the text must not contain map keys.
func TestMarkedValuesAreNamed(t *testing.T) {
	t.Parallel()
	body := payloadtest.LengthPrefixed(21, varint(1, 1<<60))
	doc := decode(body, Hints{Type: "Kinds"})
	if want := `the JSON marks values that have no JSON form with "@wire": at`; doc.JSONProblem != want ||
		doc.Problem != "" || len(
		doc.Notes,
	) != 1 || doc.Notes[0] != want {
		t.Errorf("%q, problem %q, notes %q", doc.JSONProblem, doc.Problem, doc.Notes)
	}
	doc = patternMask().Decode(body, Hints{Type: "Kinds"}, nil)
	if want := `the JSON marks values that have no JSON form with "@wire"`; doc.JSONProblem != want {
		t.Errorf("%q", doc.JSONProblem)
	}
}

// TestMarkedValuesAreMasked checks that a rule that masks a field also masks the marked value which
// the JSON shows in place of the field's value.
func TestMarkedValuesAreMasked(t *testing.T) {
	t.Parallel()
	str := func(num protowire.Number, s string) []byte { return payloadtest.LengthPrefixed(num, []byte(s)) }
	anchored := &Decoder{Types: schemas(), Mask: Masks{Patterns: []*regexp.Regexp{regexp.MustCompile(`^4111`)}}.Body()}
	field := func(path string) *Decoder {
		return &Decoder{
			Types: schemas(), Mask: Masks{Fields: []deadletter.MaskedField{{Path: strings.Split(path, ".")}}}.Body(),
		}
	}
	number := payloadtest.LengthPrefixed(21, varint(1, 4111111111111111))
	broken := payloadtest.LengthPrefixed(
		14, wire(str(1, "x/acme.notify.v1.EmailAddress"), str(2, string(wire(str(1, card), []byte{0x0a, 9})))),
	)
	stamped := payloadtest.LengthPrefixed(
		14,
		wire(
			str(1, "x/acme.notify.v1.Kinds"),
			str(2, string(wire(str(10, card), payloadtest.LengthPrefixed(21, varint(1, 1<<60))))),
		),
	)
	tests := []struct {
		name, typ string
		d         *Decoder
		body      []byte
	}{
		{"a pattern on seconds", "Kinds", patternMask(), number},
		{"a field", "Kinds", field("at"), number},
		{"a pattern on a broken Any", "Kinds", patternMask(), broken},
		{"an anchored pattern on a broken Any", "Kinds", anchored, broken},
		{"a field of a broken Any", "Kinds", field("detail.address"), broken},
		{"an anchored pattern on an Any", "Kinds", anchored, stamped},
		{"a field of an Any", "Kinds", field("detail.tags"), stamped},
		{"a text", "acme.odd.Order", field("id"), str(1, card+"\xff")},
		{"a pattern on a text", "acme.odd.Order", patternMask(), str(1, card+"\xff")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			body := tt.body
			tail := varint(3, 1)
			if tt.typ != "Kinds" {
				tail = varint(2, 1)
			}
			body = wire(body, tail)
			h := Hints{Type: tt.typ}
			text := editText(t, tt.d, body, h)
			plain := editText(t, editor(), body, h)
			for _, secret := range regexp.MustCompile(`"[0-9A-Za-z+/=]{16,}"`).FindAllString(plain, -1) {
				if strings.Contains(text, strings.Trim(secret, `"`)) {
					t.Errorf("%s is shown in %s", secret, text)
				}
			}
			if !strings.Contains(text, Masked) {
				t.Errorf("nothing is masked in %s", text)
			}
			e, err := tt.d.Edit(body, h, strings.Replace(text, `: 1`, `: 2`, 1), nil)
			if err != nil {
				t.Fatal(err)
			}
			want := bytes.Clone(body)
			want[len(want)-1] = 2
			if !bytes.Equal(e.Body, want) {
				t.Errorf("got  %q\nwant %q", e.Body, want)
			}
			notShown(t, e)
		})
	}
}
