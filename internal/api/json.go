package api

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// options say how the API writes and reads JSON. A time is RFC 3339 in UTC with at most three digits
// after the second; the zero time is null, and so is a time that RFC 3339 cannot represent, which a
// header may contain. A duration is a text such as "2m0s". An empty list is [], and bytes are base64.
var options = json.JoinOptions(
	json.Deterministic(true),
	jsontext.AllowInvalidUTF8(true), // names and headers may have any bytes
	json.WithMarshalers(json.JoinMarshalers(json.MarshalToFunc(writeTime), json.MarshalToFunc(writeDuration))),
	json.WithUnmarshalers(json.UnmarshalFromFunc(readDuration)),
)

// Marshal returns the JSON of a value as the API writes it.
func Marshal(v any) ([]byte, error) { return json.Marshal(v, options) }

// Unmarshal reads JSON of the API. It ignores members that this version does not know.
func Unmarshal(b []byte, into any) error { return json.Unmarshal(b, into, options) }

// UnmarshalStrict reads the JSON of a request. An unknown member, a member that is there twice and
// anything after the value are errors, because this version must not silently ignore what it does not
// support. The error wraps deadletter.ErrInvalid.
func UnmarshalStrict(b []byte, into any) error {
	err := json.Unmarshal(b, into, options, json.RejectUnknownMembers(true), jsontext.AllowInvalidUTF8(false))
	if err == nil {
		return nil
	}
	text := strings.TrimPrefix(err.Error(), "jsontext: ")
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok { // its text names types of Go
		switch {
		case errors.Is(err, json.ErrUnknownName):
			text = fmt.Sprintf("there is no member %q here", wrong.JSONPointer.LastToken())
		case wrong.Err != nil:
			text = string(wrong.JSONPointer) + ": " + wrong.Err.Error()
		default:
			text = fmt.Sprintf("%s: a value of another kind is expected, not %s", wrong.JSONPointer, wrong.JSONKind)
		}
	}
	text = deadletter.Visible(deadletter.Cut(strings.TrimPrefix(text, ": "), 200))
	return fmt.Errorf("%w: the JSON cannot be read: %s", deadletter.ErrInvalid, text)
}

func writeTime(e *jsontext.Encoder, t time.Time) error {
	if y := t.UTC().Year(); t.IsZero() || y < 0 || y > 9999 {
		return e.WriteToken(jsontext.Null)
	}
	return e.WriteToken(jsontext.String(t.UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano)))
}

func writeDuration(e *jsontext.Encoder, d time.Duration) error {
	return e.WriteToken(jsontext.String(d.String()))
}

func readDuration(d *jsontext.Decoder, into *time.Duration) error {
	value, err := d.ReadValue()
	if err != nil || bytes.Equal(value, []byte("null")) {
		return err
	}
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return fmt.Errorf(`a duration is written as a string, for example "2m" or "10s", not %s`, value)
	}
	*into, err = deadletter.ParseDuration(text)
	return err
}
