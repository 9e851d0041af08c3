package deadletter

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Typed is a header value together with its AMQP type. In the API and in NDJSON, it has the form
// {"t":"int64","v":7}. The types are table, array, longstr, bytes, bool, int8, uint8, int16,
// uint16, int32, uint32, int64, float32, float64, decimal ("<value>e-<scale>"), timestamp (RFC
// 3339, UTC) and void. A longstr that is not UTF-8 is written as {"t":"longstr","b":"<base64>"}. A
// float that JSON cannot contain is written as text (NaN, +Inf, -Inf), so that nothing is lost.
// Unread is {"t":"unread","v":"<why>","b":"<base64>"}.
type Typed struct{ Value any }

type typedJSON struct {
	T string          `json:"t"`
	V json.RawMessage `json:"v,omitempty"`
	B *string         `json:"b,omitempty"`
}

func (t Typed) MarshalJSON() ([]byte, error) {
	var out struct {
		T string  `json:"t"`
		V any     `json:"v"`
		B *string `json:"b,omitempty"`
	}
	switch v := t.Value.(type) {
	case nil:
		out.T = "void"
	case bool, int8, uint8, int16, uint16, int32, uint32, int64:
		out.T, out.V = fmt.Sprintf("%T", v), v // the name of the type is its name in Go
	case float32:
		out.T, out.V = "float32", typedFloat(float64(v), 32)
	case float64:
		out.T, out.V = "float64", typedFloat(v, 64)
	case Decimal:
		out.T, out.V = "decimal", fmt.Sprintf("%de-%d", v.Value, v.Scale)
	case string:
		out.T, out.V = "longstr", v
		if !utf8.ValidString(v) {
			b := base64.StdEncoding.EncodeToString([]byte(v))
			out.V, out.B = nil, &b
		}
	case Unread:
		b := base64.StdEncoding.EncodeToString(v.Field)
		out.T, out.V, out.B = "unread", v.Why, &b
	case []byte:
		out.T, out.V = "bytes", base64.StdEncoding.EncodeToString(v)
	case time.Time:
		out.T, out.V = "timestamp", v.Unix()
		if y := v.UTC().Year(); y >= 0 && y <= 9999 { // a year has four digits in RFC 3339
			out.V = v.UTC().Format(time.RFC3339)
		}
	case Table:
		m := make(map[string]Typed, len(v))
		for k, e := range v {
			m[k] = Typed{e}
		}
		out.T, out.V = "table", m
	case []any:
		l := make([]Typed, len(v))
		for i, e := range v {
			l[i] = Typed{e}
		}
		out.T, out.V = "array", l
	default:
		return nil, fmt.Errorf("%w: type %T", errField, v)
	}
	return json.Marshal(out)
}

func typedFloat(f float64, bits int) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return strconv.FormatFloat(f, 'g', -1, bits)
	}
	return json.Number(strconv.FormatFloat(f, 'g', -1, bits))
}

func (t *Typed) UnmarshalJSON(b []byte) error { return t.read(b, 0) }

func (t *Typed) read(b []byte, depth int) error {
	if depth > maxNesting {
		return fmt.Errorf("nested deeper than %d", maxNesting)
	}
	var in typedJSON
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return err
	}
	var err error
	switch in.T {
	case "void":
		t.Value = nil
	case "bool":
		t.Value, err = typedValue[bool](in.V)
	case "int8":
		t.Value, err = typedValue[int8](in.V)
	case "uint8":
		t.Value, err = typedValue[uint8](in.V)
	case "int16":
		t.Value, err = typedValue[int16](in.V)
	case "uint16":
		t.Value, err = typedValue[uint16](in.V)
	case "int32":
		t.Value, err = typedValue[int32](in.V)
	case "uint32":
		t.Value, err = typedValue[uint32](in.V)
	case "int64":
		t.Value, err = typedValue[int64](in.V)
	case "float32":
		var f float64
		f, err = strconv.ParseFloat(strings.Trim(string(in.V), `"`), 32)
		t.Value = float32(f)
	case "float64":
		t.Value, err = strconv.ParseFloat(strings.Trim(string(in.V), `"`), 64)
	case "decimal":
		var s string
		if s, err = typedValue[string](in.V); err == nil {
			t.Value, err = parseDecimal(s)
		}
	case "longstr":
		if in.B != nil {
			var raw []byte
			raw, err = base64.StdEncoding.DecodeString(*in.B)
			t.Value = string(raw)
			break
		}
		t.Value, err = typedValue[string](in.V)
	case "bytes":
		t.Value, err = typedValue[[]byte](in.V)
	case "unread":
		var u Unread
		if in.B == nil {
			return fmt.Errorf("unread: the bytes are missing")
		}
		if u.Field, err = base64.StdEncoding.DecodeString(*in.B); err == nil {
			u.Why, err = typedValue[string](in.V)
		}
		t.Value = u
	case "timestamp":
		var seconds int64
		if seconds, err = typedValue[int64](in.V); err == nil {
			t.Value = time.Unix(seconds, 0).UTC()
			break
		}
		var at time.Time
		at, err = typedValue[time.Time](in.V)
		t.Value = at.UTC()
	case "table":
		var m map[string]json.RawMessage
		if m, err = typedValue[map[string]json.RawMessage](in.V); err == nil {
			table := Table{}
			for k, raw := range m {
				var e Typed
				if err = e.read(raw, depth+1); err != nil {
					return fmt.Errorf("%q: %w", k, err)
				}
				table[k] = e.Value
			}
			t.Value = table
		}
	case "array":
		var l []json.RawMessage
		if l, err = typedValue[[]json.RawMessage](in.V); err == nil {
			list := make([]any, len(l))
			for i, raw := range l {
				var e Typed
				if err = e.read(raw, depth+1); err != nil {
					return fmt.Errorf("element %d: %w", i, err)
				}
				list[i] = e.Value
			}
			t.Value = list
		}
	default:
		return fmt.Errorf("unknown AMQP type %q", in.T)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", in.T, err)
	}
	return nil
}

func typedValue[T any](raw json.RawMessage) (T, error) {
	var v T
	err := json.Unmarshal(raw, &v)
	return v, err
}

func parseDecimal(s string) (Decimal, error) {
	value, scale, ok := strings.Cut(s, "e-")
	v, err1 := strconv.ParseInt(value, 10, 32)
	n, err2 := strconv.ParseUint(scale, 10, 8)
	if !ok || err1 != nil || err2 != nil {
		return Decimal{}, fmt.Errorf("%q is not <value>e-<scale>", s)
	}
	return Decimal{Scale: uint8(n), Value: int32(v)}, nil
}
