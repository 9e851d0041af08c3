package operation

import (
	"context"
	"log/slog"
	"time"
)

// TendStore contains the method of the store that the Tender uses.
type TendStore interface {
	Tend(ctx context.Context) (changed int, err error)
}

// Tender updates groups as time passes. Snoozes end, floods escalate and calm down, and groups that
// need nobody any more are closed.
type Tender struct {
	store TendStore
	log   *slog.Logger
	woken func() // called when a group has changed
}

// NewTender returns a Tender. Call Run to start its work.
func NewTender(store TendStore, log *slog.Logger, woken func()) *Tender {
	return &Tender{store, log, woken}
}

const tendEvery = 20 * time.Second

// Run updates the groups until ctx is done.
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
