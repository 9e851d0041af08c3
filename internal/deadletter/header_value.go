package deadletter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// HeaderKind returns the AMQP type of a header value, such as "longstr" or "int32". The names are
// those of Typed.
func HeaderKind(v any) string {
	var t typedJSON
	b, err := json.Marshal(Typed{v})
	if err == nil {
		err = json.Unmarshal(b, &t)
	}
	if err != nil {
		return ""
	}
	return t.T
}

// HeaderText returns a header value as the text that people edit. It returns false for a value that
// people cannot edit: a table, an array, bytes, null, or text that is not valid UTF-8.
func HeaderText(v any) (string, bool) {
	switch v.(type) {
	case Table, []any, []byte, nil:
		return "", false
	}
	var t struct {
		V any     `json:"v"`
		B *string `json:"b"`
	}
	b, err := json.Marshal(Typed{v})
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		err = d.Decode(&t)
	}
	if err != nil || t.B != nil {
		return "", false
	}
	return fmt.Sprint(t.V), true
}

// ParseHeader parses a text that HeaderText returned. The parameter "kind" is the AMQP type of the
// value.
func ParseHeader(kind, text string) (any, error) {
	v := text
	switch kind {
	case "longstr", "timestamp", "decimal":
		quoted, err := json.Marshal(text)
		if err != nil {
			return nil, err
		}
		v = string(quoted)
	case "float32", "float64":
		if _, err := strconv.ParseFloat(text, 64); err != nil {
			return nil, fmt.Errorf("%q is no number", Visible(Cut(text, 40)))
		}
		v = strconv.Quote(text)
	}
	var t Typed
	if !json.Valid([]byte(v)) || t.UnmarshalJSON([]byte(`{"t":"`+kind+`","v":`+v+`}`)) != nil {
		return nil, fmt.Errorf("%q is no %s", Visible(Cut(text, 40)), kind)
	}
	return t.Value, nil
}

// HeaderJSON parses a header value in the form of the API. This is a string, a number, true or
// false, or null for RemoveHeader. A value of a type that JSON does not have is an object in the
// form of Typed.
func HeaderJSON(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case nil:
		return RemoveHeader, nil
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		return v.Float64()
	case map[string]any:
		var t Typed
		err := t.UnmarshalJSON(raw)
		return t.Value, err
	case []any:
		return nil, fmt.Errorf(`an array is written {"t":"array","v":[{"t":"longstr","v":"a"}]}`)
	}
	return v, nil
}
