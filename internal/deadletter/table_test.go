package deadletter_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// difference describes where two header values differ. If they have the same types and values, it
// returns "". It compares the bits of floats, so that NaN equals itself and 0 differs from -0. The
// package cmp cannot be used here, because its time is exponential in the nesting of slices, and
// hostile headers are nested.
func difference(a, b any) string {
	switch a := a.(type) {
	case deadletter.Table:
		b, ok := b.(deadletter.Table)
		if !ok || len(a) != len(b) {
			return fmt.Sprintf("%d keys, not %v", len(a), b)
		}
		for k, v := range a {
			w, ok := b[k]
			if !ok {
				return fmt.Sprintf("%q is missing", k)
			}
			if d := difference(v, w); d != "" {
				return fmt.Sprintf("%q: %s", k, d)
			}
		}
		return ""
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return fmt.Sprintf("%d elements, not %v", len(a), b)
		}
		for i := range a {
			if d := difference(a[i], b[i]); d != "" {
				return fmt.Sprintf("element %d: %s", i, d)
			}
		}
		return ""
	case float64:
		if b, ok := b.(float64); ok && math.Float64bits(a) == math.Float64bits(b) {
			return ""
		}
	case float32:
		if b, ok := b.(float32); ok && math.Float32bits(a) == math.Float32bits(b) {
			return ""
		}
	case []byte:
		if b, ok := b.([]byte); ok && bytes.Equal(a, b) {
			return ""
		}
	case deadletter.Unread:
		if b, ok := b.(deadletter.Unread); ok && bytes.Equal(a.Field, b.Field) && a.Why == b.Why {
			return ""
		}
	case time.Time:
		if b, ok := b.(time.Time); ok && a == b {
			return ""
		}
	default:
		switch b.(type) {
		case deadletter.Table, []any, []byte, deadletter.Unread:
		default:
			if a == b {
				return ""
			}
		}
	}
	return fmt.Sprintf("%T %v, not %T %v", a, a, b, b)
}

// differing describes where the properties of two messages differ. If they are equal, it returns
// "".
func differing(a, b deadletter.Properties) string {
	if d := difference(a.Headers, b.Headers); d != "" {
		return "headers: " + d
	}
	a.Headers, b.Headers = nil, nil
	return cmp.Diff(a, b)
}

// shortText returns a generator of texts that fit into a short string: any bytes, at most 255. It
// returns a new generator each time, because parallel tests must not share a generator.
func shortText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		if rapid.Bool().Draw(t, "odd") {
			return rapid.SampledFrom([]string{
				"", "\x00", "x-death", "CC", "dlo-id", "\xff\xfe", "\u202egnp.exe", strings.Repeat("k", 255), "\x1b[2J",
				"ключ",
			}).Draw(t, "text")
		}
		return string(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes"))
	})
}

// seconds returns a generator of times that AMQP can contain. AMQP encodes a time as 64 bits of
// seconds.
func seconds() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		return time.Unix(rapid.Int64().Draw(t, "seconds"), 0).UTC()
	})
}

// fields returns a generator of values with any type that a Table may contain. The parameter
// "depth" is the maximum nesting.
func fields(depth int) *rapid.Generator[any] {
	kinds := []*rapid.Generator[any]{
		rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.Int8().AsAny(), rapid.Uint8().AsAny(), rapid.Int16().AsAny(),
		rapid.Uint16().AsAny(),
		rapid.Int32().AsAny(), rapid.Uint32().AsAny(), rapid.Int64().AsAny(),
		rapid.Map(rapid.Uint32(), math.Float32frombits).AsAny(),
		rapid.Map(rapid.Uint64(), math.Float64frombits).AsAny(),
		rapid.SampledFrom([]any{math.NaN(), math.Inf(-1), math.Copysign(0, -1), float32(math.Inf(1))}),
		rapid.Custom(func(t *rapid.T) deadletter.Decimal {
			return deadletter.Decimal{Scale: rapid.Uint8().Draw(t, "scale"), Value: rapid.Int32().Draw(t, "value")}
		}).AsAny(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 20), func(b []byte) string { return string(b) }).AsAny(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 20), func(b []byte) []byte { return append([]byte{}, b...) }).AsAny(),
		seconds().AsAny(),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 20), func(b []byte) deadletter.Unread {
			return deadletter.Unread{Field: append([]byte{}, b...), Why: "drawn"}
		}).AsAny(),
	}
	if depth > 0 {
		kinds = append(kinds, tables(depth-1).AsAny(), rapid.Custom(func(t *rapid.T) []any {
			return append([]any{}, rapid.SliceOfN(fields(depth-1), 0, 4).Draw(t, "elements")...)
		}).AsAny())
	}
	return rapid.OneOf(kinds...)
}

// tables returns a generator of tables with values of any permitted type.
func tables(depth int) *rapid.Generator[deadletter.Table] {
	return rapid.Custom(func(t *rapid.T) deadletter.Table {
		return deadletter.Table(rapid.MapOfN(shortText(), fields(depth), 0, 5).Draw(t, "table"))
	})
}

// properties returns a generator of properties that can be encoded.
func properties() *rapid.Generator[deadletter.Properties] {
	return rapid.Custom(func(t *rapid.T) deadletter.Properties {
		p := deadletter.Properties{
			ContentType: shortText().Draw(t, "content_type"), ContentEncoding: shortText().Draw(t, "content_encoding"),
			CorrelationID: shortText().Draw(t, "correlation_id"),
			ReplyTo: rapid.SampledFrom([]string{
				"", "replies", "amq.rabbitmq.reply-to", "amq.rabbitmq.reply-to.g1",
			}).Draw(t, "reply_to"),
			Expiration: rapid.SampledFrom([]string{"", "1000", "-1", "abc"}).Draw(t, "expiration"),
			MessageID:  shortText().Draw(t, "message_id"), Type: shortText().Draw(t, "type"),
			UserID: shortText().Draw(t, "user_id"), AppID: shortText().Draw(t, "app_id"),
			DeliveryMode: rapid.Uint8().Draw(t, "delivery_mode"), Priority: rapid.Uint8().Draw(t, "priority"),
		}
		if rapid.Bool().Draw(t, "timestamp") {
			p.Timestamp = seconds().Draw(t, "at")
		}
		if h := tables(2).Draw(t, "headers"); len(h) > 0 {
			p.Headers = h
		}
		return p
	})
}

// beforeHeaders encodes properties that contain only headers. It returns the bytes before the table
// of headers.
func beforeHeaders(t interface{ Fatal(...any) }) []byte {
	table := deadletter.Table{"k": nil}
	whole, err := deadletter.Properties{Headers: table}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	headers, err := deadletter.AppendTable(nil, table)
	if err != nil || !bytes.HasSuffix(whole, headers) {
		t.Fatal("headers do not stand at the end of properties", err)
	}
	return bytes.TrimSuffix(whole, headers)
}

func TestEveryTableSurvives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := tables(3).Draw(t, "table")
		encoded, err := deadletter.AppendTable(beforeHeaders(t), want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := deadletter.DecodeProperties(encoded)
		if err != nil || !bytes.HasPrefix(encoded, beforeHeaders(t)) {
			t.Fatalf("% x: %v", encoded, err)
		}
		if diff := difference(want, got.Headers); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestEveryPropertySurvives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := properties().Draw(t, "properties")
		encoded, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := deadletter.DecodeProperties(encoded)
		if err != nil {
			t.Fatal(err)
		}
		if diff := differing(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestTheEncodingIsCanonical checks that two tables have the same encoding only if they are equal.
func TestTheEncodingIsCanonical(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := tables(2).Draw(t, "a"), tables(2).Draw(t, "b")
		if rapid.Bool().Draw(t, "alike") {
			b = deadletter.Table{}
			for k, v := range a {
				b[k] = v
			}
		}
		ea, err1 := deadletter.AppendTable(nil, a)
		eb, err2 := deadletter.AppendTable(nil, b)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if bytes.Equal(ea, eb) != (difference(a, b) == "") {
			t.Fatalf("%v and %v: equal encodings: %v", a, b, bytes.Equal(ea, eb))
		}
	})
}

func TestEveryTypeHasItsOwnEncoding(t *testing.T) {
	t.Parallel()
	values := []any{
		nil, false, true, int8(1), uint8(1), int16(1), uint16(1), int32(1), uint32(1), int64(1), float32(1), float64(1),
		deadletter.Decimal{Scale: 0, Value: 1},
		deadletter.Decimal{Scale: 1, Value: 1},
		"1", []byte("1"), time.Unix(1, 0).UTC(),
		[]any{int64(1)},
		[]any{int32(1)},
		[]any{},
		deadletter.Table{},
		deadletter.Table{"1": nil},
		"",
		[]byte{},
		math.NaN(), math.Inf(1), math.Copysign(0, -1), 0.0,
	}
	seen := map[string]any{}
	for _, v := range values {
		b, err := deadletter.AppendTable(nil, deadletter.Table{"k": v})
		if err != nil {
			t.Fatalf("%T: %v", v, err)
		}
		if other, ok := seen[string(b)]; ok {
			t.Errorf("%T %v is encoded like %T %v", v, v, other, other)
		}
		seen[string(b)] = v
	}
}

func nested(n int, leaf any) any {
	for range n {
		leaf = []any{leaf}
	}
	return leaf
}

func nestedTables(n int) deadletter.Table {
	t := deadletter.Table{}
	for range n {
		t = deadletter.Table{"in": t}
	}
	return t
}

func TestWhatCannotBeEncodedIsNamed(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 128)
	for _, c := range []struct {
		name string
		p    deadletter.Properties
		want string // expected error; "" = the table can be encoded
	}{
		{"a short string of 255 bytes", deadletter.Properties{MessageID: long[:255]}, ""},
		{
			"a short string of 256 bytes",
			deadletter.Properties{CorrelationID: long},
			"correlation_id is longer than 255 bytes",
		},
		{"a key of 256 bytes", deadletter.Properties{Headers: deadletter.Table{long: 1}}, "is longer than 255 bytes"},
		{
			"uint64 is no AMQP type",
			deadletter.Properties{Headers: deadletter.Table{"n": uint64(1)}},
			`"n": field cannot be encoded: type uint64`,
		},
		{
			"int is no AMQP type",
			deadletter.Properties{Headers: deadletter.Table{"a": deadletter.Table{"b": 1}}},
			`"a": "b": field cannot be encoded: type int`,
		},
		{
			"the element of an array",
			deadletter.Properties{Headers: deadletter.Table{"l": []any{"x", struct{}{}}}},
			`"l": element 1:`,
		},
		{"64 tables in one another", deadletter.Properties{Headers: nestedTables(64)}, ""},
		{"65 tables in one another", deadletter.Properties{Headers: nestedTables(65)}, "nested deeper than 64"},
		{"64 arrays in one another", deadletter.Properties{Headers: deadletter.Table{"l": nested(64, "x")}}, ""},
		{
			"65 arrays in one another",
			deadletter.Properties{Headers: deadletter.Table{"l": nested(65, "x")}},
			"nested deeper than 64",
		},
		{
			"a hostile key is shown as escapes",
			deadletter.Properties{Headers: deadletter.Table{"\x1b[2J": uint64(1)}},
			`\\x1b[2J`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			encoded, err := c.p.Encode()
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Fatalf("%v, want %q", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, err := deadletter.DecodeProperties(encoded); err != nil || differing(c.p, got) != "" {
				t.Fatalf("%v, %v", got, err)
			}
		})
	}
}

func TestABrokenEncodingIsAnError(t *testing.T) {
	t.Parallel()
	good, err := deadletter.Properties{
		ContentType:  "t",
		DeliveryMode: 2,
		Priority:     1,
		Timestamp:    time.Unix(1, 0),
		Headers: deadletter.Table{
			"a": []any{deadletter.Table{"b": "c"}},
			"d": deadletter.Decimal{Scale: 1, Value: 2},
		},
	}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for n := range good {
		if p, err := deadletter.DecodeProperties(good[:n]); err == nil {
			t.Errorf("the first %d of %d bytes are read as %+v", n, len(good), p)
		}
	}
	if _, err := deadletter.DecodeProperties(append(good, 0)); err == nil {
		t.Error("a byte too many is no error")
	}
	table := func(field string) string {
		return string([]byte{0, 0, 0, byte(2 + len(field))}) + "\x01k" + field
	}
	for name, text := range map[string]string{
		"an unknown type":                table("Z"),
		"a string that is cut":           table("S\x00\x00\x00\x05abc"),
		"a length of 4 GiB":              table("x\xff\xff\xff\xff"),
		"an array that ends in a field":  table("A\x00\x00\x00\x01l"),
		"a key that is longer than this": "\x00\x00\x00\x02\xffk",
		"a table longer than the rest":   "\x00\x00\x01\x00",
		"more than a table":              table("t\x01") + "rest",
	} {
		if got, err := deadletter.DecodeProperties(append(beforeHeaders(t), text...)); err == nil {
			t.Errorf("%s is read as %v", name, got)
		}
	}
	deep := []byte{}
	for range 80 {
		field := append([]byte{'F'}, byte(len(deep)>>24), byte(len(deep)>>16), byte(len(deep)>>8), byte(len(deep)))
		deep = append(append([]byte("\x01k"), field...), deep...)
	}
	whole := append(append(beforeHeaders(t), 0, 0, byte(len(deep)>>8), byte(len(deep))), deep...)
	if _, err := deadletter.DecodeProperties(whole); err == nil ||
		!strings.Contains(err.Error(), "nested deeper than 64") {
		t.Errorf("80 tables in one another: %v", err)
	}
}

// FuzzDecodeTable decodes arbitrary bytes as a table of headers. The bytes must be decoded, or lead
// to an error. If a decoded table is encoded and then decoded again, it must stay the same.
func FuzzDecodeTable(f *testing.F) {
	for _, name := range names(f) {
		for _, d := range deliveries(f, name) {
			b, err := deadletter.AppendTable(nil, d.Properties.Headers)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	every, err := deadletter.AppendTable(nil, everyType())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(every)
	f.Add([]byte{})
	f.Add([]byte("\x00\x00\x00\x05\x01kt\x02rest"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := deadletter.DecodeProperties(append(beforeHeaders(t), b...))
		if err != nil {
			return
		}
		canonical, err := deadletter.AppendTable(nil, p.Headers)
		if err != nil {
			t.Fatalf("%v was decoded and does not encode: %v", p.Headers, err)
		}
		again, err := deadletter.DecodeProperties(append(beforeHeaders(t), canonical...))
		if err != nil {
			t.Fatal(err)
		}
		if diff := difference(p.Headers, again.Headers); diff != "" {
			t.Fatal(diff)
		}
		if b, err := deadletter.AppendTable(nil, again.Headers); err != nil || !bytes.Equal(b, canonical) {
			t.Fatalf("encoded again: % x, not % x (%v)", b, canonical, err)
		}
	})
}

// FuzzDecodeProperties decodes arbitrary bytes as properties. The bytes must be decoded, or lead to
// an error. If decoded properties are encoded and then decoded again, they must stay the same.
func FuzzDecodeProperties(f *testing.F) {
	for _, name := range names(f) {
		for _, d := range deliveries(f, name) {
			b, err := d.Properties.Encode()
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Add([]byte{0, 0})
	f.Add([]byte{0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := deadletter.DecodeProperties(b)
		if err != nil {
			return
		}
		canonical, err := p.Encode()
		if err != nil {
			t.Fatalf("%+v was decoded and does not encode: %v", p, err)
		}
		again, err := deadletter.DecodeProperties(canonical)
		if err != nil {
			t.Fatal(err)
		}
		// An empty table of headers equals a missing table, because the wire cannot distinguish the two.
		if len(p.Headers) == 0 {
			p.Headers = nil
		}
		if diff := differing(p, again); diff != "" {
			t.Fatal(diff)
		}
		if b, err := again.Encode(); err != nil || !bytes.Equal(b, canonical) {
			t.Fatalf("encoded again: % x, not % x (%v)", b, canonical, err)
		}
	})
}

// everyType returns a table with one value of each type that a table can contain.
func everyType() deadletter.Table {
	return deadletter.Table{
		"void":      nil,
		"bool":      true,
		"int8":      int8(-1),
		"uint8":     uint8(255),
		"int16":     int16(-2),
		"uint16":    uint16(65535),
		"int32":     int32(-3),
		"uint32":    uint32(1 << 31),
		"int64":     int64(math.MinInt64),
		"float32":   float32(0.1),
		"float64":   0.1,
		"nan":       math.NaN(),
		"decimal":   deadletter.Decimal{Scale: 2, Value: -314},
		"longstr":   "text",
		"not UTF-8": "\xff",
		"bytes":     []byte{0, 1, 2},
		"timestamp": time.Unix(1763625600, 0).UTC(),
		"far":       time.Unix(100_000_000_000_000, 0).UTC(),
		"array":     []any{int64(1), "two", nil, []any{}},
		"table":     deadletter.Table{"in": deadletter.Table{}},
	}
}
