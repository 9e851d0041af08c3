package api_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
)

func TestEveryTimeHasOneForm(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("", 2*60*60)
	for name, one := range map[string]struct {
		at   any
		want string
	}{
		"nanoseconds in another zone": {
			api.At(time.Date(2026, 11, 20, 1, 2, 3, 123456789, zone)), `"2026-11-19T23:02:03.123Z"`,
		},
		"made without At": {
			api.Time{Time: time.Date(2026, 11, 20, 1, 2, 3, 4, zone)},
			`"2026-11-19T23:02:03Z"`,
		},
		"a pointer": {
			api.IfKnown(time.Date(2026, 11, 20, 1, 2, 3, 0, zone)), `"2026-11-19T23:02:03Z"`,
		},
		"an unknown":                      {api.IfKnown(time.Time{}), `null`},
		"a year that RFC 3339 cannot say": {api.IfKnown(time.Date(12000, 1, 1, 0, 0, 0, 0, zone)), `null`},
	} {
		got, err := json.Marshal(one.at)
		if err != nil || string(got) != one.want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, one.want)
		}
	}
}

func TestDurationsOfRequests(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"2m"`: "2m0s", `"90d"`: "2160h0m0s", `"1h30m"`: "1h30m0s", `7`: "", `"7"`: "", `"1.5d"`: "", `"soon"`: "",
	} {
		var got api.Duration
		if err := json.Unmarshal(
			[]byte(text), &got,
		); (err != nil) != (want == "") || err == nil && got.String() != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}
