package deadletter_test

import (
	"slices"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

func TestAPulse(t *testing.T) {
	t.Parallel()
	zero := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	at := func(minutes ...int) (out []time.Time) {
		for _, m := range minutes {
			out = append(out, zero.Add(time.Duration(m)*time.Minute))
		}
		return out
	}
	for _, c := range []struct {
		name   string
		deaths []time.Time
		last   []time.Time
		gap    time.Duration
	}{
		{"none", nil, nil, 0},
		{"one", at(3), at(3), 0},
		{"a burst", at(5, 5, 5, 5), at(5, 5, 5, 5), 0},
		{"out of order", at(9, 0, 3), at(0, 3, 9), 6 * time.Minute},
		{"one pause does not count", at(0, 10, 20, 500, 510), at(0, 10, 20, 500, 510), 10 * time.Minute},
		{
			"more than it remembers", at(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17),
			at(2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17), time.Minute,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var p deadletter.Pulse
			for _, d := range c.deaths {
				p = p.Beat(d)
			}
			if !slices.Equal(p, c.last) || p.Gap() != c.gap {
				t.Errorf("%v, gap %s; want %v, %s", p, p.Gap(), c.last, c.gap)
			}
		})
	}
}
