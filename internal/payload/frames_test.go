package payload

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"
)

// registry returns a registry with one set for each pair of a name and a .proto file.
func registry(t testing.TB, pairs ...string) *descriptor.Registry {
	t.Helper()
	r := descriptor.NewRegistry()
	for i := 0; i < len(pairs); i += 2 {
		file := fstest.MapFS{"a.proto": payloadtest.File(pairs[i+1])}
		if _, err := r.AddSource(pairs[i], file); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

const parcels = `syntax = "proto3"; package shop.v1;
message ParcelSent { string parcel_id = 1; string receiver = 2; int64 grams = 3; repeated Stop stops = 4; string note = 5; }
message Stop { string depot = 1; int32 hours = 2; }
message Pair { string a = 1; string b = 2; }
message OtherPair { string c = 1; string d = 2; }`

const parcelType = "shop.v1.ParcelSent"

// parcel returns a ParcelSent of 75 bytes if its note has 19.
func parcel(note string) []byte {
	stop := func(depot string, hours uint64) []byte {
		in := append(protowire.AppendTag(nil, 1, protowire.BytesType), protowire.AppendString(nil, depot)...)
		in = protowire.AppendVarint(protowire.AppendTag(in, 2, protowire.VarintType), hours)
		return append(protowire.AppendTag(nil, 4, protowire.BytesType), protowire.AppendBytes(nil, in)...)
	}
	b := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "parcel-31")
	b = protowire.AppendString(protowire.AppendTag(b, 2, protowire.BytesType), "someone in the north")
	b = protowire.AppendVarint(protowire.AppendTag(b, 3, protowire.VarintType), 125_300)
	b = append(append(b, stop("dep-1", 2)...), stop("dep-2", 30)...)
	return protowire.AppendString(protowire.AppendTag(b, 5, protowire.BytesType), note)
}

func pair(a, b string) []byte {
	p := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), a)
	return protowire.AppendString(protowire.AppendTag(p, 2, protowire.BytesType), b)
}

func grpc(b []byte) []byte { return grpcFlag(0, b) }

func grpcFlag(flag byte, b []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flag}, uint32(len(b))), b...)
}

func delimited(b []byte) []byte { return protowire.AppendBytes(nil, b) }

// section returns a section of AMQP 1.0 around encoded values.
func section(kind byte, values ...[]byte) []byte {
	return wire(append([][]byte{{0, 0x53, kind}}, values...)...)
}

// short and long return a value of AMQP 1.0 with its length in one byte, or in four.
func short(code byte, b []byte) []byte { return append([]byte{code, byte(len(b))}, b...) }

func long(code byte, b []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{code}, uint32(len(b))), b...)
}

// list returns a list of AMQP 1.0 with its length and count in one byte, or in four.
func list(elements ...[]byte) []byte {
	return short(0xc0, append([]byte{byte(len(elements))}, wire(elements...)...))
}

func longList(elements ...[]byte) []byte {
	return long(0xd0, append(binary.BigEndian.AppendUint32(nil, uint32(len(elements))), wire(elements...)...))
}

// TestFrames reads bodies in frames and edits them. No letter has a content type. The new body must
// be the new content in the same frames with new lengths.
func TestFrames(t *testing.T) {
	t.Parallel()
	amqp := Hints{Type: "amqp-1.0"}
	message := func(note string) []byte { return parcel(note) }
	json := func(note string) []byte { return []byte("{\n  \"note\": \"" + note + "\"\n}") }
	plain := func(note string) []byte { return []byte("a note: " + note) }
	index := func(place ...byte) func([]byte) []byte {
		return func(b []byte) []byte { return confluent(42, place, b) }
	}
	value := func(sized func(byte, []byte) []byte, code byte) func([]byte) []byte {
		return func(b []byte) []byte { return section(0x77, sized(code, b)) }
	}
	gzipped := func(b []byte) []byte { return payloadtest.Gzipped(t, b) }
	for name, c := range map[string]struct {
		h       Hints
		content func(note string) []byte
		frame   func([]byte) []byte
		grown   func([]byte) []byte // the frame after the content has more than 255 bytes; nil = the same
		layers  string
	}{
		"Confluent, first message":    {Hints{}, message, index(0), nil, "Confluent"},
		"Confluent, two indexes":      {Hints{}, message, index(4, 2, 0), nil, "Confluent"},
		"Confluent, written out":      {Hints{}, message, index(2, 0), nil, "Confluent"},
		"gRPC":                        {Hints{}, message, grpc, nil, "gRPC"},
		"gRPC around JSON":            {Hints{}, json, grpc, nil, "gRPC"},
		"delimited":                   {Hints{}, message, delimited, nil, "length-delimited"},
		"AMQP, string":                {amqp, json, value(short, 0xa1), value(long, 0xb1), "AMQP 1.0"},
		"AMQP, long string":           {amqp, json, value(long, 0xb1), nil, "AMQP 1.0"},
		"AMQP, text":                  {amqp, plain, value(short, 0xa1), value(long, 0xb1), "AMQP 1.0"},
		"AMQP, binary":                {amqp, message, value(short, 0xa0), value(long, 0xb0), "AMQP 1.0"},
		"AMQP, long binary":           {amqp, message, value(long, 0xb0), nil, "AMQP 1.0"},
		"AMQP, nothing says it":       {Hints{}, message, value(short, 0xa0), value(long, 0xb0), "AMQP 1.0"},
		"AMQP, JSON, nothing says it": {Hints{}, json, value(short, 0xa1), value(long, 0xb1), "AMQP 1.0"},
		"AMQP, data": {
			amqp, message, func(b []byte) []byte { return section(0x75, short(0xa0, b)) },
			func(b []byte) []byte { return section(0x75, long(0xb0, b)) }, "AMQP 1.0",
		},
		"AMQP, sequence": {
			amqp, message, func(b []byte) []byte { return section(0x76, list(short(0xa0, b))) },
			func(b []byte) []byte { return section(0x76, longList(long(0xb0, b))) }, "AMQP 1.0",
		},
		"AMQP, long sequence": {
			amqp, json, func(b []byte) []byte { return section(0x76, longList(short(0xa1, b))) },
			func(b []byte) []byte { return section(0x76, longList(long(0xb1, b))) }, "AMQP 1.0",
		},
		"gRPC in AMQP": {
			amqp, message, func(b []byte) []byte { return section(0x77, short(0xa0, grpc(b))) },
			func(b []byte) []byte { return section(0x77, long(0xb0, grpc(b))) }, "AMQP 1.0 > gRPC",
		},
		"delimited in gRPC in gzip": {
			Hints{},
			message, func(b []byte) []byte { return gzipped(grpc(delimited(b))) }, nil,
			"gzip > gRPC > length-delimited",
		},
		"gzip in gRPC in base64": {
			Hints{},
			json, func(b []byte) []byte { return encodeStd(grpcFlag(1, gzipped(b))) }, nil,
			"base64 > gRPC > gzip",
		},
		"gzip in gRPC":        {Hints{}, message, func(b []byte) []byte { return grpc(gzipped(b)) }, nil, "gRPC > gzip"},
		"gRPC in base64":      {Hints{}, message, func(b []byte) []byte { return encodeStd(grpc(b)) }, nil, "base64 > gRPC"},
		"delimited in base64": {Hints{}, message, func(b []byte) []byte { return encodeStd(delimited(b)) }, nil, "base64 > length-delimited"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &Decoder{Types: registry(t, "shop", parcels)}
			const was = "left at the gateway"
			body := c.frame(c.content(was))
			doc := d.Decode(body, c.h, nil)
			if got := layerNames(doc); got != c.layers || !bytes.Equal(doc.Body, c.content(was)) {
				t.Fatalf("layers %q, steps\n%s", got, stepsText(doc))
			}
			if doc.Problem != "" {
				t.Errorf("problem: %s", doc.Problem)
			}
			for _, now := range []string{"", "x", "left at the gateway and seen there", strings.Repeat("long ", 60)} {
				want := c.frame(c.content(now))
				if len(c.content(now)) > 255 && c.grown != nil {
					want = c.grown(c.content(now))
				}
				if doc.Type != "" && now == "" {
					continue // proto3 leaves out an empty text
				}
				e := change(t, d, body, c.h, was, now)
				if again := d.Decode(e.Body, c.h, nil); layerNames(again) != c.layers || !bytes.Equal(again.Body, c.content(now)) {
					t.Fatalf("%q: layers %q, body %x", now, layerNames(again), again.Body)
				}
				if !strings.Contains(name, "gzip") && !bytes.Equal(e.Body, want) {
					t.Errorf("%q:\n got %x\nwant %x", now, e.Body, want)
				}
			}
		})
	}
}

func layerNames(d *Document) string {
	var names []string
	for _, l := range d.Layers {
		names = append(names, l.Name)
	}
	return strings.Join(names, " > ")
}

// TestWhatIsNoFrame reads bodies that only look like frames. Nothing may be removed.
func TestWhatIsNoFrame(t *testing.T) {
	t.Parallel()
	d := &Decoder{Types: registry(t, "shop", parcels)}
	message := parcel("left at the gateway")
	text := strings.Repeat("the same text ", 5)
	tagged := pair("shop", strings.Repeat("n", 38))
	for name, body := range map[string][]byte{
		"text after its length":              append([]byte{byte(len(text))}, text...),
		"text with tags after its length":    append([]byte{byte(len(tagged))}, tagged...),
		"gRPC, one byte too many":            append(grpc(message), 0),
		"gRPC, one byte missing":             grpc(message)[:len(message)+4],
		"gRPC, several types fit":            grpc(pair("first text", "second text")),
		"gRPC, compressed, and is not":       grpcFlag(1, message),
		"gRPC around noise":                  grpc([]byte("\x07\xff\xfe\x80noise\x00\x01\x02\x03")),
		"Confluent, several types fit":       confluent(42, []byte{0}, pair("first text", "second text")),
		"Confluent around noise":             confluent(42, []byte{0}, []byte("\x07\xff\xfe\x80noise\x00\x01\x02\x03")),
		"delimited, one byte too many":       append(delimited(message), 0),
		"delimited, long form of the length": append([]byte{byte(len(message)) | 0x80, 0}, message...),
		"two delimited messages":             append(delimited(message), delimited(message)...),
		"AMQP, one byte too many":            append(section(0x77, short(0xa0, message)), 0),
		"AMQP, a number, nothing says it":    section(0x77, []byte{0x53, 7}),
		"SockJS, 97 bytes":                   []byte(`a["` + strings.Repeat("x", 93) + `"]`),
		"socket.io, 50 bytes":                []byte(`2["event",{"n":` + strings.Repeat("1", 34) + `}]`),
		"a message whose first tag is its length": wire(
			protowire.AppendTag(nil, 1, protowire.BytesType), protowire.AppendString(nil, "parcel-3"),
		),
	} {
		if doc := d.Decode(body, Hints{}, nil); len(doc.Layers) > 0 {
			t.Errorf("%s: layers %s\n%s", name, layerNames(doc), stepsText(doc))
		}
	}
}

// TestAQueueDecides reads frames around a message that several registered types fit. The type that
// the queue had before, or a binding, decides.
func TestAQueueDecides(t *testing.T) {
	t.Parallel()
	bound := &Decoder{
		Types: registry(t, "shop", parcels), Bindings: []deadletter.Binding{{Queue: "pairs", Type: "shop.v1.Pair"}},
	}
	for name, h := range map[string]Hints{
		"binding": {Queue: "pairs"}, "before": {Prior: map[string]float64{"shop.v1.Pair": 1}, Only: "shop.v1.Pair"},
		"this letter": {Was: "shop.v1.Pair", Prior: map[string]float64{"shop.v1.Pair": 1}},
	} {
		for _, frame := range []func([]byte) []byte{
			grpc, delimited, func(b []byte) []byte { return confluent(42, []byte{0}, b) },
		} {
			body := frame(pair("a text of the first", strings.Repeat("and a long one ", 10)))
			if doc := bound.Decode(body, h, nil); doc.Type != "shop.v1.Pair" || len(doc.Layers) != 1 {
				t.Errorf("%s: %q in %q\n%s", name, doc.Type, layerNames(doc), stepsText(doc))
			}
		}
	}
}

// TestAStringStaysUTF8 edits a message in a string of AMQP 1.0, which must be UTF-8. An edit that
// would break this is refused.
func TestAStringStaysUTF8(t *testing.T) {
	t.Parallel()
	d := &Decoder{Types: registry(t, "shop", parcels), Bindings: []deadletter.Binding{{Queue: "pairs", Type: "shop.v1.Pair"}}}
	h := Hints{Type: "amqp-1.0", Queue: "pairs"}
	body := section(0x77, short(0xa1, pair("a1", "short")))
	if e := change(t, d, body, h, "short", "longer"); !bytes.Equal(e.Body, section(0x77, short(0xa1, pair("a1", "longer")))) {
		t.Errorf("got %x", e.Body)
	}
	text := strings.Replace(editText(t, d, body, h), "short", strings.Repeat("long ", 40), 1)
	if _, err := d.Edit(body, h, text, nil); err == nil || !strings.Contains(err.Error(), "must be UTF-8") {
		t.Errorf("got %v", err)
	}
}

// TestSectionsThatAreNotEdited reads AMQP 1.0 bodies that hold no single text or binary. They stay
// as they are, with a note, and an edit is refused.
func TestSectionsThatAreNotEdited(t *testing.T) {
	t.Parallel()
	str := func(s string) []byte { return short(0xa1, []byte(s)) }
	for want, body := range map[string][]byte{
		"map":             section(0x77, short(0xc1, wire([]byte{4}, str("id"), []byte{0x54, 7}, str("on"), []byte{0x41}))),
		"list":            section(0x77, list(str("a"), []byte{0x40}, []byte{0x45}, []byte{0x80, 0, 0, 0, 0, 0, 0, 1, 0})),
		"single value":    section(0x77, []byte{0x71, 0xff, 0xff, 0xff, 0xfe}),
		"described value": section(0x77, []byte{0}, short(0xa3, []byte("acme:id")), []byte{0x54, 7}),
		"symbol":          section(0x77, short(0xa3, []byte("s"))),
		"array":           section(0x77, short(0xe0, []byte{2, 0x50, 1, 2})),
		"binary":          wire(section(0x75, short(0xa0, []byte("one "))), section(0x75, short(0xa0, []byte("two")))),
	} {
		h := Hints{Type: "amqp-1.0"}
		doc := decode(body, h)
		if doc.Kind != Binary || len(doc.Layers) > 0 || !strings.Contains(strings.Join(doc.Notes, ""), "begins with a "+want+".") {
			t.Errorf("%s: %s in %q, %q\n%s", want, doc.Kind, layerNames(doc), doc.Notes, stepsText(doc))
		}
		if _, err := editor().Editable(body, h, nil); err == nil {
			t.Errorf("%s can be edited", want)
		}
	}
}

// TestMasksInFrames masks what is in frames. A body whose type is not certain must stay hidden if
// one of the types that fit it hides anything.
func TestMasksInFrames(t *testing.T) {
	t.Parallel()
	const cards = `syntax = "proto2"; package pay;
message Card { optional string name = 1; optional string number = 2 [debug_redact = true]; }
message Seat { optional string row = 1; optional string seat = 2; }`
	card := []byte("4111111111111111")
	for _, values := range [][]byte{
		section(0x76, list(short(0xa1, []byte("a text")), short(0xa0, card))),
		section(0x77, []byte{0}, short(0xa3, card), short(0xa1, []byte("ok"))),
		wire(section(0x75, short(0xa0, card[:8])), section(0x75, short(0xa0, card[8:]))),
	} {
		for _, mask := range []*Mask{
			nil, patternMask().Mask,
			{JSON: []deadletter.FieldPath{{"x"}}},
			{Fields: []deadletter.MaskedField{{Path: deadletter.FieldPath{"x"}}}},
		} {
			doc := (&Decoder{Types: registry(t, "pay", cards), Mask: mask}).Decode(values, Hints{Type: "amqp-1.0"}, nil)
			if !doc.Masked || doc.Kind != Binary || strings.Contains(shownTexts(doc)+Words(doc), "11111111") {
				t.Errorf("the bytes of %x may be shown with %+v", values, mask)
			}
		}
	}
	d := &Decoder{Types: registry(t, "pay", cards)}
	const secret = "4111 1111 1111 1111"
	for name, body := range map[string][]byte{
		"gRPC": grpc(pair("a name", secret)), "Confluent": confluent(42, []byte{0}, pair("a name", secret)),
		"delimited": delimited(pair("a name", secret)), "AMQP": section(0x77, short(0xa0, pair("a name", secret))),
		"base64": encodeStd(grpc(pair("a name", secret))),
	} {
		for _, h := range []Hints{{}, {Type: "pay.Card"}, {Type: "amqp-1.0"}, {ContentType: "application/protobuf"}} {
			doc := d.Decode(body, h, nil)
			shown := fmt.Sprint(doc.Fields, doc.JSON, doc.Text, doc.Steps, Words(doc), Summary(doc, ""))
			if strings.Contains(shown, "4111") || strings.Contains(shown, base64.StdEncoding.EncodeToString(body)) ||
				!doc.Masked {
				t.Errorf("%s %v: %v %s\n%s", name, h, doc.Masked, shown, stepsText(doc))
			}
		}
	}
}
