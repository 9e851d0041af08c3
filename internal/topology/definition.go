package topology

import (
	"bytes"
	"encoding/json"
	"maps"
)

// Definition holds the keys of a policy, or the arguments of a queue or an exchange. Numbers are of
// the type json.Number, so that a plan repeats them unchanged.
type Definition map[string]any

// UnmarshalJSON also accepts an empty list, because Erlang may encode an empty object that way.
func (d *Definition) UnmarshalJSON(text []byte) error {
	if string(text) == "[]" {
		*d = Definition{}
		return nil
	}
	var m map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&m); err != nil {
		return err
	}
	*d = m
	return nil
}

// Text returns the value of a key. The result is false if the value is not a text.
func (d Definition) Text(key string) (string, bool) {
	s, ok := d[key].(string)
	return s, ok
}

// Number returns the value of a key. The result is false if the value is not a whole number.
func (d Definition) Number(key string) (int64, bool) {
	n, ok := d[key].(json.Number)
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	return i, err == nil
}

// With returns a copy of d, and adds the keys of the parameter "other" to the copy. If both have a
// key, the copy has the value of "other".
func (d Definition) With(other Definition) Definition {
	c := maps.Clone(d)
	if c == nil {
		c = Definition{}
	}
	maps.Copy(c, other)
	return c
}

// JSON returns the definition as a JSON object.
func (d Definition) JSON() json.RawMessage { return json.RawMessage(compact(map[string]any(d))) }

// MarshalJSON writes numbers as they are.
func (d Definition) MarshalJSON() ([]byte, error) { return d.JSON(), nil }
