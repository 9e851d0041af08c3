package api

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Time is a time in JSON: RFC 3339 in UTC, with at most three digits after the second. The types of
// the API use it instead of time.Time, so that every time in a response has this form.
type Time struct{ time.Time }

// At converts a time to the type that the JSON of the API uses for times. RFC 3339 cannot represent
// some times, and At returns the zero Time for them. A header can contain such a time, because it
// may hold any number of seconds.
func At(t time.Time) Time {
	if y := t.UTC().Year(); t.IsZero() || y < 0 || y > 9999 {
		return Time{}
	}
	return Time{t.UTC().Truncate(time.Millisecond)}
}

// IfKnown converts a time to a time of the API. For the zero time, it returns nil, which is null in
// JSON.
func IfKnown(t time.Time) *Time {
	if at := At(t); !at.IsZero() {
		return &at
	}
	return nil
}

// OrZero returns the time to which t points. If t is nil, it returns the zero time.
func (t *Time) OrZero() time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// MarshalJSON encodes a time in the same form as At, even if the Time was not made with At.
func (t Time) MarshalJSON() ([]byte, error) { return At(t.Time).Time.MarshalJSON() }

// Duration is a duration. Its JSON is a string such as "2m0s". A request may also use days, as in
// "90d".
type Duration time.Duration

func (d Duration) String() string { return time.Duration(d).String() }

func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

func (d *Duration) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return fmt.Errorf(
			"%w: a duration is written as a string, for example \"2m\" or \"10s\", not %s", deadletter.ErrInvalid, b,
		)
	}
	return d.UnmarshalText([]byte(text))
}

// UnmarshalText parses a duration. The command line also uses it.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := deadletter.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%w: %w", deadletter.ErrInvalid, err)
	}
	*d = Duration(v)
	return nil
}
