package payload

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// secretSchema has a field of each kind that can contain a hidden value. Its messages also contain
// such fields in every possible way, for example in lists, in maps and in an Any.
const secretSchema = `syntax = "proto2";
package acme.secret;
import "google/protobuf/any.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";

message Person {
  optional string name = 1;
  optional string email = 2;
  optional int64 ssn = 3;
  optional bytes token = 4;
  repeated int64 codes = 5;
  repeated sint64 sums = 6 [packed = true];
  map<string, string> labels = 7;
  map<string, Card> by_name = 8;
  optional Card card = 9;
  repeated Card cards = 10;
  optional google.protobuf.Any detail = 11;
  optional Person child = 12;
  repeated google.protobuf.Any details = 13;
  optional google.protobuf.StringValue note = 14;
  optional google.protobuf.Struct extra = 15;
  optional group Inner = 16 {
    optional string pin = 17;
    optional Card held = 18;
  }
  oneof contact {
    string phone = 20;
    Card ticket = 21;
  }
  optional fixed64 account = 22;
  optional google.protobuf.Timestamp born = 23;
  map<int32, Person> friends = 24;
  extensions 100 to 199;
}
message Card {
  optional string number = 1 REDACT;
  optional string holder = 2;
  optional google.protobuf.Any proof = 3;
}
extend Person {
  optional string remark = 100 REDACT;
  optional Card badge = 101;
}
message Other { optional string number = 1; optional string holder = 2; }
`

// secrets returns two registries of secretSchema: one without debug_redact options, and one with
// them.
var secrets = sync.OnceValue(func() (list [2]*descriptor.Registry) {
	for i, option := range []string{"", "[debug_redact = true]"} {
		list[i] = descriptor.NewRegistry()
		files := fstest.MapFS{"secret.proto": {Data: []byte(strings.ReplaceAll(secretSchema, "REDACT", option))}}
		if _, err := list[i].AddSource("secret", files); err != nil {
			panic(err)
		}
	}
	return list
})

// way is the path to a value. It consists of the messages that contain the value, the fields and
// the map keys.
type way []step

type step struct {
	typ  string // type of a message that the path enters
	name string // name of a field
	key  string // key of a map entry
}

func (w way) withStep(s step) way { return append(slices.Clip(w), s) }

// hiddenBy reports whether the rules hide a value. It is deliberately simple, because the tests
// compare the product with it.
func (w way) hiddenBy(rules []deadletter.MaskedField) bool {
	for _, r := range rules {
		for i, s := range w {
			if s.typ == "" || r.Type != "" && !deadletter.Glob(r.Type, s.typ, true) {
				continue
			}
			if followsRule(w[i+1:], r.Path) {
				return true
			}
		}
	}
	return false
}

// followsRule reports whether a rule hides a value, because its path names the value itself or
// another value that contains it. The parameter w is the list of steps that lead to the value. The
// parameter "path" is the path of the rule.
func followsRule(w way, path []string) bool {
	switch {
	case len(path) == 0:
		return true
	case len(w) == 0:
		return false
	case w[0].typ != "":
		return followsRule(w[1:], path)
	case w[0].key != "":
		return w[0].key == path[0] && followsRule(w[1:], path[1:]) || followsRule(w[1:], path)
	}
	return w[0].name == path[0] && followsRule(w[1:], path[1:])
}

// forger writes messages in every form that a decoder accepts, and in some forms that it rejects.
// Each hidden value contains a canary, which is a text that must not be shown anywhere.
type forger struct {
	*rand.Rand
	types    *descriptor.Resolver
	rules    []deadletter.MaskedField
	redacts  bool
	canaries []string // each canary as text, as decimal number, and as bytes on the wire
	left     int
	held     protoreflect.FullName // type of the content of every Any; merged parts must have the same type
}

func (f *forger) oneIn(n int) bool { return f.IntN(n) == 0 }

func (f *forger) text(hidden bool) string {
	if !hidden {
		return strings.Repeat("plain ", f.IntN(3))
	}
	text := "canary" + strconv.Itoa(f.IntN(1<<30)+1<<30)
	f.canaries = append(f.canaries, text)
	return text
}

func (f *forger) number(hidden bool) uint64 {
	if !hidden {
		return f.Uint64N(100)
	}
	x := f.Uint64N(1<<40) + 1<<52
	f.canaries = append(
		f.canaries, strconv.FormatUint(x, 10), strconv.FormatInt(int64(x), 10),
		strconv.FormatInt(protowire.DecodeZigZag(x), 10), string(protowire.AppendVarint(nil, x)),
		string(binary.LittleEndian.AppendUint64(nil, x)),
	)
	return x
}

// message returns random encoded fields for a message of the type md. The parameter w is the path
// that leads to this message.
func (f *forger) message(md protoreflect.MessageDescriptor, w way, hidden bool, depth int) []byte {
	w = w.withStep(step{typ: string(md.FullName())})
	hidden = hidden || w.hiddenBy(f.rules)
	if md.FullName() == "google.protobuf.Any" {
		return f.anyMessage(md, w, hidden, depth)
	}
	var b []byte
	fields := md.Fields()
	for range f.IntN(5) + 1 {
		if f.left--; f.left < 0 {
			break
		}
		fd := fields.Get(f.IntN(fields.Len()))
		if f.oneIn(8) && md.Name() == "Person" {
			fd = f.types.Field(md, protowire.Number(100+f.IntN(2)))
		}
		if f.oneIn(12) { // a field that no type has
			b = protowire.AppendTag(b, 900, protowire.BytesType)
			b = protowire.AppendString(b, f.text(hidden || w.withStep(step{name: "900"}).hiddenBy(f.rules)))
			continue
		}
		b = append(b, f.field(fd, w, hidden, depth)...)
	}
	return b
}

func (f *forger) field(fd protoreflect.FieldDescriptor, w way, hidden bool, depth int) []byte {
	name := fieldName(fd)
	if !isUnwrapped(fd) {
		w = w.withStep(step{name: name})
	}
	hidden = hidden || w.hiddenBy(f.rules) || f.redacts && descriptor.Redacted(fd)
	var b []byte
	num := fd.Number()
	if f.oneIn(6) { // a wire type that differs from the one in the schema
		switch f.IntN(4) {
		case 0:
			return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), f.number(hidden))
		case 1:
			return protowire.AppendFixed64(protowire.AppendTag(b, num, protowire.Fixed64Type), f.number(hidden))
		case 2:
			b = protowire.AppendTag(b, num, protowire.StartGroupType)
			b = protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), f.text(hidden))
			return protowire.AppendTag(b, num, protowire.EndGroupType)
		}
		if descriptor.WireType(fd.Kind()) != protowire.BytesType && !fd.IsList() {
			return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), f.text(hidden))
		}
	}
	switch {
	case fd.IsMap():
		b = protowire.AppendTag(b, num, protowire.BytesType)
		return protowire.AppendBytes(b, f.entry(fd, w, hidden, depth))
	case fd.Kind() == protoreflect.GroupKind:
		b = protowire.AppendTag(b, num, protowire.StartGroupType)
		b = append(b, f.message(fd.Message(), w, hidden, depth+1)...)
		return protowire.AppendTag(b, num, protowire.EndGroupType)
	case fd.Message() != nil:
		if depth > 5 {
			return nil
		}
		b = protowire.AppendTag(b, num, protowire.BytesType)
		return protowire.AppendBytes(b, f.message(fd.Message(), w, hidden, depth+1))
	case fd.IsList() && f.oneIn(2): // packed or not, regardless of the schema
		var list []byte
		for range f.IntN(4) {
			list = protowire.AppendVarint(list, f.number(hidden))
		}
		return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), list)
	case descriptor.WireType(fd.Kind()) == protowire.VarintType:
		return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), f.number(hidden))
	case descriptor.WireType(fd.Kind()) == protowire.Fixed64Type:
		return protowire.AppendFixed64(protowire.AppendTag(b, num, protowire.Fixed64Type), f.number(hidden))
	}
	return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), f.text(hidden))
}

// entry writes a map entry. At random, it writes the key before or after the value.
func (f *forger) entry(fd protoreflect.FieldDescriptor, w way, hidden bool, depth int) []byte {
	key, wire := "", []byte(nil)
	if fd.MapKey().Kind() == protoreflect.StringKind {
		key = []string{"a", "plan", "secret"}[f.IntN(3)]
		if hidden {
			key = f.text(true)
		}
		wire = protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), key)
	} else {
		n := f.number(false)
		key = strconv.FormatUint(n, 10)
		wire = protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), n)
	}
	w = w.withStep(step{key: key})
	hidden = hidden || w.hiddenBy(f.rules)
	val := protowire.AppendTag(nil, 2, protowire.BytesType)
	if md := fd.MapValue().Message(); md != nil {
		val = protowire.AppendBytes(val, f.message(md, w, hidden, depth+1))
	} else {
		val = protowire.AppendString(val, f.text(hidden))
	}
	if f.oneIn(2) {
		return append(val, wire...)
	}
	return append(wire, val...)
}

// anyMessage writes a google.protobuf.Any. At random, it writes the content more than once, leaves
// out the URL, or leaves out the content.
func (f *forger) anyMessage(md protoreflect.MessageDescriptor, w way, hidden bool, depth int) []byte {
	inner := f.types.Message(f.held)
	url := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "x/"+string(inner.FullName()))
	var b []byte
	if !f.oneIn(6) {
		b = append(b, url...)
	}
	for range 1 + f.IntN(5)/4 {
		if depth > 5 || f.oneIn(6) {
			break
		}
		b = protowire.AppendTag(b, 2, protowire.BytesType)
		b = protowire.AppendBytes(b, f.message(inner, w, hidden, depth+1))
	}
	if f.oneIn(10) {
		b = append(b, url...)
	}
	return b
}

// everyText returns every text of a document that anybody can see, also through search and rules.
func everyText(d *Document) string {
	var list []string
	list = append(list, shownTexts(d), Words(d), d.Ranking.Why, d.Type)
	for _, m := range d.Ranking.Matches {
		list = append(list, append(m.Why, m.Type)...)
	}
	return strings.Join(list, "\n")
}

// leakedCanary returns the first canary that a text contains in any of its forms.
func leakedCanary(text string, canaries []string) string {
	for _, c := range canaries {
		plain := hex.EncodeToString([]byte(c))
		for _, form := range []string{c, plain, hexGroups([]byte(c)), string(encodeStd([]byte(c)))[:8]} {
			if strings.Contains(text, form) {
				return c
			}
		}
	}
	return ""
}

// TestCanariesOfFields covers values that a rule or debug_redact hides. They must not be shown
// anywhere, whatever their form on the wire is.
func TestCanariesOfFields(t *testing.T) {
	payloadtest.Unraced(t)
	t.Parallel()
	rules := [][]deadletter.MaskedField{
		nil, // debug_redact
		{
			{Path: deadletter.FieldPath{"email"}},
			{Path: deadletter.FieldPath{"ssn"}},
			{Path: deadletter.FieldPath{"codes"}},
			{Path: deadletter.FieldPath{"account"}},
			{Path: deadletter.FieldPath{"token"}},
		},
		{{Type: "acme.secret.Card"}},
		{
			{Type: "acme.*", Path: deadletter.FieldPath{"card", "number"}},
			{Type: "*.Person", Path: deadletter.FieldPath{"by_name", "holder"}},
			{Type: "*.Person", Path: deadletter.FieldPath{"labels", "secret"}},
		},
		{
			{Type: "acme.secret.Person", Path: deadletter.FieldPath{"child", "cards"}},
			{Path: deadletter.FieldPath{"labels"}},
			{Path: deadletter.FieldPath{"sums"}},
			{Path: deadletter.FieldPath{"inner"}},
		},
		{
			{Type: "google.protobuf.Any"},
			{Type: "google.protobuf.StringValue"},
			{Type: "google.protobuf.Struct"},
			{Type: "google.protobuf.Timestamp"},
		},
		{
			{Type: "acme.secret.Person", Path: deadletter.FieldPath{"900"}},
			{Path: deadletter.FieldPath{"[acme.secret.badge]", "holder"}},
			{Path: deadletter.FieldPath{"[acme.secret.remark]"}},
			{Path: deadletter.FieldPath{"contact"}},
			{Path: deadletter.FieldPath{"ticket"}},
		},
		{
			{Path: deadletter.FieldPath{"detail", "number"}},
			{Path: deadletter.FieldPath{"details", "email"}},
			{Path: deadletter.FieldPath{"extra"}},
			{Path: deadletter.FieldPath{"note"}},
			{Path: deadletter.FieldPath{"friends", "child"}},
			{Path: deadletter.FieldPath{"born"}},
		},
		{{Type: "*", Path: deadletter.FieldPath{"value"}}, {Path: deadletter.FieldPath{"proof"}}},
		{{}},
	}
	runs := 3000
	if testing.Short() {
		runs = 600
	}
	for seed := range runs {
		f := &forger{
			Rand: rand.New(rand.NewPCG(uint64(seed), 7)), rules: rules[seed%len(rules)], left: 40,
			held: []protoreflect.FullName{"acme.secret.Card", "acme.secret.Person"}[seed/10%2],
		}
		f.redacts = f.rules == nil
		registry := secrets()[map[bool]int{true: 1}[f.redacts]]
		defs, _ := registry.Lookup("acme.secret.Person")
		f.types = defs[0].Types
		body := f.message(defs[0].Desc, nil, false, 0)
		if f.oneIn(3) { // in two parts, which the decoder merges
			body = append(body, f.message(defs[0].Desc, nil, false, 0)...)
		}
		mask := Masks{Fields: f.rules}.Body()
		named := Hints{Type: "acme.secret.Person"}
		letters := []struct {
			name string
			body []byte
			h    Hints
		}{
			{"named", body, named},
			{"named, in base64", encodeStd(body), named},
			{
				"in a CloudEvent",
				cloudEvent(
					"application/protobuf; messageType=acme.secret.Person",
					`"data_base64": "`+string(encodeStd(body))+`"`,
				),
				Hints{ContentType: ce},
			},
			{"unnamed", body, Hints{ContentType: "application/protobuf"}},
			{"named, and cut", body[:len(body)-f.IntN(min(len(body), 9))], named},
			{"named as what it is not", body, Hints{Type: "acme.secret.Gone"}},
		}
		for _, l := range letters {
			if f.redacts && l.name == "named as what it is not" {
				continue // nothing shows that the type of the body has hidden fields
			}
			doc := (&Decoder{Types: registry, Mask: mask}).Decode(l.body, l.h, nil)
			if l.name == "unnamed" && (f.redacts && doc.Type == "" ||
				doc.Type != "" && doc.Type != "acme.secret.Person") {
				continue // another type
			}
			if c := leakedCanary(everyText(doc), f.canaries); c != "" {
				t.Fatalf("seed %d, %s: %q is shown in\n%s\nbody %x", seed, l.name, c, everyText(doc), body)
			}
			for _, again := range []*Document{
				(&Decoder{Types: registry, Mask: mask}).Decode(l.body, l.h, &budget.Budget{
					Bytes: 64, Fields: 8, Depth: 3, Memory: 1 << 12,
				}),
				(&Decoder{Types: registry, Mask: mask}).Bytes(l.body, l.h, "gone"),
			} {
				if c := leakedCanary(everyText(again), f.canaries); c != "" && (!f.redacts || l.h.Type != "") {
					t.Fatalf("seed %d, %s, not decoded: %q is shown", seed, l.name, c)
				}
			}
			if doc.JSON != "" && !json.Valid([]byte(doc.JSON)) {
				t.Fatalf("seed %d, %s: JSON %s", seed, l.name, doc.JSON)
			}
			if l.name == "named" && doc.Type != "" && len(f.canaries) > 0 && !doc.Masked {
				t.Fatalf("seed %d: nothing is masked", seed)
			}
			if plain := (&Decoder{Types: registry, Mask: mask}).Revealed().Decode(l.body, l.h, nil); plain.Masked ||
				strings.Contains(shownTexts(plain), Masked) {
				t.Fatalf("seed %d, %s: masked for who may see all", seed, l.name)
			}
		}
	}
}

// TestCanariesOfJSON checks that the rule for a JSON path hides the same values in the tree, the
// JSON, the hex view and the search, inside and outside an envelope.
func TestCanariesOfJSON(t *testing.T) {
	t.Parallel()
	const card = "canary4111"
	mask := Masks{
		JSON: []deadletter.FieldPath{
			{"card", "number"},
			{"secret"},
			{"message", "pin"},
			{"data", "cvc"},
			{"account_no"},
			{"holderName"},
		},
	}.Body()
	inner := func(s string) string { return strings.ReplaceAll(s, "X", card) }
	for _, tt := range []struct {
		name string
		body []byte
		h    Hints
	}{
		{"value", []byte(inner(`{"card":{"number":"X","name":"n"}}`)), Hints{}},
		{"both names of a field", []byte(inner(`{"accountNo":"X","account_no":"X"}`)), Hints{}},
		{"the name of a field in its schema", []byte(inner(`{"holder_name":"X"}`)), Hints{}},
		{"in lists", []byte(inner(`[{"card":[{"number":["X",{"a":"X"}]}]}]`)), Hints{}},
		{"twice", []byte(inner(`{"card":{"number":"X"},"card":{"number":"X"}}`)), Hints{}},
		{"names below", []byte(inner(`{"secret":{"X":{"X":1}}}`)), Hints{}},
		{"escaped name", []byte(inner(`{"\u0073ecret":"X"}`)), Hints{}},
		{"with a byte order mark", []byte("\xef\xbb\xbf" + inner(`{"secret":"X"}`)), Hints{}},
		{"deep", []byte(inner(strings.Repeat(`[`, 100) + `{"secret":"X"}` + strings.Repeat(`]`, 100))), Hints{}},
		{"damaged", []byte(inner(`{"card":{"number":"X"`)), Hints{}},
		{"damaged, and no UTF-8", []byte(inner(`{"card":{"number":"X` + "\xff")), Hints{}},
		{"UTF-16", []byte("\xff\xfe{\x00" + inner(`"secret":"X"}`)), Hints{}},
		{"several", []byte(inner(`{"secret":"X"}{"secret":"X"}`)), Hints{}},
		{"data of a CloudEvent", cloudEvent("", inner(`"data": {"secret": "X"}`)), Hints{ContentType: ce}},
		{"data by its path in the CloudEvent", cloudEvent("", inner(`"data": {"cvc": "X"}`)), Hints{ContentType: ce}},
		{
			"beside the data of a CloudEvent",
			cloudEvent("", inner(`"data": {"a": 1}, "secret": "X"`)),
			Hints{ContentType: ce},
		},
		{
			"data_base64 of JSON",
			cloudEvent("", `"data_base64": "`+string(encodeStd([]byte(inner(`{"secret":"X"}`))))+`"`),
			Hints{ContentType: ce},
		},
		{
			"MassTransit",
			[]byte(inner(`{"messageType":["urn:message:A:B"],"message":{"pin":"X"}}`)),
			Hints{ContentType: mt},
		},
		{"EasyNetQ", easyNetQOf(inner(`{"card":{"number":"X"}}`), "application/json", ""), Hints{Type: easyNetQType}},
		{"gzip", payloadtest.Gzipped(t, []byte(inner(`{"secret":"X"}`))), Hints{}},
		{"named as a type that it is JSON of", []byte(inner(`{"secret":"X","id":"1"}`)), Hints{Type: "acme.odd.Order"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			doc := (&Decoder{Types: schemas(), Mask: mask}).Decode(tt.body, tt.h, nil)
			if c := leakedCanary(everyText(doc), []string{card}); c != "" || !doc.Masked {
				t.Errorf("masked %v, %s", doc.Masked, everyText(doc))
			}
			if plain := (&Decoder{Types: schemas()}).Decode(tt.body, tt.h, nil); plain.Masked {
				t.Error("masked without a mask")
			}
		})
	}
	if doc := (&Decoder{Mask: mask}).Decode([]byte(`{"a":{"secret":1,"number":2}}`), Hints{}, nil); doc.Masked {
		t.Errorf("a path counts from the outermost value: %s", doc.JSON)
	}
}

// TestCanariesInTheJSONOfMessages covers a letter that names a message type and whose body is JSON.
// The same values must be hidden as in a message of that type.
func TestCanariesInTheJSONOfMessages(t *testing.T) {
	t.Parallel()
	const card = "canary4111"
	for i, mask := range []*Mask{
		Masks{
			Fields: []deadletter.MaskedField{
				{Type: "*.Card", Path: deadletter.FieldPath{"number"}},
				{Path: deadletter.FieldPath{"[acme.secret.remark]"}},
			},
		}.Body(),
		nil,
	} {
		for _, body := range []string{
			`{"card":{"number":"X"}}`, `{"cards":[{"number":"X"}]}`, `{"byName":{"k":{"number":"X"}}}`,
			`{"by_name":{"k":{"number":"X"}}}`, `{"[acme.secret.remark]":"X"}`,
			`{"detail":{"@type":"x/acme.secret.Card","number":"X"}}`,
			`{"detail":{"number":"X","@type":"x/acme.secret.Card"}}`,
			`{"child":{"friends":{"1":{"ticket":{"number":"X"}}}}}`,
			`{"detail":{"@type":"x/acme.secret.Person","details":[{"@type":"x/acme.secret.Card","number":"X"}]}}`,
		} {
			doc := (&Decoder{Types: secrets()[1], Mask: mask}).Decode(
				[]byte(strings.ReplaceAll(body, "X", card)), Hints{Type: "acme.secret.Person"}, nil,
			)
			if c := leakedCanary(everyText(doc), []string{card}); c != "" || !doc.Masked || doc.Kind != JSON {
				t.Errorf("mask %d: %s, masked %v:\n%s", i, doc.Kind, doc.Masked, everyText(doc))
			}
		}
	}
}

func TestMasksOfQueries(t *testing.T) {
	t.Parallel()
	m := Masks{
		Fields: []deadletter.MaskedField{
			{Type: "acme.*", Path: deadletter.FieldPath{"customer", "email"}},
			{Type: "acme.Card"},
			{Path: deadletter.FieldPath{"home_address"}},
		},
		JSON: []deadletter.FieldPath{{"card", "number"}, {"holderName"}}, Patterns: []*regexp.Regexp{digits16},
	}
	for path, want := range map[string]bool{
		"customer.email": true, "order.customer.email": true, "customer.email.domain": true, "customer.[0].email": true,
		"card.number": true, "card.[3].number": true,
		"home_address": true, "homeAddress": true, "to.homeAddress.street": true, "holderName": true,
		"holder_name": true, "holdername": false, "homeaddress": false,
		"customer": false, "email": false, "customer.name": false, "x.card.number": false, "": false,
	} {
		if m.Field(path) != want {
			t.Errorf("%q: %v", path, !want)
		}
	}
	names := fmt.Sprint(m.Names())
	for _, change := range []Masks{
		{},
		{Fields: m.Fields},
		{Fields: m.Fields, JSON: m.JSON},
		{Fields: m.Fields[:2], JSON: m.JSON, Patterns: m.Patterns},
	} {
		if fmt.Sprint(change.Names()) == names {
			t.Errorf("%+v has the same names", change)
		}
	}
}
