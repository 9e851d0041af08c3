// Package operation runs actions on frozen selections of letters: planned, durable, counted, cancelled without loss. It moves letters between states; publishing them is the
// dispatcher's work.
package operation

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// Store is what the desk needs of the store.
type Store interface {
	Rows(ctx context.Context, ids []deadletter.ID) ([]deadletter.Row, error)
	Operation(ctx context.Context, id deadletter.OperationID) (deadletter.Operation, error)
	Freeze(ctx context.Context, op *deadletter.Operation, sel query.Selection) error
	RunningOperations(ctx context.Context) ([]deadletter.OperationID, error)
	Advance(ctx context.Context, op deadletter.OperationID, n int) (left int, err error)
	CancelOperation(ctx context.Context, op deadletter.OperationID, by string) (int, error)
}

// Desk starts operations and runs them.
type Desk struct {
	store   Store
	targets *rules.Targets
	facts   func(ctx context.Context, o deadletter.Origin) deadletter.QueueFacts
	log     *slog.Logger
	crash   func(point string)
	moved   func()
	wake    chan struct{}
}

// Options are the parts of a Desk.
type Options struct {
	Targets *rules.Targets
	Facts   func(ctx context.Context, o deadletter.Origin) deadletter.QueueFacts // of a queue of a broker
	Log     *slog.Logger
	Crash   func(point string) // called at the named points; nil in the product
	Moved   func()             // called after letters were released; wakes the dispatcher
}

// New returns a Desk; Run works.
func New(store Store, o Options) *Desk {
	if o.Crash == nil {
		o.Crash = func(string) {}
	}
	if o.Moved == nil {
		o.Moved = func() {}
	}
	return &Desk{store: store, targets: o.Targets, facts: o.Facts, log: o.Log, crash: o.Crash, moved: o.Moved, wake: make(chan struct{}, 1)}
}

// Request asks for an operation.
type Request struct {
	Action    deadletter.Verb
	Selection query.Selection
	Reason    string // for the audit; may be empty
	Through   string // page, api or cli
	Key       string // Idempotency-Key; "" = every request is an operation of its own
}

const (
	maxReason  = 500   // bytes
	maxKey     = 200   // bytes
	maxLetters = 10000 // of a selection by ids
)

// Start freezes an operation and begins it. The same key by the same principal is the same operation. Errors wrap ErrInvalid, ErrForbidden or ErrNotFound, and then nothing was stored.
func (d *Desk) Start(ctx context.Context, by deadletter.Principal, r Request) (deadletter.OperationID, error) {
	if len(r.Reason) > maxReason || len(r.Key) > maxKey {
		return 0, fmt.Errorf("%w: a reason has at most %d bytes, a key %d", deadletter.ErrInvalid, maxReason, maxKey)
	}
	if _, err := d.rows(ctx, by, r.Action, r.Selection); err != nil {
		return 0, err
	}
	op := deadletter.Operation{Action: r.Action, By: by.Name, Through: r.Through, Reason: r.Reason, Key: r.Key}
	if err := d.store.Freeze(ctx, &op, r.Selection); err != nil {
		return 0, err
	}
	d.crash("operation: frozen")
	select {
	case d.wake <- struct{}{}:
	default:
	}
	return op.ID, nil
}

// rows reads the letters of a selection and passes each through the gate.
func (d *Desk) rows(ctx context.Context, by deadletter.Principal, action deadletter.Verb, sel query.Selection) ([]deadletter.Row, error) {
	if _, ok := action.Trigger(); !ok {
		return nil, fmt.Errorf("%w: %q is not an action on letters", deadletter.ErrInvalid, action)
	}
	if len(sel.IDs) == 0 || len(sel.IDs) > maxLetters {
		return nil, fmt.Errorf("%w: an operation has 1 to %d letters", deadletter.ErrInvalid, maxLetters)
	}
	rows, err := d.store.Rows(ctx, sel.IDs)
	if err != nil {
		return nil, err
	}
	if len(rows) < len(sel.IDs) {
		found := map[deadletter.ID]bool{}
		for _, r := range rows {
			found[r.ID] = true
		}
		for _, id := range sel.IDs {
			if !found[id] {
				return nil, fmt.Errorf("letter %s: %w", id, deadletter.ErrNotFound)
			}
		}
	}
	for _, r := range rows {
		if err := deadletter.Allow(by, action, deadletter.Origin{Broker: r.Broker, VHost: r.VHost, Queue: r.Queue}); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// Cancel stops an operation: what was not sent goes back to what it was. ErrConflict when it is not running.
func (d *Desk) Cancel(ctx context.Context, by deadletter.Principal, id deadletter.OperationID) error {
	op, err := d.store.Operation(ctx, id)
	if err != nil {
		return err
	}
	for _, q := range op.Queues {
		if err := deadletter.Allow(by, deadletter.VerbCancel, deadletter.Origin{Broker: q.Broker, VHost: q.VHost, Queue: q.Queue}); err != nil {
			return err
		}
	}
	_, err = d.store.CancelOperation(ctx, id, by.Name)
	return err
}

const (
	chunk = 500 // letters of one commit, so that ingest never waits long
	idle  = time.Second
)

// Run advances the running operations in turn, one chunk each, until ctx ends: also those that an earlier process began.
func (d *Desk) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		busy, err := d.Step(ctx)
		if err != nil && ctx.Err() == nil {
			d.log.Error("operation", "err", err)
		}
		if busy && err == nil {
			continue
		}
		select {
		case <-d.wake:
		case <-time.After(idle):
		case <-ctx.Done():
		}
	}
	return nil
}

// Step advances each running operation by one chunk and says whether any has more to do.
func (d *Desk) Step(ctx context.Context) (bool, error) {
	running, err := d.store.RunningOperations(ctx)
	if err != nil {
		return false, err
	}
	busy := false
	for _, id := range running {
		left, err := d.store.Advance(ctx, id, chunk)
		if err != nil {
			return false, err
		}
		d.crash("operation: advanced")
		busy = busy || left > 0
	}
	if len(running) > 0 {
		d.moved()
	}
	return busy, nil
}
