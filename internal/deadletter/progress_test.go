package deadletter_test

import (
	"errors"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

func TestWhatIsNotedIsReadAgain(t *testing.T) {
	t.Parallel()
	want := deadletter.Progress{
		Store: "s", Claims: 3, Commits: 9, Received: 7, Newest: "id",
		At: time.Date(2026, 11, 22, 8, 0, 0, 1000, time.UTC),
	}
	if got, err := deadletter.ParseProgress(want.Bytes()); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for _, text := range []string{
		"", "{}", "[]", "null", `{"store":"s","claims":1,"commits":1}`,
		`{"claims":1,"commits":1,"at":"2026-11-22T08:00:00Z"}`,
		`{"store":"s","claims":-1,"commits":1,"at":"2026-11-22T08:00:00Z"}`,
		`{"store":"s","claims":9223372036854775807,"commits":1,"at":"2026-11-22T08:00:00Z"}`,
		`{"store":"s","claims":1,"commits":1,"received":9223372036854775807,"at":"2026-11-22T08:00:00Z"}`,
	} {
		if p, err := deadletter.ParseProgress([]byte(text)); !errors.Is(err, deadletter.ErrInvalid) {
			t.Errorf("%q is read as %+v (%v)", text, p, err)
		}
	}
}

func TestWhatARestoredStoreHasLost(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		missing int64
		until   time.Time
		want    string
	}{
		{
			1204, since.Add(72 * time.Minute),
			"Between 2026-11-22 08:00:00 and 09:12:00 UTC, 1204 letters were received that are not in this copy.",
		},
		{
			1, since.Add(24 * time.Hour),
			"One letter that was received between 2026-11-22 08:00:00 and 2026-11-23 08:00:00 UTC is not in this copy.",
		},
		{
			0, since.Add(time.Hour),
			"This copy lacks everything that was done from 2026-11-22 08:00:00 to 09:00:00 UTC; no letter is missing.",
		},
		{
			deadletter.MissingUnknown, since.Add(time.Hour),
			"This copy lacks everything that was done after 2026-11-22 08:00:00 UTC. It is unknown how much that is.",
		},
	} {
		r := deadletter.Restore{Since: since, Until: c.until, Missing: c.missing}
		if got := r.Lost(); got != c.want {
			t.Errorf("%s", got)
		}
	}
}
