package payload

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
	"google.golang.org/protobuf/encoding/protowire"
)

const email = "acme.notify.v1.EmailRequested"

func decode(body []byte, h Hints) *Document {
	return (&Decoder{Types: schemas()}).Decode(body, h, nil)
}

func TestDecodeSample(t *testing.T) {
	t.Parallel()
	body := sample(t)
	if len(body) != 157 {
		t.Fatalf("sample has %d bytes", len(body))
	}
	wrapped := []byte(base64.StdEncoding.EncodeToString(body))
	d := &Decoder{Types: schemas(), Bindings: []deadletter.Binding{{Queue: "email-*", Type: email}}}
	doc := d.Decode(wrapped, Hints{
		Queue: "email-queue", ContentType: "application/x-protobuf", ContentEncoding: "base64",
	}, nil)
	if doc.Kind != Protobuf || doc.Type != email || doc.Chosen != "the binding of email-*" || doc.Problem != "" ||
		doc.Size != 212 {
		t.Fatalf("got %s %s by %q, size %d, problem %q", doc.Kind, doc.Type, doc.Chosen, doc.Size, doc.Problem)
	}
	if want := []Layer{
		{
			Name:   "base64",
			Detail: "standard alphabet, padded",
			Bytes:  157,
			Before: []byte{},
			After:  []byte{},
			Base64: &Base64{},
			outer:  wrapped,
		},
	}; !reflect.DeepEqual(doc.Layers, want) {
		t.Errorf("layers %+v", doc.Layers)
	}
	tests := []struct {
		path              []string
		value, note, typ  string
		kind              Kind
		number            int32
		from, to          int
		isDefault, unkown bool
	}{
		{[]string{"request_id"}, `"req_9f2c41d07b"`, "", "string", String, 1, 0, 16, false, false},
		{[]string{"tenant_id"}, `48213`, "", "int64", Number, 2, 16, 20, false, false},
		{[]string{"to"}, ``, "", "EmailAddress", Message, 3, 20, 56, false, false},
		{[]string{"to", "address"}, `"dana@example.com"`, "", "string", String, 1, 0, 0, false, false},
		{[]string{"template", "version"}, `0`, "default, not on the wire", "uint32", Number, 3, 0, 0, true, false},
		{[]string{"variables"}, ``, "2 entries", "map<string, string>", Map, 5, 77, 97, false, false},
		{[]string{"variables", `"plan"`}, `"team"`, "", "", String, 0, 0, 0, false, false},
		{[]string{"priority"}, `PRIORITY_HIGH`, "2", "Priority", Enum, 6, 111, 113, false, false},
		{[]string{"created_at"}, `2026-11-20 06:52:14.208 UTC`, "", "Timestamp", Timestamp, 7, 113, 126, false, false},
		{
			[]string{"idempotency_key"},
			`5b1e7ac0 9d3f44e2 a6b18c20 f7e9d413`,
			"16 B",
			"bytes",
			Bytes,
			9,
			126,
			144,
			false,
			false,
		},
		{
			[]string{"unknown"},
			`reads as message: 1: "batsh", 2: 2002`,
			"",
			"length-delimited",
			Wire,
			21,
			144,
			157,
			false,
			true,
		},
	}
	for _, tt := range tests {
		n := nodeAt(t, doc, tt.path...)
		if n.Value != tt.value || n.Note != tt.note || n.Type != tt.typ || n.Kind != tt.kind || n.Number != tt.number ||
			n.Default != tt.isDefault || n.Unknown != tt.unkown {
			t.Errorf("%v: got %+v", tt.path, n)
		}
		if tt.to > 0 && (len(n.Ranges) == 0 || n.Ranges[0] != (Range{tt.from, tt.to})) {
			t.Errorf("%v: ranges %v, want %d-%d", tt.path, n.Ranges, tt.from, tt.to)
		}
	}
	if got := nodeAt(t, doc, "variables").Ranges; !reflect.DeepEqual(got, []Range{{77, 97}, {97, 111}}) {
		t.Errorf("ranges of the map: %v", got)
	}
	if doc.UnknownFields != 1 || doc.UnknownBytes != 13 {
		t.Errorf("unknown: %d fields, %d bytes", doc.UnknownFields, doc.UnknownBytes)
	}
	want := `{
  "requestId": "req_9f2c41d07b",
  "tenantId": "48213",
  "to": {
    "address": "dana@example.com",
    "displayName": "Dana Whitfield"
  },
  "template": {
    "name": "welcome_v3",
    "locale": "en-GB"
  },
  "variables": {
    "first_name": "Dana",
    "plan": "team"
  },
  "priority": "PRIORITY_HIGH",
  "createdAt": "2026-11-20T06:52:14.208Z",
  "idempotencyKey": "Wx56wJ0/ROKmsYwg9+nUEw=="
}`
	if doc.JSON != want {
		t.Errorf("JSON:\n%s", doc.JSON)
	}
	wantSteps := []Step{
		{true, "base64, standard alphabet, padded, as the content encoding says"},
		{true, "protobuf by the binding of email-*, 13 of 157 B in 1 field unknown"},
	}
	if !reflect.DeepEqual(doc.Steps[:1], wantSteps[:1]) || doc.Steps[len(doc.Steps)-1] != wantSteps[1] {
		t.Errorf("steps %+v", doc.Steps)
	}
	if got, want := Summary(
		doc, "",
	), `priority: PRIORITY_HIGH, created_at: 2026-11-20 06:52:14.208 UTC, to.address: "dana@example.com", to.display_name: "Dana Whitfield", template.name: "welcome_v3", template.locale: "en-GB", variables…`; got != want {
		t.Errorf("summary %s", got)
	}
	for path, want := range map[string]string{
		"to.address": "dana@example.com", "variables.plan": "team", "priority": "PRIORITY_HIGH", "tenant_id": "48213",
	} {
		if got, ok := doc.field(path); got != want || !ok {
			t.Errorf("Field(%s) = %q, %v", path, got, ok)
		}
	}
	for _, path := range []string{"to", "nope", "to.nope", ""} {
		if got, ok := doc.field(path); ok {
			t.Errorf("Field(%s) = %q", path, got)
		}
	}
}

func TestTreeOfKinds(t *testing.T) {
	t.Parallel()
	doc := decode(encode(t, "Kinds", `{
		"ratio": 0.5, "share": 0.25, "count": -3, "balance": "-9007199254740993", "checksum": 7, "offset": "-1", "urgent": true, "total": "18446744073709551615",
		"numbers": [1, 2, 300], "tags": ["a", "b\u202ec"], "address": {"address": "x@y"}, "nickname": "",
		"detail": {"@type": "type.googleapis.com/acme.notify.v1.TemplateRef", "name": "n", "version": 4},
		"timeout": "5400.5s", "mask": "a,bC.d", "extra": {"k": [1, null, true, {"x": "y"}]}, "note": "hi",
		"people": {"7": {"address": "seven"}, "-1": {"address": "minus"}}, "child": {"child": {"count": 9}}, "at": "1969-12-31T23:59:59.5Z",
		"priority": 99, "priorities": ["PRIORITY_LOW", 2], "anyValue": {"a": 1.5}, "switches": {"true": 1, "false": "NaN"}}`), Hints{
		Type: "Kinds",
	})
	tests := []struct {
		path        []string
		value, note string
		kind        Kind
	}{
		{[]string{"ratio"}, "0.5", "", Number},
		{[]string{"share"}, "0.25", "", Number},
		{[]string{"count"}, "-3", "", Number},
		{[]string{"balance"}, "-9007199254740993", "", Number},
		{[]string{"checksum"}, "7", "", Number},
		{[]string{"offset"}, "-1", "", Number},
		{[]string{"urgent"}, "true", "", Bool},
		{[]string{"total"}, "18446744073709551615", "", Number},
		{[]string{"numbers"}, "", "3 items", List},
		{[]string{"numbers", "[2]"}, "300", "", Number},
		{[]string{"tags", "[1]"}, `"b\u202ec"`, "", String},
		{[]string{"address"}, "", "oneof contact", Message},
		{[]string{"nickname"}, `""`, "", String},
		{[]string{"detail"}, "", "acme.notify.v1.TemplateRef", Message},
		{[]string{"detail", "version"}, "4", "", Number},
		{[]string{"timeout"}, "1 h 30 min 0.5 s", "", Duration},
		{[]string{"mask"}, `"a, b_c.d"`, "2 paths", String},
		{[]string{"extra", `"k"`}, "", "4 items", List},
		{[]string{"extra", `"k"`, "[0]"}, "1", "", Number},
		{[]string{"extra", `"k"`, "[1]"}, "null", "", Null},
		{[]string{"extra", `"k"`, "[3]", `"x"`}, `"y"`, "", String},
		{[]string{"note"}, `"hi"`, "", String},
		{[]string{"people", "7", "address"}, `"seven"`, "", String},
		{[]string{"child", "child", "count"}, "9", "", Number},
		{[]string{"at"}, "1969-12-31 23:59:59.5 UTC", "", Timestamp},
		{[]string{"priority"}, "99", "no such value in Priority", Enum},
		{[]string{"priorities", "[1]"}, "PRIORITY_HIGH", "2", Enum},
		{[]string{"any_value", `"a"`}, "1.5", "", Number},
		{[]string{"switches", "false"}, "NaN", "", Number},
	}
	for _, tt := range tests {
		if n := nodeAt(t, doc, tt.path...); n.Value != tt.value || n.Note != tt.note || n.Kind != tt.kind {
			t.Errorf("%v: got %+v", tt.path, n)
		}
	}
	if doc.JSON == "" || !json.Valid([]byte(doc.JSON)) ||
		!strings.Contains(doc.JSON, `"@type": "type.googleapis.com/acme.notify.v1.TemplateRef"`) ||
		!strings.Contains(doc.JSON, `b\u202ec`) {
		t.Errorf("JSON %s, notes %v", doc.JSON, doc.Notes)
	}
	for i := 1; i < len(doc.Fields); i++ {
		if doc.Fields[i].Number < doc.Fields[i-1].Number {
			t.Errorf("field %d behind %d", doc.Fields[i].Number, doc.Fields[i-1].Number)
		}
	}
}

func TestProto2AndEditions(t *testing.T) {
	t.Parallel()
	order := decode(
		encode(
			t, "acme.odd.Order",
			`{"line": {"sku": "s1", "inner": {"text": "t"}}, "extra": [{"n": 1}, {"n": 2}], "unpacked": [1, 2], "[acme.odd.remark]": "late", "[acme.odd.codes]": [7]}`,
		),
		Hints{Type: "acme.odd.Order"},
	)
	if n := nodeAt(t, order, "line", "sku"); n.Value != `"s1"` {
		t.Errorf("group: %+v", n)
	}
	if n := nodeAt(t, order, "line", "inner", "text"); n.Value != `"t"` {
		t.Errorf("message in a group: %+v", n)
	}
	if n := nodeAt(t, order, "extra", "[1]", "n"); n.Value != "2" {
		t.Errorf("repeated group: %+v", n)
	}
	if n := nodeAt(t, order, "[acme.odd.remark]"); n.Value != `"late"` || n.Number != 100 {
		t.Errorf("extension: %+v", n)
	}
	if order.UnknownFields != 0 || !strings.Contains(order.JSON, `"[acme.odd.remark]": "late"`) {
		t.Errorf("unknown %d, JSON %s", order.UnknownFields, order.JSON)
	}
	if len(order.Notes) != 1 || !strings.Contains(order.Notes[0], "required") {
		t.Errorf("notes %q", order.Notes)
	}
	cart := decode(encode(t, "Cart", `{"id": "", "owner": {"name": "Ann"}, "sizes": [1, 2]}`), Hints{Type: "Cart"})
	if n := nodeAt(t, cart, "owner", "name"); n.Value != `"Ann"` {
		t.Errorf("delimited message: %+v", n)
	}
	if n := nodeAt(t, cart, "id"); n.Default || n.Value != `""` {
		t.Errorf("explicit presence: %+v", n)
	}
	if n := nodeAt(t, cart, "items"); !n.Default {
		t.Errorf("implicit presence: %+v", n)
	}
}

func TestAnyThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	any := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "type.googleapis.com/ac.XY")
	any = protowire.AppendBytes(protowire.AppendTag(any, 2, protowire.BytesType), []byte{8, 1})
	doc := decode(protowire.AppendBytes(protowire.AppendTag(nil, 14, protowire.BytesType), any), Hints{Type: "Kinds"})
	if doc.Kind != Protobuf {
		t.Fatalf("kind %s, problem %q", doc.Kind, doc.Problem)
	}
	if n := nodeAt(t, doc, "detail"); n.Note != "ac.XY is not registered" {
		t.Errorf("node %+v", n)
	}
	if doc.JSON == "" || len(doc.Notes) != 1 || !strings.Contains(doc.Notes[0], "ac.XY") {
		t.Errorf("JSON %q, notes %q", doc.JSON, doc.Notes)
	}
	any = protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), email)
	any = protowire.AppendBytes(protowire.AppendTag(any, 2, protowire.BytesType), []byte{0x0a, 9})
	doc = decode(protowire.AppendBytes(protowire.AppendTag(nil, 14, protowire.BytesType), any), Hints{Type: "Kinds"})
	if n := nodeAt(
		t, doc, "detail",
	); n.Note != "does not parse as "+email || !strings.Contains(doc.JSON, "null") || len(doc.Notes) != 1 {
		t.Errorf("node %+v, JSON %q, notes %q", n, doc.JSON, doc.Notes)
	}
	// at { seconds: 1<<60 }
	doc = decode([]byte("\xaa\x01\x0a\x08\x80\x80\x80\x80\x80\x80\x80\x80\x10"), Hints{Type: "Kinds"})
	if n := nodeAt(t, doc, "at"); n.Note != "out of range" || !strings.Contains(doc.JSON, "null") ||
		len(doc.Notes) != 1 {
		t.Errorf("node %+v, JSON %q, notes %q", n, doc.JSON, doc.Notes)
	}
}

func TestTextAndBytes(t *testing.T) {
	t.Parallel()
	doc := decode([]byte("line\r\n\x1b[31mred\x1b[0m \u200b<b>"), Hints{})
	if doc.Kind != Text || doc.Text != "line\n\\x1b[31mred\\x1b[0m \\u200b<b>" {
		t.Errorf("%s %q", doc.Kind, doc.Text)
	}
	long := strings.Repeat("ä", maxText)
	doc = decode([]byte(long), Hints{})
	if len(doc.Text) != maxText || len(doc.Notes) != 1 ||
		doc.Notes[0] != "the first 64 KiB of the text are shown, 64 KiB are left out" {
		t.Errorf("%d bytes, notes %q", len(doc.Text), doc.Notes)
	}
	doc = decode([]byte{0, 1, 'a', 0xff}, Hints{})
	if doc.Kind != Binary || Summary(doc, "") != "binary, 4 B: 00 01 61 ff" {
		t.Errorf("%s %q", doc.Kind, Summary(doc, ""))
	}
	if h := doc.Hexdump(100); len(h.Rows) != 1 || h.Rows[0].ASCII != "··a·" || h.Note != "" ||
		h.Rows[0].Offset != "0000" {
		t.Errorf("hex %+v", h)
	}
	masked := pathMask().Decode(bytes.Repeat([]byte{0}, 17), Hints{}, nil)
	if masked.Kind != Binary || Summary(masked, "") != "binary, 17 B" {
		t.Errorf("%s %q", masked.Kind, Summary(masked, ""))
	}
	if h := decode(
		bytes.Repeat([]byte{0}, 5000), Hints{},
	).Hexdump(4096); len(h.Rows) != 256 || h.Note != "the first 4 KiB of 4.9 KiB" ||
		h.Rows[1].Hex != "00 00 00 00 00 00 00 00  00 00 00 00 00 00 00 00" {
		t.Errorf("hex note %q, %d rows", h.Note, len(h.Rows))
	}
}

func TestCapsAreSaid(t *testing.T) {
	t.Parallel()
	payloadtest.Unraced(t)
	var numbers, tags []string
	for i := range 5000 {
		numbers = append(numbers, fmt.Sprint(i))
		tags = append(tags, fmt.Sprintf(`{"count": %d, "child": {}, "tags": ["%s"]}`, i+1, strings.Repeat("x", 300)))
	}
	doc := decode(
		encode(t, "Kinds", `{"numbers": [`+strings.Join(numbers, ",")+`], "email": "`+strings.Repeat("é", 4000)+`"}`),
		Hints{Type: "Kinds"},
	)
	n := nodeAt(t, doc, "numbers")
	if len(n.Children) != maxItems+1 || n.Children[maxItems].Kind != More ||
		n.Children[maxItems].Value != "4,900 more items not shown" {
		t.Errorf("last child %+v of %d", n.Children[len(n.Children)-1], len(n.Children))
	}
	if n := nodeAt(t, doc, "email"); n.Note != "oneof contact, 3.8 KiB more" || len(n.Value) != maxValue+2 {
		t.Errorf("note %q, %d bytes", n.Note, len(n.Value))
	}
	doc = decode(encode(t, "Kinds", `{"children": [`+strings.Join(tags, ",")+`]}`), Hints{Type: "Kinds"})
	if !strings.Contains(strings.Join(doc.Notes, "\n"), "the tree shows the first 2,000 entries; ") {
		t.Errorf("notes %q", doc.Notes)
	}
	if got := countNodes(doc.Fields); got > maxNodes+10 {
		t.Errorf("%d nodes", got)
	}
	var members []string
	for i := range 5000 {
		members = append(members, fmt.Sprintf(`"k%d":"%s"`, i, strings.Repeat("y", 300)))
	}
	doc = decode([]byte("{"+strings.Join(members, ",")+"}"), Hints{})
	notes := strings.Join(doc.Notes, "\n")
	if !strings.Contains(notes, "3,000 more, with what they contain, are left out") ||
		!strings.Contains(notes, "cut to 64 bytes") {
		t.Errorf("notes %q", doc.Notes)
	}
	if doc.JSON == "" {
		t.Error("JSON of 1.5 MB is left out")
	}
	doc = decode([]byte("["+strings.Repeat("1111111111,", 400_000)+"1]"), Hints{})
	if doc.JSON != "" || doc.Kind != JSON ||
		!strings.Contains(strings.Join(doc.Notes, "\n"), "above 2 MiB is left out") &&
			!strings.Contains(strings.Join(doc.Notes, "\n"), "more than 2 MiB and is left out") {
		t.Errorf("kind %s, JSON of %d bytes, notes %q", doc.Kind, len(doc.JSON), doc.Notes)
	}
}

func countNodes(nodes []Node) int {
	n := len(nodes)
	for i := range nodes {
		n += countNodes(nodes[i].Children)
	}
	return n
}

func TestSummaryIsCutSafely(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		strings.Repeat("ä", 300), "{\"k\":\"" + strings.Repeat("é\u202e", 300) + "\"}",
		`{"` + strings.Repeat("\u200b", 500) + `":1,"b":"` + strings.Repeat("z", 150) + `","c":2,"d":"` +
			strings.Repeat("w", 150) + `"}`,
		"\x00" + strings.Repeat("\xff", 100), "{}", "[[]]", `[""]`,
	} {
		s := Summary(decode([]byte(body), Hints{}), "")
		if len(s) > 200 || !utf8.ValidString(s) || s == "" || visible(s, "") != s {
			t.Errorf("%.20q: %d bytes: %q", body, len(s), s)
		}
	}
	if got := Summary(decode(nil, Hints{}), ""); got != "empty body" {
		t.Errorf("got %q", got)
	}
	if got := Summary(
		decode([]byte(`{"url":"https://x/`+strings.Repeat("p", 200)+`","tenant":48213}`), Hints{}), "",
	); got != `url: "https://x/`+strings.Repeat("p", 65)+`…", tenant: 48213` {
		t.Errorf("got %q", got)
	}
}

func TestUnknownFieldsAreGuessed(t *testing.T) {
	t.Parallel()
	f := func(num protowire.Number, typ protowire.Type, value ...byte) []byte {
		return append(protowire.AppendTag([]byte{0x18, 1}, num, typ), value...)
	}
	tests := []struct {
		name  string
		body  []byte
		typ   string
		value string
	}{
		{"number", f(900, protowire.VarintType, 5), "varint", "5"},
		{
			"negative number", f(900, protowire.VarintType, protowire.AppendVarint(nil, 1<<64-3)...), "varint",
			"18446744073709551613 or -3",
		},
		{"float", f(900, protowire.Fixed32Type, 0, 0, 0xc0, 0x3f), "fixed32", "1069547520 or 1.5"},
		{"fixed32", f(900, protowire.Fixed32Type, 7, 0, 0, 0), "fixed32", "7"},
		{
			"double", f(900, protowire.Fixed64Type, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f), "fixed64",
			"4609434218613702656 or 1.5",
		},
		{"text", f(900, protowire.BytesType, 3, 'a', '"', 'b'), "length-delimited", `reads as text: "a\"b"`},
		{"nothing", f(900, protowire.BytesType, 0), "length-delimited", "empty"},
		{"bytes", f(900, protowire.BytesType, 2, 0xff, 0xfe), "length-delimited", "2 B: fffe"},
		{
			"group",
			append(f(900, protowire.StartGroupType, 8, 1), protowire.AppendTag(nil, 900, protowire.EndGroupType)...),
			"group", "group: 1: 1",
		},
		{
			"message in a message", f(900, protowire.BytesType, 5, 0x0a, 3, 0x0a, 1, 7), "length-delimited",
			`reads as message: 1: {1: 1 B: 07}`,
		},
		{
			"many fields", f(900, protowire.BytesType, append([]byte{20}, bytes.Repeat([]byte{8, 1}, 10)...)...),
			"length-delimited", "reads as message: 1: 1, 1: 1, 1: 1, 1: 1, 1: 1, 1: 1, …",
		},
		{"wrong wire type of a known field", []byte{0x18, 1, 0x50, 9}, "varint", "9"},
	}
	for _, tt := range tests {
		doc := decode(tt.body, Hints{Type: "Kinds"})
		if n := nodeAt(
			t, doc, "unknown",
		); n.Value != tt.value || n.Type != tt.typ || !n.Unknown || doc.UnknownFields != 1 {
			t.Errorf("%s: %+v", tt.name, n)
		}
	}
}

// TestPanicsAreContained checks that a panic while a body is decoded becomes a problem of the
// document. In the test, a mask panics, in place of any code that may panic inside a decoder.
func TestPanicsAreContained(t *testing.T) {
	t.Parallel()
	d := &Decoder{Types: schemas(), Mask: &Mask{Text: func(string) (string, bool) { panic("secret") }}}
	for _, body := range [][]byte{sample(t), []byte(`{"a":1}`), []byte("text"), encodeStd(sample(t))} {
		doc := d.Decode(body, Hints{Type: email}, nil)
		if doc.Kind != Binary || doc.Problem != "a decoder failed on this body (internal error)" || !doc.Masked {
			t.Errorf("got %s, %q", doc.Kind, doc.Problem)
		}
		if rows := doc.Hexdump(4).Rows; len(rows) > 0 {
			t.Errorf("rows %+v", rows)
		}
	}
}

// field does the same as Value, but does not report whether the value is masked.
func (d *Document) field(path string) (string, bool) {
	value, _, ok := d.Value(path)
	return value, ok
}
