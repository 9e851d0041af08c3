package requeue_test

import (
	"slices"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/requeue"
)

// TestTheDispatcherGivesUp checks that the running dispatcher gives up letters that a breaker has
// held back for too long, in transactions of 500. If the breaker is off, or if the configuration
// forbids it, no letter may be given up.
func TestTheDispatcherGivesUp(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		breaker requeue.Breaker
		want    []time.Duration
	}{
		"as shipped": {
			requeue.Breaker{CameBack: 90, Of: 500, Window: 10 * time.Minute, Probe: 3, GiveUp: 24 * time.Hour},
			[]time.Duration{24 * time.Hour, 24 * time.Hour, 24 * time.Hour},
		},
		"the breaker is off": {requeue.Breaker{GiveUp: 24 * time.Hour}, nil},
		"never":              {requeue.Breaker{CameBack: 90, Of: 500, Window: 10 * time.Minute, Probe: 3}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.shelf().overdue = 1100
			d.options.Breaker = tt.breaker
			c := d.open()
			if err := c.dispatcher.Overdue(t.Context()); err != nil || !slices.Equal(d.shelf().givenUp, tt.want) {
				t.Errorf("%v, given up after %v, want %v", err, d.shelf().givenUp, tt.want)
			}
		})
	}
}
