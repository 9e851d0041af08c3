package api

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// options say how the API writes and reads JSON. A time is RFC 3339 in UTC with at most three
// digits after the second; the zero time is null, and so is a time that RFC 3339 cannot represent,
// which a header may contain. A duration is a text such as "2m0s". An empty list is [], and bytes
// are base64.
var options = json.JoinOptions(
	json.Deterministic(true),
	jsontext.AllowInvalidUTF8(true), // names and headers may have any bytes
	json.WithMarshalers(json.JoinMarshalers(
		json.MarshalToFunc(writeTime), json.MarshalToFunc(writeAmount), json.MarshalToFunc(writeRetry),
		asText(time.Duration.String), asText(deadletter.GroupID.String), asText(deadletter.OperationID.String),
		asText(ResultName), asText(deadletter.NewestFirst.String),
		asText(func(s deadletter.GuardState) string { return cmp.Or(string(s), "running") }),
	)),
	json.WithUnmarshalers(json.JoinUnmarshalers(
		json.UnmarshalFromFunc(readDuration), json.UnmarshalFromFunc(readAmount),
		fromText(deadletter.ParseGroupID), fromText(deadletter.ParseOperationID),
		fromText(resultOf), fromText(deadletter.ParseNewestFirst),
	)),
)

// Marshal returns the JSON of a value as the API writes it.
func Marshal(v any) ([]byte, error) { return json.Marshal(v, options) }

// Unmarshal reads JSON of the API. It ignores members that this version does not know.
func Unmarshal(b []byte, into any) error { return json.Unmarshal(b, into, options) }

// UnmarshalStrict reads the JSON of a request. An unknown member, a member that is there twice and
// anything after the value are errors, because this version must not silently ignore what it does
// not support. The error wraps deadletter.ErrInvalid.
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

// asText writes values as texts. The id 0 of a group or an operation, which is none, is "".
func asText[T any](text func(T) string) *json.Marshalers {
	return json.MarshalToFunc(func(e *jsontext.Encoder, v T) error {
		return e.WriteToken(jsontext.String(text(v)))
	})
}

// fromText reads values from texts. The text "" is the zero value.
func fromText[T any](parse func(string) (T, error)) *json.Unmarshalers {
	return json.UnmarshalFromFunc(func(d *jsontext.Decoder, into *T) error {
		var text string
		value, err := d.ReadValue()
		if err == nil {
			err = json.Unmarshal(value, &text)
		}
		if err == nil && text != "" {
			*into, err = parse(text)
		}
		return err
	})
}

func resultOf(name string) (deadletter.Result, error) {
	return deadletter.Result(strings.ReplaceAll(name, "_", " ")), nil
}

// ResultName returns the name of a result in JSON and in URLs, for example came_back.
func ResultName(r deadletter.Result) string { return strings.ReplaceAll(string(r), " ", "_") }

// writeRetry writes a delay for each retry, also if the delays grow.
func writeRetry(e *jsontext.Encoder, r rules.Retry) error {
	type plain rules.Retry
	delays := make([]time.Duration, r.Count())
	for n := range delays {
		delays[n] = r.Delay(n)
	}
	r.Delays = delays
	return json.MarshalEncode(e, plain(r))
}

func writeAmount(e *jsontext.Encoder, a deadletter.Amount) error {
	if a < 0 {
		return e.WriteToken(jsontext.Null)
	}
	return e.WriteToken(jsontext.Int(int64(a)))
}

func readAmount(d *jsontext.Decoder, into *deadletter.Amount) error {
	value, err := d.ReadValue()
	if *into = deadletter.UnknownAmount; err != nil || bytes.Equal(value, []byte("null")) {
		return err
	}
	return json.Unmarshal(value, (*int)(into))
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
