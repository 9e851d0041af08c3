package payload

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
)

// These are numbers that patternMask hides.
const (
	card  = "4111111111111111"
	other = "4222222222222222"
)

func editor() *Decoder { return &Decoder{Types: schemas()} }

// patternMask returns a decoder that masks numbers of 16 digits.
func patternMask() *Decoder {
	return &Decoder{Types: schemas(), Mask: Masks{Patterns: []*regexp.Regexp{digits16}}.Body()}
}

// editText returns the text that dlo offers to a person who wants to edit the given body.
func editText(t testing.TB, d *Decoder, body []byte, h Hints) string {
	t.Helper()
	e, err := d.Editable(body, h, nil)
	if err != nil {
		t.Fatalf("editable: %v", err)
	}
	return e.Text
}

// change edits a body by replacing texts in its JSON. The parameter "pairs" holds old and new texts
// in turn.
func change(t testing.TB, d *Decoder, body []byte, h Hints, pairs ...string) *Edited {
	t.Helper()
	text := editText(t, d, body, h)
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("no %q in %s", pairs[i], text)
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	e, err := d.Edit(body, h, text, nil)
	if err != nil {
		t.Fatalf("edit of %s: %v", text, err)
	}
	return e
}

func checksText(e *Edited) string {
	var w strings.Builder
	for _, c := range e.Checks {
		fmt.Fprintf(&w, "%s %s\n", map[bool]string{true: "ok", false: "warn"}[c.OK], c.Text)
	}
	return w.String()
}

func TestEditSample(t *testing.T) {
	t.Parallel()
	body := sample(t)
	e := change(t, editor(), encodeStd(payloadtest.Gzipped(t, body)), Hints{Type: email}, "welcome_v3", "welcome_v2")
	want := bytes.Replace(body, []byte("welcome_v3"), []byte("welcome_v2"), 1)
	doc := decode(e.Body, Hints{Type: email})
	if !bytes.Equal(doc.Body, want) || layers(doc) != "base64 (standard alphabet, padded) > gzip" {
		t.Errorf("got %x in %s", doc.Body, layers(doc))
	}
	if !slices.Equal(e.Changed, []string{"template.name"}) || e.JSON != doc.JSON {
		t.Errorf("changed %v, JSON %s", e.Changed, e.JSON)
	}
	wantChecks := `ok Valid JSON, valid for the type
ok Encoded again to 157 B, decodes back unchanged
ok 1 field that the JSON does not show, 13 B, carried over
ok base64 of gzip, as received
ok ` + deadletter.Bytes(len(e.Body)) + ` to send (limit 16 MiB)
warn Same ` + "`request_id`" + `: a consumer that saw it may skip it
warn Same ` + "`idempotency_key`" + `: a consumer that saw it may skip it
`
	if got := checksText(e); got != wantChecks {
		t.Errorf("checks\n%s", got)
	}
}

func TestEditOfJSON(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body, File, want string
	}{
		{
			"as typed", `{"a":1,"b":[1.50,2e3]}`, "{ \"b\": [1.50, 2e3],\r\n\"a\": 12345678901234567890123 }",
			"{ \"b\": [1.50, 2e3],\n\"a\": 12345678901234567890123 }",
		},
		{"only spaces and order differ", `{"a":1,"b":"\u00e4"}`, `{"b": "ä", "a": 1}`, `{"a":1,"b":"\u00e4"}`},
		{"number text differs", `{"a":1}`, `{"a":1.0}`, `{"a":1.0}`},
		{"byte order mark stays", "\xef\xbb\xbf{\"a\":1}", `{"a":2}`, "\xef\xbb\xbf{\"a\":2}"},
		{"byte order mark of the editor goes", `{"a":1}`, "\ufeff{\"a\":2}", `{"a":2}`},
		{"half a surrogate pair", `{"a":"\ud800","b":1}`, `{"a":"\ud800","b":2}`, `{"a":"\ud800","b":2}`},
		{"half a surrogate pair is not U+FFFD", `{"a":"\ud800"}`, `{"a":"\ufffd"}`, `{"a":"\ufffd"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := editor().Edit([]byte(tt.body), Hints{}, tt.File, nil)
			if err != nil || string(e.Body) != tt.want {
				t.Errorf("got %+v, %v", e, err)
			}
		})
	}
}

func TestEditOfText(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body, File, want string // the new body; "!" and a text = the error contains the text
	}{
		{"as typed", "hello\nworld", "hello\nthere", "hello\nthere"},
		{"line ends of a browser", "hello\nworld\n", "hello\r\nworlds\r\n", "hello\nworlds\n"},
		{"line ends of the original", "hello\r\nworld\r\n", "hello\nworlds\n", "hello\r\nworlds\r\n"},
		{"nothing changed", "a\r\nb\nc\x1b[0m\u202e", "a\nb\nc\\x1b[0m\\u202e", "a\r\nb\nc\x1b[0m\u202e"},
		{"line with an escape stays", "a\n\x1b[1mb\nc", "x\n\\x1b[1mb\nc", "x\n\x1b[1mb\nc"},
		{
			"line with an escape is changed", "a\n\x1b[1mb\nc", "a\n\\x1b[1mbb\nc",
			"!line 2, column 1: the stored line has a character that is shown as \\x1b",
		},
		{"line with an escape is written without it", "a\n\x1b[1mb\nc", "a\nb\nc", "a\nb\nc"},
		{"line with an escape is doubled", "a\n\x1bb", "a\n\\x1bb\n\\x1bb", "a\n\x1bb\n\x1bb"},
		{"no text", "hello", "hello\x00", "!this is not text, because it has byte 0x00 at 5"},
		{
			"a line with a masked value", "card 4111111111111111\nname", "card 4111111111111111\nother",
			"card 4111111111111111\nother",
		},
		{
			"a mask in place of the value", "card 4111111111111111\nname", "card ••••\nother",
			"!line 1, column 1: •••• stands for a value that is masked",
		},
		{"such dots were received", "card ••••\nname", "card ••••\nother", "card ••••\nother"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e, err := patternMask().Edit([]byte(tt.body), Hints{}, tt.File, nil)
			if want, fails := strings.CutPrefix(tt.want, "!"); fails {
				if err == nil || !strings.HasPrefix(err.Error(), want) {
					t.Errorf("got %v", err)
				}
			} else if err != nil || string(e.Body) != want {
				t.Errorf("got %+v, %v", e, err)
			}
		})
	}
}

func TestEditErrors(t *testing.T) {
	t.Parallel()
	kinds := encode(t, "Kinds", `{"count": 1, "detail": {"@type": "x/acme.notify.v1.EmailAddress", "address": "a"}}`)
	tests := []struct {
		name, File, want string
	}{
		{"nothing", "", "line 1, column 1: there is no JSON"},
		{"no end", "{\n  \"count\": 1", "line 2, column 13: this is not JSON: unexpected EOF: the text ends here"},
		{"no comma", "{\n  \"count\": 1\n  \"total\": 2}", "line 3, column 3: this is not JSON: invalid character '\"' after object value (expecting ',' or '}')"},
		{"comma at the end", "{\"count\": 1,\n}", "line 1, column 12: this is not JSON: invalid character ',' at start of value; no comma goes before the end"},
		{
			"comma at the end of a list", "{\"tags\": [\"ä\", ]}",
			"line 1, column 14: tags: this is not JSON: invalid character ',' at start of value; no comma goes before the end",
		},
		{"no colon", `{"count" 1}`, "line 1, column 10: count: this is not JSON: invalid character '1' after object name (expecting ':')"},
		{
			"single quotes", "{'count': 1}",
			"line 1, column 2: this is not JSON: invalid character '\\'' at start of value; JSON has double quotes only",
		},
		{
			"comment", "{ // one\n\"count\": 1}",
			"line 1, column 3: this is not JSON: invalid character '/' at start of value; JSON has no comments",
		},
		{"no quotes", `{"email": dana}`, "line 1, column 11: email: this is not JSON: invalid character 'd' at start of value; texts need double quotes"},
		{"text without an end", "{\"email\": \"dana\n}", `line 1, column 16: email: this is not JSON: invalid character '\n' in string (expecting non-control character); write it as \u000a, or end the text`},
		{
			"tab in a text", "{\"email\": \"a\tb\"}",
			`line 1, column 13: email: this is not JSON: invalid character '\t' in string (expecting non-control character); write it as \u0009`,
		},
		{"escape", `{"email": "a\qb"}`, `line 1, column 13: email: this is not JSON: invalid escape sequence ` + "`\\q` in string; a backslash itself is written"},
		{
			"half a surrogate pair", `{"email": "\ud800"}`,
			"line 1, column 11: email: the text has half of a pair of escapes",
		},
		{"not UTF-8", "{\"email\": \"a\xff\"}", "line 1, column 13: a byte here is not UTF-8"},
		{"NaN", `{"ratio": NaN}`, "line 1, column 11: ratio: this is not JSON: invalid character 'N' at start of value; a field of type double or float takes this number"},
		{"leading zero", `{"count": 01}`, "line 1, column 12: this is not JSON: invalid character '1' after object value (expecting ',' or '}'); a number has no leading zero"},
		{
			"name twice", "{\"count\": 1,\n\"count\": 2}",
			"line 2, column 1: count: this name is there twice, first in line 1",
		},
		{
			"name in two spellings", "{\"anyValue\": 1,\n\"any_value\": 2}",
			"line 2, column 1: any_value: this is there twice, under two spellings",
		},
		{"more after it", "{} {}", "line 1, column 4: the JSON ends before this"},
		{
			"unknown field", "{\n  \"address\": {\"adress\": \"x\"}}",
			"line 2, column 15: address.adress: acme.notify.v1.EmailAddress has no such field: it has address, displayName",
		},
		{"unknown extension", `{"[a.b]": 1}`, "line 1, column 2: [a.b]: acme.notify.v1.Kinds has no such field"},
		{"no object", `{"address": 7}`, "line 1, column 13: address: write an object"},
		{"no list", `{"tags": "a"}`, "line 1, column 10: tags: write a list"},
		{"no map", `{"people": []}`, "line 1, column 12: people: write an object"},
		{
			"text for a number", `{"count": "one"}`,
			"line 1, column 11: count: write a whole number from -2147483648 to 2147483647",
		},
		{
			"out of range", `{"count": 2147483648}`,
			"line 1, column 11: count: write a whole number from -2147483648 to 2147483647",
		},
		{"negative", `{"total": -1}`, "line 1, column 11: total: write a whole number from 0 to 18446744073709551615"},
		{"fraction", `{"balance": 1.5}`, "line 1, column 13: balance: write a whole number from -9223372036854775808"},
		{"float out of range", `{"share": 1e39}`, "line 1, column 11: share: write a number in the range of a float"},
		{"element", `{"numbers": [1, "x"]}`, "line 1, column 17: numbers.[1]: write a whole number"},
		{"number for a text", `{"email": 1}`, "line 1, column 11: email: write a text in double quotes"},
		{"text for a bool", `{"urgent": "yes"}`, "line 1, column 12: urgent: write true or false"},
		{
			"enum name", `{"priority": "PRIORITY_HIHG"}`,
			"line 1, column 14: priority: write a number, or one of these in double quotes: PRIORITY_UNSPECIFIED, PRIORITY_LOW, PRIORITY_HIGH",
		},
		{
			"map key", `{"people": {"one": {}}}`,
			"line 1, column 13: people.one: a name in this map must be a whole number",
		},
		{
			"map value", `{"switches": {"true": "x"}}`,
			"line 1, column 23: switches.true: write a number in the range of a double",
		},
		{
			"two members of a oneof", "{\"email\": \"a\",\n \"address\": {}}",
			"line 2, column 2: address: another member of the same oneof is there already",
		},
		{"time", `{"at": "yesterday"}`, "line 1, column 8: at: write a time"},
		{"duration", `{"timeout": "1 h"}`, `line 1, column 13: timeout: write seconds, "1.5s"`},
		{"wrapper", `{"note": 1}`, "line 1, column 10: note: write a text in double quotes"},
		{"Any without a type", `{"detail": {"address": "a"}}`, "line 1, column 12: detail: an Any needs its type"},
		{
			"Any of an unknown type", "{\"detail\":\n{\"@type\": \"x/a.B\"}}",
			"line 2, column 11: detail.@type: the type of this Any is not registered",
		},
		{
			"in an Any", `{"detail": {"@type": "x/acme.notify.v1.EmailAddress", "address": 1}}`,
			"line 1, column 66: detail.address: write a text",
		},
		{
			"in an Any of a well-known type", `{"detail": {"@type": "x/google.protobuf.Duration", "value": 1}}`,
			`line 1, column 61: detail.value: write seconds`,
		},
		{
			"in a message in a list", "{\"children\": [{},\n{\"child\": {\"count\": true}}]}",
			"line 2, column 21: children.[1].child.count: write a whole number",
		},
		{"too deep", strings.Repeat("[", 501) + strings.Repeat("]", 501), "line 1, column 501: "},
		{
			"a mask in place of a value", `{"email": "••••"}`,
			"line 1, column 11: email: •••• stands for a value that is masked",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := editor().Edit(kinds, Hints{Type: "Kinds"}, tt.File, nil)
			if e := (*EditError)(nil); !errors.As(err, &e) || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
	if _, err := editor().Edit(
		encode(t, "acme.odd.Order", `{"id": "1"}`), Hints{Type: "acme.odd.Order"}, "{}", nil,
	); err == nil || !strings.Contains(err.Error(), "required field acme.odd.Order.id not set: put it back") {
		t.Errorf("required: %v", err)
	}
}

func TestNotEditable(t *testing.T) {
	t.Parallel()
	payloadtest.Unraced(t)
	big := encode(t, "Kinds", `{"tags": [`+strings.Repeat(`"`+strings.Repeat("x", 1000)+`",`, 2200)+`"x"]}`)
	tests := []struct {
		name string
		body []byte
		h    Hints
		want string
	}{
		{"empty", nil, Hints{}, "it is empty"},
		{"bytes", []byte{1, 2, 3, 0xff}, Hints{}, "no type is known"},
		{
			"too large",
			bytes.Repeat([]byte{0xa2, 0x01, 0x00}, 400_000),
			Hints{Type: "Kinds"},
			"too large to decode safely",
		},
		{"much JSON", big, Hints{Type: "Kinds"}, "the JSON would have about 2.1 MiB, above 2 MiB"},
		{"name twice", []byte(`{"a":1,"a":2}`), Hints{}, "this name is there twice"},
		{"in no charset", []byte("{\"a\":\"\x81\"}"), Hints{}, "not UTF-8"},
		{
			"deep JSON",
			[]byte(strings.Repeat("[", 600) + strings.Repeat("]", 600)),
			Hints{},
			"nested deeper than 500 levels",
		},
		{"long text", bytes.Repeat([]byte("line\n"), 500_000), Hints{}, "above 2 MiB"},
		{"no value of a kind", encode(t, "Kinds", `{"count": 1, "anyValue": {}}`)[:2], Hints{Type: "Kinds"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := patternMask().Editable(tt.body, tt.h, nil)
			_, again := patternMask().Edit(tt.body, tt.h, "{}", nil)
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
			} else if err == nil || !strings.Contains(err.Error(), tt.want) || again == nil ||
				again.Error() != err.Error() {
				t.Errorf("got %v, edit %v", err, again)
			}
			if _, err := patternMask().Replace(tt.body, tt.h, []byte("x"), nil); err != nil {
				t.Errorf("replace: %v", err)
			}
		})
	}
}

func TestEditable(t *testing.T) {
	t.Parallel()
	e, err := patternMask().Editable(encodeStd(payloadtest.Gzipped(t, sample(t))), Hints{Type: email}, nil)
	if err != nil || e.Syntax != JSON || e.Type != email || e.Masked || e.Wrapping != "base64 of gzip, as received" ||
		!strings.HasPrefix(e.Text, "{\n  \"requestId\"") {
		t.Errorf("got %+v, %v", e, err)
	}
	e, err = patternMask().Editable([]byte(`{"card":"4111111111111111"}`), Hints{}, nil)
	if err != nil || !e.Masked || e.Text != "{\n  \"card\": \"4111111111111111\"\n}" {
		t.Errorf("got %+v, %v", e, err)
	}
	long := strings.Repeat("line\n", 20_000)
	e, err = patternMask().Editable([]byte(long), Hints{}, nil)
	if err != nil || e.Syntax != Text || e.Text != long || e.Masked {
		t.Errorf("got %d bytes, %v", len(e.Text), err)
	}
}

func TestReplace(t *testing.T) {
	t.Parallel()
	e, err := editor().Replace(encodeStd(sample(t)), Hints{Type: email}, []byte(`{"a":1}`), nil)
	if err != nil || string(e.Body) != `{"a":1}` || e.JSON != "{\n  \"a\": 1\n}" ||
		!slices.Equal(e.Changed, []string{"body"}) {
		t.Fatalf("got %+v, %v", e, err)
	}
	for _, want := range []string{
		"ok Read as json, 7 B", "warn The stored body is read as " + email,
		"warn The stored body is wrapped (base64); this one is sent unchanged",
	} {
		if !strings.Contains(checksText(e), want) {
			t.Errorf("no %q in %s", want, checksText(e))
		}
	}
	if e, err := editor().Replace(
		[]byte("x"), Hints{}, []byte("x"), nil,
	); err != nil || !strings.Contains(checksText(e), nothingChanged) {
		t.Errorf("got %+v, %v", e, err)
	}
	if _, err := editor().Replace([]byte("x"), Hints{}, make([]byte, 65), &budget.Budget{
		Bytes: 64, Fields: 1, Depth: 1, Memory: 1 << 20,
	}); err == nil || err.Error() != "the new body has 65 B, and at most 64 B can be sent: make it smaller" {
		t.Errorf("got %v", err)
	}
}

func TestEditIsBounded(t *testing.T) {
	t.Parallel()
	b := &budget.Budget{Bytes: 200, Fields: 1000, Depth: 100, Memory: 64 << 20}
	if _, err := editor().Edit(
		[]byte(`{"a":1}`), Hints{}, `{"a":"`+strings.Repeat("x", 250)+`"}`, b,
	); err == nil || !strings.Contains(err.Error(), "the new body has 258 B, and at most 200 B can be sent") {
		t.Errorf("got %v", err)
	}
	if _, err := editor().Edit(
		[]byte(`{"a":1}`), Hints{}, strings.Repeat(" ", 3<<20), nil,
	); err == nil || !strings.Contains(err.Error(), "at most 2 MiB") {
		t.Errorf("got %v", err)
	}
	// In this JSON, each child takes only two bytes, but it becomes a message that takes 1,000
	// bytes of memory.
	text := `{"children": [` + strings.Repeat("{},", 300_000) + `{}]}`
	if _, err := editor().Edit(
		encode(t, "Kinds", `{"count": 1}`), Hints{Type: "Kinds"}, text, nil,
	); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("got %v", err)
	}
	if _, err := editor().Edit(
		[]byte(`{"a":1}`), Hints{}, "["+strings.Repeat("0,", 900_000)+"0]", nil,
	); err == nil || !strings.Contains(err.Error(), "too large to edit") {
		t.Errorf("got %v", err)
	}
}

// TestEditOfMaskedValues checks that the editor shows what is masked to other people, that the list
// of changes, which everybody sees, does not, and that a text with masks is no edit.
func TestEditOfMaskedValues(t *testing.T) {
	t.Parallel()
	json := []byte(`{"card":"` + card + `","map":{"` + card + `":{"n":1},"k":2},"n":1}`)
	message := encode(t, "Kinds", `{"email":"`+card+`","extra":{"`+card+`":{"n":1},"k":2},"count":1}`)
	tests := []struct {
		name     string
		body     []byte
		h        Hints
		old, new string
		changed  string
	}{
		{"a value", json, Hints{}, card, "x", "card"},
		{"below a name", json, Hints{}, `"n": 1`, `"n": 2`, "map"},
		{"beside them", json, Hints{}, `"k": 2`, `"k": 3`, "map.k"},
		{"a value of a message", message, Hints{Type: "Kinds"}, card, "x", "email"},
		{"below a name of a message", message, Hints{Type: "Kinds"}, `"n": 1`, `"n": 2`, "extra"},
		{"a new name", message, Hints{Type: "Kinds"}, `"k": 2`, `"k": 2, "` + other + `": 3`, "extra"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := change(t, patternMask(), tt.body, tt.h, tt.old, tt.new)
			if got := strings.Join(e.Changed, " "); !e.Masked || got != tt.changed {
				t.Errorf("masked %v, changed %s", e.Masked, got)
			}
			if _, err := patternMask().Edit(
				tt.body, tt.h, patternMask().Decode(tt.body, tt.h, nil).JSON, nil,
			); err == nil || !strings.Contains(err.Error(), writesMask) {
				t.Errorf("masked JSON: %v", err)
			}
		})
	}
}
