package deadletter_test

import (
	"encoding/binary"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// onTheWire encodes properties as RabbitMQ sends them in a content header: in the order of their
// flags. It leaves out header values of the type Unread, because a table on the wire cannot contain
// them.
func onTheWire(t interface{ Fatal(...any) }, p deadletter.Properties) []byte {
	var b []byte
	var flags uint16
	flag := uint16(1 << 15)
	put := func(is bool, field []byte) {
		if is {
			flags |= flag
			b = append(b, field...)
		}
		flag >>= 1
	}
	short := func(s string) { put(s != "", append([]byte{byte(len(s))}, s...)) }
	short(p.ContentType)
	short(p.ContentEncoding)
	headers, err := deadletter.AppendTable(nil, p.Headers)
	if err != nil {
		t.Fatal(err)
	}
	put(len(p.Headers) > 0, headers)
	put(p.DeliveryMode > 0, []byte{p.DeliveryMode})
	put(p.Priority > 0, []byte{p.Priority})
	short(p.CorrelationID)
	short(p.ReplyTo)
	short(p.Expiration)
	short(p.MessageID)
	put(!p.Timestamp.IsZero(), binary.BigEndian.AppendUint64(nil, uint64(p.Timestamp.Unix())))
	short(p.Type)
	short(p.UserID)
	short(p.AppID)
	return append(binary.BigEndian.AppendUint16(nil, flags), b...)
}

// withoutUnread removes Unread from a random value.
func withoutUnread(v any) any {
	switch v := v.(type) {
	case deadletter.Unread:
		return nil
	case deadletter.Table:
		for k, e := range v {
			v[k] = withoutUnread(e)
		}
	case []any:
		for i, e := range v {
			v[i] = withoutUnread(e)
		}
	}
	return v
}

func TestPropertiesAreReadFromTheWire(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := properties().Draw(t, "properties")
		withoutUnread(want.Headers)
		got, values := deadletter.ReadProperties(onTheWire(t, want))
		if diff := differing(want, got); diff != "" {
			t.Fatal(diff)
		}
		if values < len(want.Headers) {
			t.Fatalf("%d values of %d headers", values, len(want.Headers))
		}
	})
}

// TestWhatCannotBeReadIsKept checks properties of which some parts cannot be read. These parts must
// be kept as bytes, together with the reason. All other parts must be kept as well.
func TestWhatCannotBeReadIsKept(t *testing.T) {
	t.Parallel()
	long := func(s string) string { return string(binary.BigEndian.AppendUint32(nil, uint32(len(s)))) + s }
	deep := ""
	for range 66 {
		deep = "A" + long(deep)
	}
	many := "A" + long(strings.Repeat("V", deadletter.MaxValues))
	const id = "\x02id"
	unread := func(field, why string) deadletter.Unread { return deadletter.Unread{Field: []byte(field), Why: why} }
	for _, c := range []struct {
		name, wire string
		want       deadletter.Properties
	}{
		{
			"a header that is nested too deep",
			"\x20\x80" + long("\x01a"+deep+"\x01bt\x01") + id,
			deadletter.Properties{
				MessageID: "id",
				Headers:   deadletter.Table{"a": unread(deep, "nested deeper than 64"), "b": true},
			},
		},
		{
			"a header of too many values",
			"\x20\x80" + long("\x01a"+many+"\x01bA"+long("V")) + id,
			deadletter.Properties{
				MessageID: "id",
				Headers:   deadletter.Table{"a": unread(many, "more than 131072 values"), "b": []any{nil}},
			},
		},
		{
			"too many headers",
			"\x20\x80" + long(strings.Repeat("\x01aV", deadletter.MaxValues)+"\x01bV\x01ct\x01") + id,
			deadletter.Properties{
				MessageID: "id",
				Headers:   deadletter.Table{"a": nil, "b": unread("V\x01ct\x01", "more than 131072 values")},
			},
		},
		{
			"an unknown type",
			"\x20\x80" + long("\x01at\x01\x01bqxyz\x01ct\x01") + id,
			deadletter.Properties{
				MessageID: "id",
				Headers:   deadletter.Table{"a": true, "b": unread("qxyz\x01ct\x01", `unknown field type 'q'`)},
			},
		},
		{
			"a type of the store",
			"\x20\x80" + long("\x01a?"+long("")+long("")) + id,
			deadletter.Properties{
				MessageID: "id",
				Headers:   deadletter.Table{"a": unread("?"+long("")+long(""), `unknown field type '?'`)},
			},
		},
		{
			"an unknown type in an array",
			"\x20\x00" + long("\x01aA"+long("q")+"\x01bt\x01"),
			deadletter.Properties{
				Headers: deadletter.Table{"a": unread("A"+long("q"), `unknown field type 'q'`), "b": true},
			},
		},
		{
			"a field that ends early",
			"\x20\x80" + long("\x01aI\x00") + id,
			deadletter.Properties{
				MessageID: "id",
				Headers:   deadletter.Table{"a": unread("I\x00", "encoding ends early")},
			},
		},
		{
			"a text that is longer than its table",
			"\x20\x80" + long("\x01aS\x00\x00\x00\x09x") + id,
			deadletter.Properties{
				MessageID: "id",
				Headers:   deadletter.Table{"a": unread("S\x00\x00\x00\x09x", "encoding ends early")},
			},
		},
		{
			"a name without a field",
			"\x20\x80" + long("\x01at\x01\x01b") + id,
			deadletter.Properties{
				MessageID: "id",
				Headers:   deadletter.Table{"a": true, "b": unread("", "encoding ends early")},
			},
		},
		{
			"a name that ends early",
			"\x20\x80" + long("\x01at\x01\x09b") + id,
			deadletter.Properties{
				MessageID: "id",
				Headers: deadletter.Table{
					"a": true, "dlo-unread": unread("\x09b", "the name of a header: encoding ends early"),
				},
			},
		},
		{
			"a table that ends early",
			"\x20\x80\x00\x00\x00\x09\x01a",
			deadletter.Properties{
				Headers: deadletter.Table{"dlo-unread": unread("\x00\x00\x00\x09\x01a", "encoding ends early")},
			},
		},
		{
			"a property that ends early",
			"\x20\x80" + long("\x01at\x01") + "\x09id",
			deadletter.Properties{
				Headers: deadletter.Table{"a": true, "dlo-unread": unread("\x09id", "encoding ends early")},
			},
		},
		{
			"a property that is missing",
			"\x10\x80",
			deadletter.Properties{Headers: deadletter.Table{"dlo-unread": unread("", "encoding ends early")}},
		},
		{
			"more than the properties",
			"\x00\x80" + id + "xyz",
			deadletter.Properties{
				MessageID: "id",
				Headers:   deadletter.Table{"dlo-unread": unread("xyz", "bytes after the last property")},
			},
		},
		{
			"nothing at all",
			"",
			deadletter.Properties{Headers: deadletter.Table{"dlo-unread": unread("", "encoding ends early")}},
		},
		{"a reserved property and flag", "\x10\x05\x02\x02xy", deadletter.Properties{DeliveryMode: 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, values := deadletter.ReadProperties([]byte(c.wire))
			if diff := differing(c.want, got); diff != "" {
				t.Error(diff)
			}
			if values > deadletter.MaxValues+1 {
				t.Errorf("%d values", values)
			}
		})
	}
}

// TestHeadersTakeBoundedMemory reads the headers that take the most memory per byte. For a frame of
// 131,072 bytes, the largest that RabbitMQ accepts by default, they may take at most 4 MiB.
func TestHeadersTakeBoundedMemory(t *testing.T) {
	long := func(s string) string { return string(binary.BigEndian.AppendUint32(nil, uint32(len(s)))) + s }
	table := func(fields string) string { return "\x20\x00" + long(fields) }
	const frame = 130_000
	var names, small strings.Builder
	for n := range frame / 4 {
		names.WriteString("\x02" + string([]byte{byte(n), byte(n >> 8)}) + "V")
	}
	for range frame / 12 {
		small.WriteString("F" + long("\x01kt\x01"))
	}
	for name, wire := range map[string]string{
		"nothing":       table("\x01aA" + long(strings.Repeat("V", frame))),
		"empty arrays":  table("\x01aA" + long(strings.Repeat("A\x00\x00\x00\x00", frame/5))),
		"empty tables":  table("\x01aA" + long(strings.Repeat("F\x00\x00\x00\x00", frame/5))),
		"small tables":  table("\x01aA" + long(small.String())),
		"small numbers": table("\x01aA" + long(strings.Repeat("s\x7f\x01", frame/3))),
		"empty texts":   table("\x01aA" + long(strings.Repeat("S\x00\x00\x00\x00", frame/5))),
		"many headers":  table(names.String()),
		"one text":      table("\x01aS" + long(strings.Repeat("e", frame))),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			p, values := deadletter.ReadProperties([]byte(wire))
			runtime.GC()
			runtime.ReadMemStats(&after)
			kept := int(after.HeapAlloc) - int(before.HeapAlloc)
			t.Logf(
				"%d bytes, %d values: %d bytes kept (%.0f for a byte), %d allocated", len(wire), values, kept,
				float64(kept)/float64(len(wire)), after.TotalAlloc-before.TotalAlloc,
			)
			if kept > 4<<20 {
				t.Errorf("%d bytes take %d", len(wire), kept)
			}
			runtime.KeepAlive(p)
		})
	}
}

// FuzzReadProperties reads any bytes as properties. It must be possible to store the result and to
// read it again.
func FuzzReadProperties(f *testing.F) {
	for _, seed := range []string{
		"", "\x00\x00", "\x20\x00\x00\x00\x00\x05\x01aL\x00\x00",
		"\xff\xfc\x01a\x01b\x00\x00\x00\x04\x01at\x01\x02\x09\x01c",
		"\x20\x00\x00\x00\x00\x0a\x01aA\x00\x00\x00\x03FVV",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, wire []byte) {
		p, values := deadletter.ReadProperties(wire)
		if values > deadletter.MaxValues+1 {
			t.Fatalf("%d values", values)
		}
		encoded, err := p.Encode()
		if err != nil {
			t.Fatalf("%v: %v", p, err)
		}
		again, err := deadletter.DecodeProperties(encoded)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Headers) == 0 {
			p.Headers = nil // an empty table is not stored
		}
		if diff := differing(p, again); diff != "" {
			t.Fatal(diff)
		}
	})
}
