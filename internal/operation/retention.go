package operation

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Retention says how long letters stay in a state before they are purged. 0 means forever.
type Retention struct{ Quiet, Discarded, Dead time.Duration }

// RetentionStore contains the methods of the store that retention uses.
type RetentionStore interface {
	Expire(ctx context.Context, state deadletter.State, before time.Time, n int) (int, error)
	ExpireTrials(ctx context.Context, before time.Time) error
	Expiring(ctx context.Context, state deadletter.State, before time.Time, limit int) (int, error)
}

// Keeper purges letters that have been in a state for long enough. It warns before it purges
// letters about which no person has decided.
type Keeper struct {
	store   RetentionStore
	keep    Retention
	now     func() time.Time
	log     *slog.Logger
	warning atomic.Pointer[string]
}

// NewKeeper returns a Keeper. Call Run to start its work. If "now" is nil, the Keeper uses
// time.Now.
func NewKeeper(store RetentionStore, keep Retention, now func() time.Time, log *slog.Logger) *Keeper {
	if now == nil {
		now = time.Now
	}
	return &Keeper{store: store, keep: keep, now: now, log: log}
}

const (
	keepEvery = time.Minute
	keepChunk = 200                // maximum number of letters in one transaction
	warnAhead = 7 * 24 * time.Hour // time from the warning until a letter without a decision is purged
	warnUpTo  = 10_000             // a warning counts at most this number of letters
)

// Run purges expired letters every minute until ctx is done.
func (k *Keeper) Run(ctx context.Context) error {
	for {
		if err := k.Step(ctx); err != nil && ctx.Err() == nil {
			k.log.Error("purging expired letters failed", "err", err)
		}
		select {
		case <-time.After(keepEvery):
		case <-ctx.Done():
			return nil
		}
	}
}

// Step purges the letters that have expired, and renews the warning.
func (k *Keeper) Step(ctx context.Context) error {
	now := k.now()
	for _, of := range []struct {
		state deadletter.State
		keep  time.Duration
	}{
		{deadletter.StateQuiet, k.keep.Quiet},
		{deadletter.StateDiscarded, k.keep.Discarded},
		{deadletter.StateDead, k.keep.Dead},
	} {
		for of.keep > 0 && ctx.Err() == nil {
			n, err := k.store.Expire(ctx, of.state, now.Add(-of.keep), keepChunk)
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
		}
	}
	if err := k.store.ExpireTrials(ctx, now.Add(-deadletter.TrialKept)); err != nil {
		return err
	}
	return k.warn(ctx, now)
}

// warn renews the warning about dead letters that will be purged soon.
func (k *Keeper) warn(ctx context.Context, now time.Time) error {
	text := ""
	if k.keep.Dead > 0 {
		ahead := min(warnAhead, k.keep.Dead/2)
		n, err := k.store.Expiring(ctx, deadletter.StateDead, now.Add(ahead-k.keep.Dead), warnUpTo+1)
		if err != nil {
			return err
		}
		count := fmt.Sprint(n)
		if n > warnUpTo {
			count = fmt.Sprintf("more than %d", warnUpTo)
		}
		if n > 0 {
			text = fmt.Sprintf(
				"%s dead letters will be purged within %s, as retention.dead is %s. Decide on them, hold them, or raise retention.dead.",
				count, ahead, k.keep.Dead,
			)
		}
	}
	if text != "" && k.Warning() == "" {
		k.log.Warn("dead letters are about to age out", "why", text)
	}
	k.warning.Store(&text)
	return nil
}

// Warning returns a text about the letters that will be purged soon, although nobody has decided
// about them. If there are none, it returns "".
func (k *Keeper) Warning() string {
	if text := k.warning.Load(); text != nil {
		return *text
	}
	return ""
}
