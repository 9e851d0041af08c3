package server

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/store"
)

// TestTheRoomForLetters checks the estimate of how long a broker has room for letters while dlo is
// down.
func TestTheRoomForLetters(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		room    int64
		arrived store.Arrivals
		err     error
		want    string
		problem bool
	}{
		"days": {
			50 << 30,
			store.Arrivals{Letters: 1000, Bytes: 1000 * 9 << 10, Since: now.Add(-10 * time.Hour)},
			nil,
			"50.0 GiB before its disk alarm blocks all publishers; while dlo is down, the inbox has room for more than 5 years, at 100 letters an hour with 9.0 KiB each",
			false,
		},
		"hours": {
			1 << 30,
			store.Arrivals{Letters: 100000, Bytes: 100000 * 9 << 10, Since: now.Add(-10 * time.Hour)},
			nil,
			"room for about 10 hours, at 10000 letters an hour",
			true,
		},
		"a burst": {
			1 << 30,
			store.Arrivals{Letters: 100, Since: now.Add(-time.Second)},
			nil,
			"at 100 letters an hour",
			false,
		},
		"no letter": {1 << 30, store.Arrivals{}, nil, "is not known, because the store has no letter", false},
		"no store": {
			1 << 30,
			store.Arrivals{},
			errors.New("no file"),
			"is not known, because the store has no letter",
			false,
		},
		"no room at all": {
			0,
			store.Arrivals{Letters: 1, Since: now.Add(-time.Hour)},
			nil,
			"room for about 0 hours",
			true,
		},
	} {
		got := roomFor(deadletter.Checkup{}, c.room, c.arrived, c.err, now)
		if !strings.Contains(got.Text, c.want) || got.Problem != c.problem || got.Problem == (got.Cure == "") {
			t.Errorf("%s: %+v, want %q", name, got, c.want)
		}
	}
}

// TestTheClocksAreCompared checks that a broker's clock is a problem if it is too far ahead or
// behind.
func TestTheClocksAreCompared(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[time.Duration]bool{
		0: false, 4 * time.Second: false, 6 * time.Second: true, -time.Hour: true,
	} {
		if got := clockOf("main", ahead, nil); got.Problem != want || got.Problem == (got.Cure == "") {
			t.Errorf("%s: %+v", ahead, got)
		}
	}
	if got := clockOf("main", 0, errors.New("no time")); got.Problem || !strings.Contains(got.Text, "not compared") {
		t.Errorf("%+v", got)
	}
}
