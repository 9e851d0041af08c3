package payload

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
)

// compact removes white space from JSON.
func compact(s string) string { return regexp.MustCompile(`\n\s*|(:) `).ReplaceAllString(s, "$1") }

// TestValuesWithoutJSON checks that null takes the place of a value without a JSON form, that an
// edit beside it keeps the value, and that it can be replaced and removed.
func TestValuesWithoutJSON(t *testing.T) {
	t.Parallel()
	str := func(num protowire.Number, s string) []byte { return payloadtest.LengthPrefixed(num, []byte(s)) }
	msg := func(num protowire.Number, parts ...[]byte) []byte {
		return payloadtest.LengthPrefixed(num, wire(parts...))
	}
	unknown := str(900, "unseen")
	one, two := varint(3, 1), varint(3, 2)
	nan := protowire.AppendFixed64(protowire.AppendTag(nil, 2, protowire.Fixed64Type), math.Float64bits(math.NaN()))
	time := msg(21, varint(1, 1700000000000), unknown)
	broken := msg(14, str(1, "x/acme.notify.v1.EmailAddress"), msg(2, []byte{0x0a, 9}), unknown)
	mask := msg(16, str(1, "fooBar"), str(1, "a"))
	inStruct := msg(17, msg(1, str(1, "k"), msg(2, nan)), msg(1, str(1, "l"), msg(2, str(3, "x"))))
	inList := msg(25, msg(6, msg(1, nan), msg(1, str(3, "x"))))
	tests := []struct {
		name, typ string
		body      []byte
		json      string // a part of the JSON, without white space
		old, new  string // texts in the JSON without white space
		want      []byte // the new body
	}{
		{"beside a Timestamp", "Kinds", wire(one, time), `"at":null`, `"count":1`, `"count":2`, wire(two, time)},
		{
			"a Timestamp is mended", "Kinds", wire(one, time), `"at":null`, `null`, `"2023-11-14T22:13:20Z"`,
			wire(one, msg(21, varint(1, 1700000000), unknown)),
		},
		{"a Timestamp is removed", "Kinds", wire(one, time), `"at":null`, `,"at":null`, ``, one},
		{
			"beside a Duration", "Kinds", wire(one, msg(15, varint(1, 1), varint(2, math.MaxUint64))), `"timeout":null`,
			`"count":1`, `"count":2`, wire(two, msg(15, varint(1, 1), varint(2, math.MaxUint64))),
		},
		{"beside a FieldMask", "Kinds", wire(one, mask), `"mask":null`, `"count":1`, `"count":2`, wire(two, mask)},
		{
			"beside NaN in a Struct", "Kinds", inStruct, `"extra":{"k":null,"l":"x"}`, `"x"`, `"y"`,
			msg(17, msg(1, str(1, "k"), msg(2, nan)), msg(1, str(1, "l"), msg(2, str(3, "y")))),
		},
		{
			"NaN in a Struct is mended", "Kinds", inStruct, `"extra":{"k":null,"l":"x"}`, `null`, `1`,
			msg(
				17, msg(1, str(1, "k"), msg(2, protowire.AppendFixed64([]byte{0x11}, math.Float64bits(1)))),
				msg(1, str(1, "l"), msg(2, str(3, "x"))),
			),
		},
		{
			"beside NaN in a list", "Kinds", inList, `"anyValue":[null,"x"]`, `"x"`, `"y","z"`,
			msg(25, msg(6, msg(1, nan), msg(1, str(3, "y")), msg(1, str(3, "z")))),
		},
		{
			"beside a Value without a kind", "Kinds", wire(one, msg(25)), `"anyValue":null`, `"count":1`, `"count":2`,
			wire(two, msg(25)),
		},
		{"beside an Any", "Kinds", wire(one, broken), `"detail":null`, `"count":1`, `"count":2`, wire(two, broken)},
		{
			"an Any is mended", "Kinds", broken, `"detail":null`, `null`,
			`{"@type":"x/acme.notify.v1.EmailAddress","address":"a"}`,
			msg(14, str(1, "x/acme.notify.v1.EmailAddress"), msg(2, str(1, "a")), unknown),
		},
		{
			"beside a text", "acme.odd.Order", wire(str(1, "a\xff"), varint(2, 5), unknown), `"id":null`, `"amount":5`,
			`"amount":6`, wire(str(1, "a\xff"), varint(2, 6), unknown),
		},
		{
			"a text is mended", "acme.odd.Order", wire(str(1, "a\xff"), unknown), `"id":null`, `null`, `"b"`,
			wire(str(1, "b"), unknown),
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
			if err != nil {
				t.Fatal(err)
			}
			sameMessage(t, tt.typ, e.Body, tt.want)
			if again := editText(t, editor(), e.Body, h); again != e.JSON {
				t.Errorf("JSON %s, then %s", e.JSON, again)
			}
		})
	}
}

// TestLostValuesWithoutJSON checks that an edit says when a value that the JSON does not show is
// lost, and that null counts as a value where a oneof has one.
func TestLostValuesWithoutJSON(t *testing.T) {
	t.Parallel()
	time := payloadtest.LengthPrefixed(21, varint(1, 1700000000000))
	strange := payloadtest.LengthPrefixed(14, payloadtest.LengthPrefixed(1, []byte("type.googleapis.com/x.Unknown")))
	odd := func(ms uint64) []byte {
		return payloadtest.LengthPrefixed(20, payloadtest.LengthPrefixed(21, varint(1, ms)))
	}
	for _, tt := range []struct {
		name     string
		body     []byte
		old, new string
		lost     int
	}{
		{"kept", wire(varint(3, 1), time), `"count":1`, `"count":2`, 0},
		{"removed", wire(varint(3, 1), time), `,"at":null`, ``, 1},
		{"with its message", wire(varint(3, 1), odd(1<<60)), `"child":{"at":null}`, `"child":null`, 1},
		{"an Any without a schema", wire(varint(3, 1), strange), `x.Unknown`, `acme.notify.v1.EmailAddress`, 1},
	} {
		text := compact(editText(t, editor(), tt.body, Hints{Type: "Kinds"}))
		if !strings.Contains(text, tt.old) {
			t.Errorf("%s: %s", tt.name, text)
			continue
		}
		e, err := editor().Edit(tt.body, Hints{Type: "Kinds"}, strings.Replace(text, tt.old, tt.new, 1), nil)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		lost := slices.ContainsFunc(e.Checks, func(c Check) bool {
			return !c.OK && strings.Contains(c.Text, "1 value without a JSON form dropped")
		})
		if lost != (tt.lost > 0) {
			t.Errorf("%s: %+v", tt.name, e.Checks)
		}
	}
}

// TestValuesWithoutJSONAreNamed checks the note that lists them. If the decoder has any mask, the
// note must not contain map keys.
func TestValuesWithoutJSONAreNamed(t *testing.T) {
	t.Parallel()
	const note = "the JSON has null in place of values that have no JSON form; an edit keeps them, and cannot write such values"
	body := payloadtest.LengthPrefixed(21, varint(1, 1<<60))
	doc := decode(body, Hints{Type: "Kinds"})
	if doc.JSONProblem != note+": at" || doc.Problem != "" || len(doc.Notes) != 1 || doc.Notes[0] != doc.JSONProblem {
		t.Errorf("%q, problem %q, notes %q", doc.JSONProblem, doc.Problem, doc.Notes)
	}
	if doc = patternMask().Decode(body, Hints{Type: "Kinds"}, nil); doc.JSONProblem != note {
		t.Errorf("%q", doc.JSONProblem)
	}
}
