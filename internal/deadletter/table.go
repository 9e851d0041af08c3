package deadletter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Table is an AMQP field table. A value always has one of the following Go types. They are the AMQP
// 0-9-1 field types that the client library supports:
//
//	nil (V)  bool (t)  int8 (b)  uint8 (B)  int16 (s)  uint16 (u)  int32 (I)  uint32 (i)
//	int64 (l)  float32 (f)  float64 (d)  Decimal (D)  string (S)  []byte (x)
//	time.Time (T, whole seconds)  []any (A)  Table (F)
//
// A header of a letter may also have the Go type Unread, which the store encodes with the letter
// "?". It is not an AMQP type, and dlo never sends it.
type Table map[string]any

// Decimal is a value of the AMQP type D, which means Value / 10^Scale.
type Decimal struct {
	Scale uint8
	Value int32
}

const (
	// maximum nesting of tables and arrays; RabbitMQ accepts more, and the client library stops at
	// 32 (amqp091-go v1.16.0)
	maxNesting = 64
	maxKey     = 255
)

var tooDeep = fmt.Sprintf("nested deeper than %d", maxNesting)

var errField = errors.New("field cannot be encoded")

// AppendTable appends the AMQP encoding of a table to b, with its length first and its keys sorted.
// Two tables have the same bytes only if they are equal. For example, the values int32 1 and int64
// 1 are not equal. Because of this, the store and the fingerprint use this encoding. The size on
// the wire is also measured with it. Errors name the field.
func AppendTable(b []byte, t Table) ([]byte, error) { return appendTable(b, t, 0) }

func appendTable(b []byte, t Table, depth int) ([]byte, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("%w: nested deeper than %d", errField, maxNesting)
	}
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	keys := make([]string, 0, len(t))
	for k := range t {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if len(k) > maxKey {
			return nil, fmt.Errorf("%w: key %q… is longer than 255 bytes", errField, Visible(k[:40]))
		}
		b = append(append(b, byte(len(k))), k...)
		var err error
		if b, err = appendField(b, t[k], depth); err != nil {
			return nil, fmt.Errorf("%q: %w", Visible(k), err)
		}
	}
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b, nil
}

func appendField(b []byte, value any, depth int) ([]byte, error) {
	be := binary.BigEndian
	switch v := value.(type) {
	case nil:
		return append(b, 'V'), nil
	case bool:
		if v {
			return append(b, 't', 1), nil
		}
		return append(b, 't', 0), nil
	case int8:
		return append(b, 'b', byte(v)), nil
	case uint8:
		return append(b, 'B', v), nil
	case int16:
		return be.AppendUint16(append(b, 's'), uint16(v)), nil
	case uint16:
		return be.AppendUint16(append(b, 'u'), v), nil
	case int32:
		return be.AppendUint32(append(b, 'I'), uint32(v)), nil
	case uint32:
		return be.AppendUint32(append(b, 'i'), v), nil
	case int64:
		return be.AppendUint64(append(b, 'l'), uint64(v)), nil
	case float32:
		return be.AppendUint32(append(b, 'f'), math.Float32bits(v)), nil
	case float64:
		return be.AppendUint64(append(b, 'd'), math.Float64bits(v)), nil
	case Decimal:
		return be.AppendUint32(append(b, 'D', v.Scale), uint32(v.Value)), nil
	case string:
		return append(be.AppendUint32(append(b, 'S'), uint32(len(v))), v...), nil
	case []byte:
		return append(be.AppendUint32(append(b, 'x'), uint32(len(v))), v...), nil
	case time.Time:
		return be.AppendUint64(append(b, 'T'), uint64(v.Unix())), nil
	case Unread:
		b = append(be.AppendUint32(append(b, '?'), uint32(len(v.Why))), v.Why...)
		return append(be.AppendUint32(b, uint32(len(v.Field))), v.Field...), nil
	case Table:
		return appendTable(append(b, 'F'), v, depth+1)
	case []any:
		if depth >= maxNesting {
			return nil, fmt.Errorf("%w: nested deeper than %d", errField, maxNesting)
		}
		b = append(b, 'A')
		at := len(b)
		b = append(b, 0, 0, 0, 0)
		for i, e := range v {
			var err error
			if b, err = appendField(b, e, depth+1); err != nil {
				return nil, fmt.Errorf("element %d: %w", i, err)
			}
		}
		be.PutUint32(b[at:], uint32(len(b)-at-4))
		return b, nil
	}
	return nil, fmt.Errorf("%w: type %T has no AMQP field type", errField, value)
}

// reader decodes an encoded table. After the first error, it returns zero values.
type reader struct {
	b    []byte
	err  error
	left *int // number of values that may still be read; nil = no limit, for encodings made by dlo
}

func (r *reader) fail(why string) {
	if r.err == nil {
		r.err = errors.New(why)
	}
}

func (r *reader) take(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.b) {
		r.fail("encoding ends early")
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

// fixed reads the n bytes of a number. After an error, it returns zeros.
func (r *reader) fixed(n int) []byte {
	if v := r.take(n); v != nil {
		return v
	}
	return make([]byte, n)
}

func (r *reader) u8() uint8     { return r.fixed(1)[0] }
func (r *reader) u16() uint16   { return binary.BigEndian.Uint16(r.fixed(2)) }
func (r *reader) u32() uint32   { return binary.BigEndian.Uint32(r.fixed(4)) }
func (r *reader) u64() uint64   { return binary.BigEndian.Uint64(r.fixed(8)) }
func (r *reader) short() string { return string(r.take(int(r.u8()))) }
func (r *reader) long() []byte  { return r.take(int(r.u32())) }

// table decodes a table that AppendTable has encoded.
func (r *reader) table(depth int) Table {
	in := &reader{b: r.long(), err: r.err, left: r.left}
	if depth > maxNesting {
		in.fail(tooDeep)
	}
	t := Table{}
	for in.err == nil && len(in.b) > 0 {
		k := in.short()
		t[k] = in.field(depth)
	}
	r.err = in.err
	return t
}

func (r *reader) field(depth int) any {
	r.count()
	kind := r.u8()
	switch {
	case kind == 'L' && r.left != nil: // RabbitMQ also reads this type, and sends it on when a letter dies
		kind = 'l'
	case kind == '?' && r.left == nil:
		why := string(r.long())
		return Unread{slices.Clone(r.long()), why}
	}
	switch kind {
	case 'V':
		return nil
	case 't':
		return r.u8() != 0
	case 'b':
		return int8(r.u8())
	case 'B':
		return r.u8()
	case 's':
		return int16(r.u16())
	case 'u':
		return r.u16()
	case 'I':
		return int32(r.u32())
	case 'i':
		return r.u32()
	case 'l':
		return int64(r.u64())
	case 'f':
		return math.Float32frombits(r.u32())
	case 'd':
		return math.Float64frombits(r.u64())
	case 'D':
		scale := r.u8()
		return Decimal{scale, int32(r.u32())}
	case 'S':
		return string(r.long())
	case 'x':
		return slices.Clone(r.long())
	case 'T':
		return time.Unix(int64(r.u64()), 0).UTC()
	case 'F':
		return r.table(depth + 1)
	case 'A':
		in := &reader{b: r.long(), err: r.err, left: r.left}
		if depth >= maxNesting {
			in.fail(tooDeep)
		}
		list := []any{}
		for in.err == nil && len(in.b) > 0 {
			list = append(list, in.field(depth+1))
		}
		r.err = in.err
		return list
	default:
		r.fail(fmt.Sprintf("unknown field type %q", kind))
		return nil
	}
}
