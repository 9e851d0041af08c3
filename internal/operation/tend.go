package operation

import (
	"context"
	"log/slog"
	"time"
)

// TendStore is the part of the store that the Tender needs.
type TendStore interface {
	Tend(ctx context.Context) (changed int, err error)
}

// Tender updates groups over time. Snoozes end, floods escalate and calm down, and groups that no
// longer need anybody are closed.
type Tender struct {
	store TendStore
	log   *slog.Logger
	woken func() // called when a group has changed
}

// NewTender returns a Tender. The Run method of the Tender does the work.
func NewTender(store TendStore, log *slog.Logger, woken func()) *Tender {
	return &Tender{store, log, woken}
}

const tendEvery = 20 * time.Second

// Run tends the groups until ctx ends.
func (t *Tender) Run(ctx context.Context) error {
	for {
		changed, err := t.store.Tend(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			t.log.Error("updating the state of groups failed", "err", err)
		case changed > 0:
			t.woken()
		}
		select {
		case <-time.After(tendEvery):
		case <-ctx.Done():
			return nil
		}
	}
}
