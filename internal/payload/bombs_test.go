package payload

import (
	"bytes"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"github.com/deadletteroffice/dlo/internal/payload/payloadtest"

	"github.com/klauspost/compress/zstd"
)

func TestBombs(t *testing.T) {
	payloadtest.Unraced(t)
	const size = 16_000_000
	anyOf := func(content []byte) []byte {
		return payloadtest.LengthPrefixed(
			14,
			append(
				payloadtest.LengthPrefixed(1, []byte("t/acme.notify.v1.Kinds")),
				payloadtest.LengthPrefixed(2, content)...,
			),
		)
	}
	children := bytes.Repeat([]byte{0xba, 0x01, 0x00}, size/3)
	half := bytes.Repeat([]byte{0xba, 0x01, 0x00}, 20_000)
	wrap := func(b []byte, n int) []byte {
		for range n {
			b = anyOf(b)
		}
		return b
	}
	structs := func(depth int) []byte { // Value{struct_value: Struct{fields: {"": Value ...}}}
		b := []byte{0x20, 0x01}
		for range depth {
			b = payloadtest.LengthPrefixed(
				5, payloadtest.LengthPrefixed(1, append([]byte{0x0a, 0x00}, payloadtest.LengthPrefixed(2, b)...)),
			)
		}
		return payloadtest.LengthPrefixed(25, b)
	}
	tests := []struct {
		name     string
		body     []byte
		typ      string
		tooLarge string // part of the reason; "" = the body is not too large, and only the limits count
		problem  string
	}{
		{"16 MB of empty sub-messages", children, "Kinds", "more than 1,000,000 fields", ""},
		{
			"16 MB of 12 00, known as strings", bytes.Repeat([]byte{0x12, 0x00}, size/2), "acme.notify.v1.EmailAddress",
			"more than 1,000,000 fields", "",
		},
		{
			"empty sub-messages just below the fields", bytes.Repeat([]byte{0xba, 0x01, 0x00}, 900_000), "Kinds",
			"it would take more than 64 MiB of memory", "",
		},
		{
			"16 MB of packed varints", payloadtest.LengthPrefixed(9, bytes.Repeat([]byte{1}, size)), "Kinds",
			"more than 1,000,000 fields", "",
		},
		{
			"packed enums", payloadtest.LengthPrefixed(24, bytes.Repeat([]byte{1}, 900_000)), "Kinds",
			"it would take more than 64 MiB of memory", "",
		},
		{"unpacked numbers", bytes.Repeat([]byte{0x48, 1}, size/2), "Kinds", "more than 1,000,000 fields", ""},
		{
			"unknown fields behind a known one",
			append([]byte{0x18, 1}, bytes.Repeat([]byte{0xa0, 0x06, 0x01}, size/3)...), "Kinds",
			"more than 1,000,000 fields", "",
		},
		{"map entries", bytes.Repeat([]byte{0x9a, 0x01, 0x00}, size/3), "Kinds", "more than 1,000,000 fields", ""},
		{
			"map entries of messages", bytes.Repeat([]byte{0x9a, 0x01, 0x02, 0x12, 0x00}, 100_000), "Kinds",
			"it would take more than 64 MiB of memory", "",
		},
		{
			"depth 10,000", payloadtest.Nested([]byte{0x18, 1}, 0xa2, 10_000), "Kinds",
			"messages nested deeper than 100 levels", "",
		},
		{
			"depth 10,000 of groups that nobody knows",
			append(bytes.Repeat([]byte{0xa3, 0x06}, 10_000), bytes.Repeat([]byte{0xa4, 0x06}, 10_000)...), "Kinds", "",
			"none of which it knows",
		},
		{"depth 12,000 of groups", bytes.Repeat([]byte{0xa3, 0x06}, 12_000), "Kinds", "", "could not decode as"},
		{"8 M groups that begin", bytes.Repeat([]byte{0xa3, 0x06}, size/2), "Kinds", "", "could not decode as"},
		{"Any in Any in Any", wrap([]byte{0x18, 1}, 200), "Kinds", "messages nested deeper than 100 levels", ""},
		{"empty sub-messages in Any in Any", wrap(half, 3), "Kinds", "it would take more than 64 MiB of memory", ""},
		{"Struct in Struct", structs(60), "Kinds", "messages nested deeper than 100 levels", ""},
		{"length lies", []byte{0x52, 0xff, 0xff, 0xff, 0xff, 0x07, 'x'}, "Kinds", "", ": truncated at byte 1"},
		{
			"length of 2^63",
			[]byte{0x52, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 'x'},
			"Kinds",
			"",
			"could not decode as",
		},
		{
			"varint of 11 bytes", append([]byte{0x18}, bytes.Repeat([]byte{0xff}, 11)...), "Kinds", "",
			": it breaks the wire format at byte 1",
		},
		{
			"1 M varints of 10 bytes",
			bytes.Repeat(append([]byte{0x18}, append(bytes.Repeat([]byte{0xff}, 9), 1)...), 1_400_000), "Kinds",
			"more than 1,000,000 fields", "",
		},
		{"field number 0", []byte{0x00, 0x00}, "Kinds", "", "could not decode as"},
		{"wire type 7", []byte{0x0f}, "Kinds", "", "could not decode as"},
		{
			"packed varints that break off", payloadtest.LengthPrefixed(9, []byte{1, 2, 0x80}), "Kinds", "",
			"could not decode as",
		},
		{"one string of 15 MB", payloadtest.LengthPrefixed(10, bytes.Repeat([]byte{'x'}, 15_000_000)), "Kinds", "", ""},
		{
			"one string of 15 MB of control characters",
			payloadtest.LengthPrefixed(10, bytes.Repeat([]byte{1}, 15_000_000)), "Kinds", "", "",
		},
		{
			"one unknown field of 15 MB",
			append([]byte{0x18, 1}, payloadtest.LengthPrefixed(100, bytes.Repeat([]byte{'x'}, 15_000_000))...), "Kinds",
			"", "",
		},
		{
			"15 MB in unknown fields of 1 kB",
			append(
				[]byte{0x18, 1},
				bytes.Repeat(payloadtest.LengthPrefixed(100, bytes.Repeat([]byte{'x'}, 1_000)), 15_000)...,
			),
			"Kinds", "it would take more than 64 MiB of memory", "",
		},
		{"JSON 10,000 deep", []byte(strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999)), "", "", ""},
		{
			"much JSON 5,000 deep",
			[]byte("[" + strings.Repeat(strings.Repeat(`{"k":`, 5_000)+"1"+strings.Repeat("}", 5_000)+",", 400) + "1]"),
			"", "", "",
		},
		{"16 MB of JSON brackets", bytes.Repeat([]byte{'['}, size), "", "", ""},
		{"16 MB of JSON elements", []byte("[" + strings.Repeat("1,", size/2-2) + "1]"), "", "", ""},
		{"16 MB of base64 letters", bytes.Repeat([]byte{'A'}, size), "Kinds", "", ""},
		{"too long", make([]byte, 16<<20+1), "Kinds", "the body has 16 MiB, above 16 MiB", ""},
	}
	for _, tt := range tests {
		decodeBomb(
			t, tt.name, tt.body, Hints{Type: tt.typ}, tt.tooLarge, func(t *testing.T, doc *Document, masked bool) {
				if tt.tooLarge == "" && doc.TooLarge && !masked {
					t.Errorf("too large: %q", doc.Problem)
				}
				if !strings.Contains(doc.Problem, tt.problem) {
					t.Errorf("problem %q", doc.Problem)
				}
				if len(doc.Hexdump(4096).Rows) == 0 && !doc.Masked || Summary(doc, "") == "" {
					t.Error("nothing to show")
				}
			},
		)
	}
}

// decodeBomb decodes a bomb, which is a body that needs much more memory than its size suggests. It
// decodes the bomb with and without a mask, and checks that the memory use stays within the budget.
// It then calls the function "check" with the document.
func decodeBomb(
	t *testing.T, name string, body []byte, h Hints, tooLarge string,
	check func(t *testing.T, doc *Document, masked bool),
) {
	masks := map[string]*Mask{
		"":         nil,
		", masked": {Text: func(v string) (string, bool) { return "•", strings.HasPrefix(v, "secret") }},
	}
	for with, mask := range masks {
		t.Run(name+with, func(t *testing.T) {
			if testing.Short() && len(body) > 4<<20 {
				t.Skip("large")
			}
			b := budget.NewBudget()
			d := &Decoder{Types: schemas(), Mask: mask}
			var doc *Document
			used := payloadtest.Allocated(func() { doc = d.Decode(body, h, b) })
			checkWithin(t, b)
			if limit := b.Memory + 8<<20; used > limit {
				t.Errorf(
					"allocated %s, counted %s", deadletter.Bytes(int(used)), deadletter.Bytes(int(b.Used().Memory)),
				)
			}
			if tooLarge != "" && (!doc.TooLarge || doc.Kind != Binary ||
				doc.Problem != "too large to decode safely: "+tooLarge) {
				t.Errorf("got %s, problem %q", doc.Kind, doc.Problem)
			}
			check(t, doc, mask != nil)
		})
	}
}

// TestEstimateIsAboveWhatDecodingTakes checks that the scan never estimates less memory than
// decoding needs, whatever the shape of the body is.
func TestEstimateIsAboveWhatDecodingTakes(t *testing.T) {
	payloadtest.Unraced(t)
	one := func(b []byte, n int) []byte { return bytes.Repeat(b, n) }
	nine := []byte{
		0x18, 1, 0x20, 1, 0x2d, 1, 0, 0, 0, 0x38, 1, 0x40, 1, 0xb0, 0x01, 1, 0x5a, 0x01, 'x', 0xa2, 0x01, 0x00,
	}
	tests := map[string][]byte{
		"empty children":      one([]byte{0xba, 0x01, 0x00}, 20_000),
		"children with field": one([]byte{0xba, 0x01, 0x02, 0x18, 0x01}, 20_000),
		"children with nine":  one(payloadtest.LengthPrefixed(23, nine), 8_000),
		"numbers":             payloadtest.LengthPrefixed(9, one([]byte{1}, 100_000)),
		"strings":             one([]byte{0x52, 0x01, 'x'}, 100_000),
		"unknown":             append([]byte{0x18, 1}, one([]byte{0xa0, 0x06, 0x01}, 100_000)...),
		"unknown, longer": append(
			[]byte{0x18, 1}, one(payloadtest.LengthPrefixed(100, make([]byte, 1_000)), 9_000)...,
		),
		"any": one(
			payloadtest.LengthPrefixed(
				23,
				payloadtest.LengthPrefixed(
					14,
					append(
						payloadtest.LengthPrefixed(1, []byte("t/acme.notify.v1.Kinds")),
						payloadtest.LengthPrefixed(2, nine)...,
					),
				),
			),
			1_000,
		),
		"struct": one(payloadtest.LengthPrefixed(
			23, payloadtest.LengthPrefixed(25, payloadtest.LengthPrefixed(5, payloadtest.LengthPrefixed(1, []byte{
				0x0a, 0x01, 'k', 0x12, 0x02, 0x20, 0x01,
			}))),
		), 5_000),
		"timestamps": one(
			payloadtest.LengthPrefixed(23, payloadtest.LengthPrefixed(21, []byte{0x08, 1, 0x10, 2})), 10_000,
		),
	}
	for name, body := range tests {
		b := &budget.Budget{Bytes: 1 << 30, Fields: 1 << 30, Depth: 100, Memory: 1 << 40}
		var doc *Document
		used := payloadtest.Allocated(func() { doc = (&Decoder{Types: schemas()}).Decode(body, Hints{Type: "Kinds"}, b) })
		if doc.Kind != Protobuf {
			t.Errorf("%s: %s", name, doc.Problem)
		}
		if used > b.Used().Memory {
			t.Errorf(
				"%s: allocated %s, estimated %s", name, deadletter.Bytes(int(used)),
				deadletter.Bytes(int(b.Used().Memory)),
			)
		}
	}
}

func TestScanDoesNotAllocate(t *testing.T) {
	defs, _ := schemas().Lookup("Kinds")
	body := bytes.Repeat([]byte{
		0xba, 0x01, 0x02, 0x18, 0x01, 0x52, 0x01, 'x', 0xa0, 0x06, 0x01, 0x4a, 0x02, 1, 2,
	}, 1000)
	s := &descriptor.Scan{Budget: &budget.Budget{Fields: 1 << 40, Depth: 100}, Types: defs[0].Types}
	if n := testing.AllocsPerRun(10, func() {
		if err := s.Run(body, defs[0].Desc); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// rleFrame returns a zstd frame with one window descriptor and n blocks of 4 bytes. Each unpacked
// block has 128 KiB or the size of the window, whichever is smaller.
func rleFrame(window byte, n int) []byte {
	size := min(1<<17, 1<<(10+window>>3))
	b := append(bytes.Clone(zstdMagic), 0, window)
	for i := range n {
		h := size<<3 | 1<<1
		if i == n-1 {
			h |= 1
		}
		b = append(b, byte(h), byte(h>>8), byte(h>>16), 'x')
	}
	return b
}

func TestEnvelopeBombs(t *testing.T) {
	payloadtest.Unraced(t)
	const size = 16_000_000
	event := func(contentType, data string) []byte { return cloudEvent(contentType, data) }
	inside := func(n int) []byte {
		b := event("", `"data": 1`)
		for range n {
			b = event(ce, `"data": `+string(b))
		}
		return b
	}
	windows := func() (b []byte) { // each frame is larger than the previous ones
		for w := byte(0); w <= 13<<3; w++ {
			b = append(b, rleFrame(w, 1)...)
		}
		return b
	}
	empty := []byte("\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00") // an empty frame
	large := `{"RoutingKey":"","Exchange":"","Exception":"%s","Message":"%s","DateTime":"","BasicProperties":{%s}}`
	tests := []struct {
		name     string
		body     []byte
		h        Hints
		layers   int
		tooLarge string // part of the reason; "" = without a mask, the body must not be too large
		step     string
	}{
		{name: "zstd, 16,000:1", body: zstded(t, make([]byte, 64<<20)), tooLarge: "more than 16 MiB when unpacked"},
		{name: "zstd, 32,000:1", body: rleFrame(13<<3, 100_000), tooLarge: "more than 16 MiB when unpacked"},
		{
			name:     "zstd, named",
			body:     rleFrame(13<<3, 100_000),
			h:        Hints{ContentEncoding: "zstd"},
			tooLarge: "more than 16 MiB when unpacked",
		},
		{
			name:     "zstd in base64",
			body:     encodeStd(rleFrame(13<<3, 1_000)),
			layers:   1,
			tooLarge: "more than 16 MiB when unpacked",
		},
		{
			name:     "zstd in zstd",
			body:     zstded(t, rleFrame(13<<3, 1_000_000)),
			layers:   1,
			tooLarge: "more than 16 MiB when unpacked",
		},
		{
			name: "zstd that declares 15 MiB",
			body: []byte("\x28\xb5\x2f\xfd\xa0\x00\x00\xf0\x00\x11\x00\x00hi"),
			step: "zstd: it does not unpack: damaged or incomplete",
		},
		{
			name:     "zstd that declares 17 MiB",
			body:     []byte("\x28\xb5\x2f\xfd\xa0\x00\x00\x10\x01\x11\x00\x00hi"),
			tooLarge: "more than 16 MiB when unpacked",
		},
		{
			name:     "zstd that declares 2^63",
			body:     []byte("\x28\xb5\x2f\xfd\xe0\x00\x00\x00\x00\x00\x00\x00\x80\x11\x00\x00hi"),
			tooLarge: "more than 16 MiB when unpacked",
		},
		{
			name:   "zstd with a window of 8 MiB for two bytes",
			body:   []byte("\x28\xb5\x2f\xfd\x00\x68\x11\x00\x00hi"),
			layers: 1,
		},
		{name: "zstd with windows that grow", body: windows(), step: "zstd: it does not unpack: damaged or incomplete"},
		{name: "zstd frames of nothing", body: bytes.Repeat(empty, size/len(empty)), layers: 1},
		{
			name: "zstd blocks of nothing",
			body: append([]byte("\x28\xb5\x2f\xfd\x00\x00"), make([]byte, size-size%3)...),
			step: "zstd: it does not unpack: damaged or incomplete",
		},
		{name: "snappy, 20:1", body: snappied(t, make([]byte, 64<<20)), tooLarge: "more than 16 MiB when unpacked"},
		{
			name:     "snappy in zstd",
			body:     zstded(t, snappied(t, make([]byte, 64<<20))),
			layers:   1,
			tooLarge: "more than 16 MiB when unpacked",
		},
		{
			name:   "snappy padding",
			body:   append(bytes.Clone(snappyMagic), bytes.Repeat([]byte{0xfe, 0, 0, 0}, size/4)...),
			layers: 1,
		},
		{
			name:   "snappy chunks of nothing",
			body:   append(bytes.Clone(snappyMagic), bytes.Repeat([]byte{1, 4, 0, 0, 0xd8, 0xea, 0x82, 0xa2}, size/8)...),
			layers: 1,
		},
		{name: "snappy identifiers", body: bytes.Repeat(snappyMagic, size/10), layers: 1},
		{
			name: "snappy chunk that declares 4 GB",
			body: append(bytes.Clone(snappyMagic), 0, 9, 0, 0, 1, 2, 3, 4, 0xff, 0xff, 0xff, 0xff, 0x0f),
			step: "snappy: it does not unpack: damaged or incomplete",
		},
		{
			name: "snappy chunk of 16 MiB",
			body: append(bytes.Clone(snappyMagic), 0, 0xff, 0xff, 0xff),
			step: "snappy: it does not unpack: damaged or incomplete",
		},

		{
			name:   "four layers",
			body:   payloadtest.Gzipped(t, encodeStd(zstded(t, snappied(t, []byte("text"))))),
			layers: 3,
			step:   "snappy: three layers are the most that are peeled",
		},
		{
			name:   "four CloudEvents",
			body:   inside(3),
			h:      Hints{ContentType: ce},
			layers: 3,
			step:   "CloudEvents: three layers are the most that are peeled",
		},
		{
			name:   "1,000 CloudEvents",
			body:   inside(1000),
			h:      Hints{ContentType: ce},
			layers: 3,
			step:   "CloudEvents: three layers are the most that are peeled",
		},
		{
			name:   "Confluent after three layers",
			body:   encodeStd(encodeStd(encodeStd(confluent(7, nil, []byte("[1]"))))),
			h:      Hints{ContentEncoding: "base64, base64, base64"},
			layers: 3,
			step:   "Confluent: three layers are the most that are peeled",
		},
		{
			name: "20,000 Confluent prefixes",
			body: bytes.Repeat(confluent(7, []byte{0}, nil), 20_000),
			h:    Hints{ContentType: "application/protobuf"},
			step: "Confluent: the prefix fits, but what follows it does not decode",
		},

		{
			name:   "CloudEvent of 16 MB in base64",
			body:   event("application/octet-stream", `"data_base64": "`+strings.Repeat("AAAA", size/4-100)+`"`),
			h:      Hints{ContentType: ce},
			layers: 1,
		},
		{
			name:     "CloudEvent of 16 MB in base64 that has escapes",
			body:     event("", `"data_base64": "`+strings.Repeat(`\/`, size/2-200)+`"`),
			h:        Hints{ContentType: ce},
			tooLarge: "it would take more than 64 MiB of memory",
		},
		{
			name:     "CloudEvent of a zstd bomb",
			body:     event("", `"data_base64": "`+string(encodeStd(rleFrame(13<<3, 1_000)))+`"`),
			h:        Hints{ContentType: ce},
			layers:   1,
			tooLarge: "more than 16 MiB when unpacked",
		},
		{
			name:   "CloudEvent of 16 MB of text",
			body:   event("text/plain", `"data": "`+strings.Repeat("a", size-300)+`"`),
			h:      Hints{ContentType: ce},
			layers: 1,
		},
		{
			name:   "CloudEvent of 16 MB of escapes",
			body:   event("text/plain", `"data": "`+strings.Repeat(`\u0041`, size/6-100)+`"`),
			h:      Hints{ContentType: ce},
			layers: 1,
		},
		{
			name:   "CloudEvent of 16 MB of elements",
			body:   event("", `"data": [`+strings.Repeat("1,", size/2-200)+`1]`),
			h:      Hints{ContentType: ce},
			layers: 1,
		},
		{
			name:   "CloudEvent 9,000 deep",
			body:   event("", `"data": `+strings.Repeat("[", 9_000)+strings.Repeat("]", 9_000)),
			h:      Hints{ContentType: ce},
			layers: 1,
		},
		{
			name: "CloudEvent with a long type",
			body: event(
				"application/protobuf",
				`"data_base64": "AAAA", "dataschema": "`+strings.Repeat(`\u0041`, size/6-100)+`"`,
			),
			h:      Hints{ContentType: ce},
			layers: 1,
		},
		{
			name: "CloudEvent with two million members",
			body: []byte("{" + strings.Repeat(`"a\u":1,`, size/8-2) + `"b":1}`),
			h:    Hints{ContentType: ce},
		},
		{
			name: "CloudEvent with two million escaped members",
			body: []byte("{" + strings.Repeat(`"\n":1,`, size/7-2) + `"b":1}`),
			h:    Hints{ContentType: ce},
			step: "CloudEvents, named by the content type: a member is in it twice",
		},
		{
			name: "CloudEvent with a long name",
			body: []byte(`{"` + strings.Repeat(`\n`, size/2-10) + `":1}`),
			h:    Hints{ContentType: ce},
			step: "CloudEvents, named by the content type: id is missing",
		},
		{
			name: "MassTransit with many types",
			body: []byte(
				`{"message":{},"messageType":[` + strings.Repeat(`"urn:message:A",`, size/16-3) + `"urn:message:A"]}`,
			),
			h:    Hints{ContentType: mt},
			step: "MassTransit, named by the content type: messageType has more than 1,000 elements",
		},
		{
			name:   "EasyNetQ error with 16 MB of escapes as exception",
			body:   fmt.Appendf(nil, large, strings.Repeat(`\n`, size/2-100), "m", ""),
			h:      Hints{Type: easyNetQType},
			layers: 1,
		},
		{
			name:   "EasyNetQ error with 5 MB of escapes as exception",
			body:   fmt.Appendf(nil, large, strings.Repeat(`\t`, 2_500_000), "m", ""),
			h:      Hints{Type: easyNetQType},
			layers: 1,
		},
		{
			name:   "EasyNetQ error of 16 MB",
			body:   fmt.Appendf(nil, large, "e", strings.Repeat("a b", size/3-100), ""),
			h:      Hints{Type: easyNetQType},
			layers: 1,
		},
		{
			name: "EasyNetQ error with two million properties",
			body: fmt.Appendf(nil, large, "e", "m", strings.Repeat(`"a":1,`, size/6-100)+`"b":1`),
			h:    Hints{Type: easyNetQType},
			step: "EasyNetQ error, named by the type property: BasicProperties: a member is in it twice",
		},
	}
	for _, tt := range tests {
		decodeBomb(t, tt.name, tt.body, tt.h, tt.tooLarge, func(t *testing.T, doc *Document, masked bool) {
			if masked {
				return
			}
			if doc.TooLarge != (tt.tooLarge != "") || len(doc.Layers) != tt.layers ||
				!strings.Contains(stepsText(doc), tt.step) {
				t.Errorf("%d layers, problem %q, steps\n%s", len(doc.Layers), doc.Problem, stepsText(doc))
			}
		})
	}
}

// TestDecompressorsTakeNoMoreThanIsCounted checks that a decompressor never allocates more memory
// than the budget counts for it. The test does not measure the tables that all decompressors share,
// because they exist before it begins.
func TestDecompressorsTakeNoMoreThanIsCounted(t *testing.T) {
	noise := make([]byte, 4<<20)
	rand.New(rand.NewSource(1)).Read(noise)
	words := []byte(strings.Repeat("a body of words, ", 1<<18))
	for i := 0; i < len(words); i += 97 { // literals and all kinds of back-references
		words[i] = noise[i%len(noise)]
	}
	tests := map[string][]byte{
		"zstd, small":             zstded(t, []byte("text")),
		"zstd, declares its size": zstdWhole(t, words),
		"zstd, words":             zstded(t, words, zstd.WithEncoderLevel(zstd.SpeedBestCompression)),
		"zstd, noise":             zstded(t, noise),
		"zstd, blocks":            rleFrame(13<<3, 100),
		"zstd, large window":      []byte("\x28\xb5\x2f\xfd\x00\x68\x11\x00\x00hi"),
		"zstd, frames":            bytes.Repeat(zstdWhole(t, words[:1<<16]), 50),
		"snappy, small":           snappied(t, []byte("text")),
		"snappy, words":           snappied(t, words),
		"snappy, noise":           snappied(t, noise),
	}
	for name, body := range tests {
		peel := func() (used, counted int64) {
			b := budget.NewBudget()
			r := (&Decoder{}).reading(&Document{Body: body}, Hints{}, b)
			used = payloadtest.Allocated(func() { r.unpack(compression(body), "") })
			if len(r.doc.Layers) != 1 {
				t.Errorf("%s: %s", name, stepsText(r.doc))
			}
			return used, b.Used().Memory
		}
		peel()
		if used, counted := peel(); used > counted {
			t.Errorf("%s: allocated %d, counted %d", name, used, counted)
		} else {
			t.Logf("%s: allocated %d, counted %d", name, used, counted)
		}
	}
}
