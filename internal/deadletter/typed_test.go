package deadletter_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"pgregory.net/rapid"
)

func TestTypedShowsTheTypeOfEachValue(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"void":      `{"t":"void","v":null}`,
		"bool":      `{"t":"bool","v":true}`,
		"int8":      `{"t":"int8","v":-1}`,
		"uint8":     `{"t":"uint8","v":255}`,
		"int16":     `{"t":"int16","v":-2}`,
		"uint16":    `{"t":"uint16","v":65535}`,
		"int32":     `{"t":"int32","v":-3}`,
		"uint32":    `{"t":"uint32","v":2147483648}`,
		"int64":     `{"t":"int64","v":-9223372036854775808}`,
		"float32":   `{"t":"float32","v":0.1}`,
		"float64":   `{"t":"float64","v":0.1}`,
		"nan":       `{"t":"float64","v":"NaN"}`,
		"decimal":   `{"t":"decimal","v":"-314e-2"}`,
		"longstr":   `{"t":"longstr","v":"text"}`,
		"not UTF-8": `{"t":"longstr","v":null,"b":"/w=="}`,
		"bytes":     `{"t":"bytes","v":"AAEC"}`,
		"timestamp": `{"t":"timestamp","v":"2025-11-20T08:00:00Z"}`,
		"far":       `{"t":"timestamp","v":100000000000000}`,
		"array":     `{"t":"array","v":[{"t":"int64","v":1},{"t":"longstr","v":"two"},{"t":"void","v":null},{"t":"array","v":[]}]}`,
		"table":     `{"t":"table","v":{"in":{"t":"table","v":{}}}}`,
	} {
		value := everyType()[key]
		got, err := json.Marshal(deadletter.Typed{Value: value})
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", key, got, err, want)
		}
		var back deadletter.Typed
		if err := json.Unmarshal(got, &back); err != nil {
			t.Errorf("%s: %v", key, err)
		}
		if diff := difference(readable(value), back.Value); diff != "" {
			t.Errorf("%s: %s", key, diff)
		}
	}
}

// TestEveryValueSurvivesTypedJSON checks that every header value stays the same when it is encoded
// as JSON and decoded again. The only exception is the payload of a NaN, which JSON cannot contain.
func TestEveryValueSurvivesTypedJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := readable(fields(3).Draw(t, "value"))
		text, err := json.Marshal(deadletter.Typed{Value: want})
		if err != nil {
			t.Fatal(err)
		}
		var got deadletter.Typed
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := difference(want, got.Value); diff != "" {
			t.Fatalf("%s: %s", text, diff)
		}
	})
}

// readable converts a value to one that JSON can contain: with UTF-8 keys, and with a single kind
// of NaN.
func readable(v any) any {
	switch v := v.(type) {
	case deadletter.Table:
		out := deadletter.Table{}
		for k, e := range v {
			out[strings.ToValidUTF8(k, "?")] = readable(e)
		}
		return out
	case []any:
		for i := range v {
			v[i] = readable(v[i])
		}
	case float64:
		if math.IsNaN(v) {
			return math.NaN()
		}
	case float32:
		if v != v {
			return float32(math.NaN())
		}
	}
	return v
}

func TestTypedRefuses(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"t":"array","v":[`, 70) + `{"t":"void"}` + strings.Repeat(`]}`, 70)
	for _, c := range []struct{ name, text, want string }{
		{"no type", `{"v":1}`, "unknown AMQP type"},
		{"a type that AMQP has not", `{"t":"uint64","v":1}`, `unknown AMQP type "uint64"`},
		{"a key of its own", `{"t":"int8","v":1,"w":2}`, "unknown field"},
		{"a number that does not fit", `{"t":"int8","v":128}`, "int8"},
		{"a fraction", `{"t":"int64","v":1.5}`, "int64"},
		{"a negative unsigned", `{"t":"uint8","v":-1}`, "uint8"},
		{"no number", `{"t":"float64","v":"x"}`, "float64"},
		{"a float without a value", `{"t":"float32"}`, "float32"},
		{"a decimal without a scale", `{"t":"decimal","v":"314"}`, "<value>e-<scale>"},
		{"a decimal that does not fit", `{"t":"decimal","v":"3000000000e-2"}`, "<value>e-<scale>"},
		{"bytes that are not base64", `{"t":"bytes","v":"%"}`, "bytes"},
		{"a longstr that is not base64", `{"t":"longstr","b":"%"}`, "longstr"},
		{"a longstr of a number", `{"t":"longstr","v":1}`, "longstr"},
		{"a time in words", `{"t":"timestamp","v":"yesterday"}`, "timestamp"},
		{"the field of a table", `{"t":"table","v":{"a":{"t":"x"}}}`, `"a": unknown AMQP type`},
		{"the element of an array", `{"t":"array","v":[{"t":"void"},{"t":"x"}]}`, "element 1: unknown AMQP type"},
		{"70 arrays in one another", deep, "nested deeper than 64"},
	} {
		var v deadletter.Typed
		if err := json.Unmarshal([]byte(c.text), &v); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %q", c.name, v, err, c.want)
		}
	}
	if _, err := json.Marshal(deadletter.Typed{Value: uint64(1)}); err == nil {
		t.Error("uint64 has no AMQP type and is written all the same")
	}
}

func TestTypedReadsATimeOfAnyZone(t *testing.T) {
	t.Parallel()
	var v deadletter.Typed
	if err := json.Unmarshal(
		[]byte(`{"t":"timestamp","v":"2025-11-20T09:00:00+01:00"}`), &v,
	); err != nil || v.Value != time.Unix(1763625600, 0).UTC() {
		t.Errorf("%v, %v", v.Value, err)
	}
}

// FuzzTyped checks that any JSON is either read or rejected. A value that was read can be encoded
// as a header, unless it is longer or more nested than AMQP permits.
func FuzzTyped(f *testing.F) {
	for _, name := range names(f) {
		for _, d := range deliveries(f, name) {
			f.Add([]byte(d.Headers))
		}
	}
	f.Add([]byte(`{"t":"longstr","b":"/w=="}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var v deadletter.Typed
		if json.Unmarshal(text, &v) != nil {
			return
		}
		again, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("%v was read and cannot be written: %v", v.Value, err)
		}
		var back deadletter.Typed
		if err := json.Unmarshal(again, &back); err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		if diff := difference(v.Value, back.Value); diff != "" {
			t.Fatal(diff)
		}
	})
}
