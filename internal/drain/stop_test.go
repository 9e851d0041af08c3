package drain_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/drain"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// audit is a Store that records the kinds of acts, and calls a function when the first act is
// recorded.
type audit struct {
	mu    sync.Mutex
	kinds []string
	first func()
}

func (a *audit) OpenInboxes(context.Context) ([]deadletter.InboxName, error) { return nil, nil }

func (a *audit) Record(_ context.Context, e deadletter.Act) error {
	a.mu.Lock()
	a.kinds = append(a.kinds, e.Kind)
	first := len(a.kinds) == 1
	a.mu.Unlock()
	if first {
		a.first()
	}
	return nil
}

// endless is a queue whose drain ends only when it is stopped.
type endless struct{}

func (endless) Run(ctx context.Context) error     { <-ctx.Done(); return nil }
func (endless) Resolve(ctx context.Context) error { return nil }
func (endless) Taken() int                        { return 0 }
func (endless) Busy() bool                        { return false }

// TestADrainThatMeetsAStopHasAnEnd stops dlo while the start of a drain is being recorded. If the
// start is in the audit, the end must be in the audit too.
func TestADrainThatMeetsAStopHasAnEnd(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	store := &audit{}
	d := drain.New(store, []drain.Broker{{
		Name: "main", Place: "main",
		Inspect: func(context.Context, string) error { return nil },
		Open:    func(string, string, int, func(string)) drain.Queue { return endless{} },
	}}, &rules.Targets{}, slog.New(slog.DiscardHandler))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		d.Run(ctx)
	}()
	somebody := deadletter.Local
	store.first = func() {
		stop()
		for { // repeated until the stop has an effect
			if _, err := d.Start(
				t.Context(), somebody, deadletter.DrainRequest{Queue: "other"},
			); errors.Is(err, deadletter.ErrUnavailable) {
				return
			}
		}
	}
	d.Start(t.Context(), somebody, deadletter.DrainRequest{Queue: "queue"})
	<-ended
	store.mu.Lock()
	defer store.mu.Unlock()
	all := strings.Join(store.kinds, ", ")
	if started, ended := strings.Count(
		all, "drain started",
	), strings.Count(all, "drain ended"); started == 0 || started != ended {
		t.Errorf("the audit has %s", all)
	}
}
