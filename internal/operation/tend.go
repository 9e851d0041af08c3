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

// Tender updates groups over time: snoozes end, floods escalate and calm down, and groups that need
// nobody any more are closed.
type Tender struct {
	store TendStore
	log   *slog.Logger
	woken func() // called when something changed
}

// NewTender returns a Tender. Its Run does the work.
func NewTender(store TendStore, log *slog.Logger, woken func()) *Tender {
	return &Tender{store, log, woken}
}

const tendEvery = 20 * time.Second

// Run tends until ctx ends.
func (t *Tender) Run(ctx context.Context) error {
	for {
		changed, err := t.store.Tend(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			t.log.Error("groups", "err", err)
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
