package payload

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// allocated returns how many bytes f allocates. Other goroutines must rest.
func allocated(f func()) int64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc)
}

func nested(inner []byte, tag byte, depth int) []byte {
	// Built from the inside out into one buffer, from its end.
	buf := make([]byte, len(inner)+depth*12)
	at := len(buf) - len(inner)
	copy(buf[at:], inner)
	for range depth {
		size := protowire.AppendVarint(nil, uint64(len(buf)-at))
		at -= len(size)
		copy(buf[at:], size)
		at--
		buf[at] = tag
		if tag >= 0x80 { // field 20: two bytes
			buf[at] = 0x01
			at--
			buf[at] = tag
		}
	}
	return buf[at:]
}

// Field numbers of acme.notify.v1.Kinds: 9 numbers, 10 tags, 14 detail, 17 extra, 19 people, 20 child, 23 children, 25 any_value.
func lengthPrefixed(num protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), b)
}

func TestBombs(t *testing.T) {
	const size = 16_000_000
	anyOf := func(content []byte) []byte {
		return lengthPrefixed(14, append(lengthPrefixed(1, []byte("t/acme.notify.v1.Kinds")), lengthPrefixed(2, content)...))
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
			b = lengthPrefixed(5, lengthPrefixed(1, append([]byte{0x0a, 0x00}, lengthPrefixed(2, b)...)))
		}
		return lengthPrefixed(25, b)
	}
	tests := []struct {
		name     string
		body     []byte
		typ      string
		tooLarge string // "": only the limits count
		problem  string
	}{
		{"16 MB of empty sub-messages", children, "Kinds", "more than 1,000,000 fields", ""},
		{"16 MB of 12 00, known as strings", bytes.Repeat([]byte{0x12, 0x00}, size/2), "acme.notify.v1.EmailAddress", "more than 1,000,000 fields", ""},
		{"empty sub-messages just below the fields", bytes.Repeat([]byte{0xba, 0x01, 0x00}, 900_000), "Kinds", "it would take more than 64 MiB of memory", ""},
		{"16 MB of packed varints", lengthPrefixed(9, bytes.Repeat([]byte{1}, size)), "Kinds", "more than 1,000,000 fields", ""},
		{"packed enums", lengthPrefixed(24, bytes.Repeat([]byte{1}, 900_000)), "Kinds", "it would take more than 64 MiB of memory", ""},
		{"unpacked numbers", bytes.Repeat([]byte{0x48, 1}, size/2), "Kinds", "more than 1,000,000 fields", ""},
		{"unknown fields behind a known one", append([]byte{0x18, 1}, bytes.Repeat([]byte{0xa0, 0x06, 0x01}, size/3)...), "Kinds", "more than 1,000,000 fields", ""},
		{"map entries", bytes.Repeat([]byte{0x9a, 0x01, 0x00}, size/3), "Kinds", "more than 1,000,000 fields", ""},
		{"map entries of messages", bytes.Repeat([]byte{0x9a, 0x01, 0x02, 0x12, 0x00}, 100_000), "Kinds", "it would take more than 64 MiB of memory", ""},
		{"depth 10,000", nested([]byte{0x18, 1}, 0xa2, 10_000), "Kinds", "messages nested deeper than 100 levels", ""},
		{"depth 10,000 of groups that nobody knows", append(bytes.Repeat([]byte{0xa3, 0x06}, 10_000), bytes.Repeat([]byte{0xa4, 0x06}, 10_000)...), "Kinds", "", "none of which it knows"},
		{"depth 12,000 of groups", bytes.Repeat([]byte{0xa3, 0x06}, 12_000), "Kinds", "", "does not parse"},
		{"8 M groups that begin", bytes.Repeat([]byte{0xa3, 0x06}, size/2), "Kinds", "", "does not parse"},
		{"Any in Any in Any", wrap([]byte{0x18, 1}, 200), "Kinds", "messages nested deeper than 100 levels", ""},
		{"empty sub-messages in Any in Any", wrap(half, 3), "Kinds", "it would take more than 64 MiB of memory", ""},
		{"Struct in Struct", structs(60), "Kinds", "messages nested deeper than 100 levels", ""},
		{"length lies", []byte{0x52, 0xff, 0xff, 0xff, 0xff, 0x07, 'x'}, "Kinds", "", "does not parse: it ends too early at byte 1"},
		{"length of 2^63", []byte{0x52, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 'x'}, "Kinds", "", "does not parse"},
		{"varint of 11 bytes", append([]byte{0x18}, bytes.Repeat([]byte{0xff}, 11)...), "Kinds", "", "does not parse: it breaks the wire format at byte 1"},
		{"1 M varints of 10 bytes", bytes.Repeat(append([]byte{0x18}, append(bytes.Repeat([]byte{0xff}, 9), 1)...), 1_400_000), "Kinds", "more than 1,000,000 fields", ""},
		{"field number 0", []byte{0x00, 0x00}, "Kinds", "", "does not parse"},
		{"wire type 7", []byte{0x0f}, "Kinds", "", "does not parse"},
		{"packed varints that break off", lengthPrefixed(9, []byte{1, 2, 0x80}), "Kinds", "", "does not parse"},
		{"one string of 15 MB", lengthPrefixed(10, bytes.Repeat([]byte{'x'}, 15_000_000)), "Kinds", "", ""},
		{"one string of 15 MB of control characters", lengthPrefixed(10, bytes.Repeat([]byte{1}, 15_000_000)), "Kinds", "", ""},
		{"one unknown field of 15 MB", append([]byte{0x18, 1}, lengthPrefixed(100, bytes.Repeat([]byte{'x'}, 15_000_000))...), "Kinds", "", ""},
		{"JSON 10,000 deep", []byte(strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999)), "", "", ""},
		{"much JSON 5,000 deep", []byte("[" + strings.Repeat(strings.Repeat(`{"k":`, 5_000)+"1"+strings.Repeat("}", 5_000)+",", 400) + "1]"), "", "", ""},
		{"16 MB of JSON brackets", bytes.Repeat([]byte{'['}, size), "", "", ""},
		{"16 MB of JSON elements", []byte("[" + strings.Repeat("1,", size/2-2) + "1]"), "", "", ""},
		{"16 MB of base64 letters", bytes.Repeat([]byte{'A'}, size), "Kinds", "", ""},
		{"too long", make([]byte, 16<<20+1), "Kinds", "the body has 16 MiB, above 16 MiB", ""},
	}
	masks := map[string]Mask{"": nil, ", masked": func(_, v string) (string, bool) { return "•", strings.HasPrefix(v, "secret") }}
	for _, tt := range tests {
		for with, mask := range masks {
			t.Run(tt.name+with, func(t *testing.T) {
				if testing.Short() && len(tt.body) > 4<<20 {
					t.Skip("large")
				}
				b := NewBudget()
				d := &Decoder{Types: schemas(), Mask: mask}
				var doc *Document
				used := allocated(func() { doc = d.Decode(tt.body, Hints{Type: tt.typ}, b) })
				within(t, b)
				if limit := b.Memory + 8<<20; used > limit {
					t.Errorf("allocated %s, counted %s", bytesText(int(used)), bytesText(int(b.Used().Memory)))
				}
				if tt.tooLarge != "" && (!doc.TooLarge || doc.Kind != Binary || doc.Problem != "too large to decode safely: "+tt.tooLarge) {
					t.Errorf("got %s, problem %q", doc.Kind, doc.Problem)
				}
				if tt.tooLarge == "" && doc.TooLarge && mask == nil {
					t.Errorf("too large: %q", doc.Problem)
				}
				if !strings.Contains(doc.Problem, tt.problem) {
					t.Errorf("problem %q", doc.Problem)
				}
				if len(doc.Hexdump(4096).Rows) == 0 || Summary(doc) == "" {
					t.Error("nothing to show")
				}
			})
		}
	}
}

// The scan's estimate has to be above what decoding takes, whatever the shape.
func TestEstimateIsAboveWhatDecodingTakes(t *testing.T) {
	one := func(b []byte, n int) []byte { return bytes.Repeat(b, n) }
	nine := []byte{0x18, 1, 0x20, 1, 0x2d, 1, 0, 0, 0, 0x38, 1, 0x40, 1, 0xb0, 0x01, 1, 0x5a, 0x01, 'x', 0xa2, 0x01, 0x00}
	tests := map[string][]byte{
		"empty children":      one([]byte{0xba, 0x01, 0x00}, 20_000),
		"children with field": one([]byte{0xba, 0x01, 0x02, 0x18, 0x01}, 20_000),
		"children with nine":  one(lengthPrefixed(23, nine), 8_000),
		"numbers":             lengthPrefixed(9, one([]byte{1}, 100_000)),
		"strings":             one([]byte{0x52, 0x01, 'x'}, 100_000),
		"unknown":             append([]byte{0x18, 1}, one([]byte{0xa0, 0x06, 0x01}, 100_000)...),
		"any":                 one(lengthPrefixed(23, lengthPrefixed(14, append(lengthPrefixed(1, []byte("t/acme.notify.v1.Kinds")), lengthPrefixed(2, nine)...))), 1_000),
		"struct":              one(lengthPrefixed(23, lengthPrefixed(25, lengthPrefixed(5, lengthPrefixed(1, []byte{0x0a, 0x01, 'k', 0x12, 0x02, 0x20, 0x01})))), 5_000),
		"timestamps":          one(lengthPrefixed(23, lengthPrefixed(21, []byte{0x08, 1, 0x10, 2})), 10_000),
	}
	for name, body := range tests {
		b := &Budget{Bytes: 1 << 30, Fields: 1 << 30, Depth: 100, Memory: 1 << 40}
		var doc *Document
		used := allocated(func() { doc = (&Decoder{Types: schemas()}).Decode(body, Hints{Type: "Kinds"}, b) })
		if doc.Kind != Protobuf {
			t.Errorf("%s: %s", name, doc.Problem)
		}
		if used > b.Used().Memory {
			t.Errorf("%s: allocated %s, estimated %s", name, bytesText(int(used)), bytesText(int(b.Used().Memory)))
		}
	}
}

func TestScanDoesNotAllocate(t *testing.T) {
	defs, _ := schemas().find("Kinds")
	body := bytes.Repeat([]byte{0xba, 0x01, 0x02, 0x18, 0x01, 0x52, 0x01, 'x', 0xa0, 0x06, 0x01, 0x4a, 0x02, 1, 2}, 1000)
	s := &scan{budget: &Budget{Fields: 1 << 40, Depth: 100}, types: defs[0].types}
	if n := testing.AllocsPerRun(10, func() {
		if err := s.run(body, defs[0].desc); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
