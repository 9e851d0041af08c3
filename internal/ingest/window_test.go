package ingest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/ingest"
	"github.com/google/go-cmp/cmp"
)

// spy is a store that records the windows that it receives. For each window, it reports that some
// letters came back.
type spy struct {
	ingest.Store
	windows  []deadletter.Window
	returned []deadletter.ID
}

func (s *spy) Receive(ctx context.Context, w deadletter.Window) (deadletter.Receipt, error) {
	s.windows = append(s.windows, w)
	r, err := s.Store.Receive(ctx, w)
	r.Returned = s.returned
	return r, err
}

// TestWhatAWindowTells checks that a window contains everything that the store needs to judge its
// letters. It must contain the source of the letters, the treatment of letters in doubt, and how
// far the broker can be trusted.
func TestWhatAWindowTells(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, counting, accidents())
		s := &spy{Store: o.store}
		o.store = s
		o.options.Origin, o.options.Same, o.options.Uncertain, o.options.Horizon, o.options.HorizonRows = "sms", []string{
			"main", "other",
		}, deadletter.UncertainKeep, time.Minute, 1000
		o.drainDuring(func() {
			o.q.publish("m 1", "m 2", "m 3", "m 4")
			time.Sleep(time.Second)
			o.q.publish("m 5")
			time.Sleep(time.Second)
			o.q.restart()
			time.Sleep(time.Minute)
		})
		for i := range s.windows {
			s.windows[i].Arrivals = nil
		}
		w := deadletter.Window{
			Session:            1,
			Number:             1,
			Broker:             "main",
			VHost:              "/",
			Inbox:              "dlo.letters",
			Origin:             "sms",
			Same:               []string{"main", "other"},
			Prefetch:           8,
			RedeliveredLeaks:   true,
			EveryReturnCounted: true,
			FirstReturnCounted: true,
			Uncertain:          deadletter.UncertainKeep,
			Horizon:            time.Minute,
			HorizonRows:        1000,
		}
		want := []deadletter.Window{w, w, w}
		want[1].Number, want[2].Session, want[2].Restarted = 2, 2, true
		if diff := cmp.Diff(want, s.windows); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
