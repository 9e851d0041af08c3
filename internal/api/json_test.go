package api_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

func TestEachValueHasOneForm(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("", 2*60*60)
	for want, v := range map[string]any{
		`"2026-11-19T23:02:03.123Z"`: time.Date(2026, 11, 20, 1, 2, 3, 123456789, zone),
		`"2026-11-19T23:02:03Z"`:     time.Date(2026, 11, 20, 1, 2, 3, 4, zone),
		`null`:                       time.Time{},
		`[null]`:                     []time.Time{time.Date(12000, 1, 1, 0, 0, 0, 0, zone)}, // RFC 3339 cannot say this year
		`"2m0s"`:                     2 * time.Minute,
		`["G-7",""]`:                 []deadletter.GroupID{7, 0},
		`"O-3"`:                      deadletter.OperationID(3),
		`{"came_back":1}`:            map[deadletter.Result]int{deadletter.ResultCameBack: 1},
		`"newest"`:                   deadletter.NewestFirst(true),
		`[]`:                         []string(nil),
		"\"a\ufffd\"":                "a\xff",
	} {
		if got, err := api.Marshal(v); err != nil || string(got) != want {
			t.Errorf("%v: %s, %v, want %s", v, got, err, want)
		}
	}
	var back struct {
		Group  deadletter.GroupID
		None   deadletter.OperationID
		Counts map[deadletter.Result]int
		Order  deadletter.NewestFirst
		At     time.Time
	}
	text := `{"Group":"G-7","None":"","Counts":{"came_back":1},"Order":"newest","At":null}`
	if err := api.Unmarshal([]byte(text), &back); err != nil || back.Group != 7 || back.None != 0 ||
		back.Counts[deadletter.ResultCameBack] != 1 || !bool(back.Order) || !back.At.IsZero() {
		t.Errorf("%+v, %v", back, err)
	}
}

func TestDurationsOfRequests(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"2m"`: "2m0s", `"90d"`: "2160h0m0s", `"1h30m"`: "1h30m0s", `7`: "", `"7"`: "", `"1.5d"`: "", `"soon"`: "",
	} {
		var got time.Duration
		err := api.Unmarshal([]byte(text), &got)
		if (err != nil) != (want == "") || err == nil && got.String() != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}

// TestRequestsAreStrict checks that nothing in a request is ignored, and that a mistake is told
// with its place.
func TestRequestsAreStrict(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"rate":1,"speed":2}`:    `there is no member "speed" here`,
		`{"rate":1,"rate":2}`:     `duplicate object member name "rate"`,
		`{"rate":"x"}`:            `/rate: `,
		`{"rate":1} {}`:           "after top-level value",
		`{"rate":`:                "unexpected EOF",
		`[1]`:                     "a value of another kind is expected",
		"{\"rate\":1,\"\xff\":2}": "UTF-8",
	} {
		var in api.RateChange
		err := api.UnmarshalStrict([]byte(text), &in)
		if !errors.Is(err, deadletter.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
