package ingest_test

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// The type office implements the Store of ingest. It checks every call, and then passes the call on
// to its own store. office can check the calls because it knows the number of each letter.

var errStore = errors.New("the store is away")

// failure returns an error if the context is done, or if an accident makes the store fail at this
// point.
func (o *office) failure(ctx context.Context, what string) error {
	if ctx.Err() != nil {
		return ctx.Err() // The context is done, so the caller no longer waits for the store.
	}
	if o.happens("fail to " + what) {
		o.note("fail to %s", what)
		return errStore
	}
	return nil
}

func (o *office) Ping(ctx context.Context) error {
	if err := o.failure(ctx, "ping"); err != nil {
		return err
	}
	return o.store.Ping(ctx)
}

func (o *office) BeginSession(ctx context.Context, broker, vhost, inbox string) (deadletter.InboxSession, error) {
	if err := o.failure(ctx, "begin"); err != nil {
		return deadletter.InboxSession{}, err
	}
	return o.store.BeginSession(ctx, broker, vhost, inbox)
}

func (o *office) Restarted(ctx context.Context, broker, vhost, inbox, marker string) error {
	if err := o.failure(ctx, "record a restart"); err != nil {
		return err
	}
	o.checkMarker(marker)
	o.note("restarted")
	return o.store.Restarted(ctx, broker, vhost, inbox, marker)
}

func (o *office) Calm(ctx context.Context, broker, vhost, inbox, marker string) error {
	if err := o.failure(ctx, "record calm"); err != nil {
		return err
	}
	o.checkMarker(marker)
	o.note("calm")
	return o.store.Calm(ctx, broker, vhost, inbox, marker)
}

// checkMarker checks that a marker exists before the store records it. Otherwise the next session
// would see a restart that did not happen.
func (o *office) checkMarker(marker string) {
	o.q.mu.Lock()
	defer o.q.mu.Unlock()
	if o.q.session != nil && !o.q.markers[marker] {
		o.t.Errorf("the store remembers marker %q, which the broker does not have", marker)
	}
}

func (o *office) HoldsBack(ctx context.Context, broker, vhost, inbox string, longest time.Duration) error {
	return o.store.HoldsBack(ctx, broker, vhost, inbox, longest)
}

func (o *office) AtStake(ctx context.Context, broker, vhost, inbox string, letters int) error {
	if err := o.failure(ctx, "record what is at stake"); err != nil {
		return err
	}
	o.note("%d at stake", letters)
	return o.store.AtStake(ctx, broker, vhost, inbox, letters)
}

func (o *office) Look(ctx context.Context, broker, vhost, inbox string) (*deadletter.OpenWindow, error) {
	if err := o.failure(ctx, "look"); err != nil {
		return nil, err
	}
	open, err := o.store.Look(ctx, broker, vhost, inbox)
	if open != nil {
		o.note("find %s", ranges(o.open[open.ID]))
	}
	return open, err
}

// Receive stores a window. It checks that at most one window is open and that no letter is stored
// twice. After a broker restart, a letter may come back and be stored again. In this case, the rows
// of the letter are counted at the end, by the method "check".
func (o *office) Receive(ctx context.Context, w deadletter.Window) (deadletter.Receipt, error) {
	if err := o.failure(ctx, "commit"); err != nil {
		return deadletter.Receipt{}, err
	}
	if len(o.open) > 0 {
		o.t.Errorf("a window is committed while another one is open: %v", o.open)
	}
	r, err := o.store.Receive(ctx, w)
	if err != nil {
		return r, err
	}
	o.recordWindow("commit", w, r)
	for _, n := range o.open[r.Window] {
		if o.times[n]++; o.times[n] > 1 && o.q.restarts == 0 {
			o.t.Errorf("letter %d is stored twice", n)
		}
	}
	return r, nil
}

// RejoinWindow continues an open window whose letters have come back. It checks that all letters of
// the window came back, and that each of them is a letter of the window. Another letter with equal
// contents must not take its place.
func (o *office) RejoinWindow(
	ctx context.Context, open deadletter.OpenWindow, w deadletter.Window,
) (deadletter.Receipt, error) {
	if err := o.failure(ctx, "claim"); err != nil {
		return deadletter.Receipt{}, err
	}
	was := o.open[open.ID]
	r, err := o.store.RejoinWindow(ctx, open, w)
	if err != nil {
		return r, err
	}
	delete(o.open, open.ID)
	o.recordWindow("claim", w, r)
	if len(w.Arrivals) != len(was) {
		o.t.Errorf("%d letters are claimed as a window of %d", len(w.Arrivals), len(was))
	}
	for _, n := range o.open[r.Window] {
		switch {
		case len(r.New) > 0:
			o.times[n]++
		case slices.Contains(was, n), o.q.restarts > 0 && o.times[n] > 0:
		default:
			o.t.Errorf("letter %d is claimed as one of %v", n, was)
		}
	}
	return r, nil
}

// recordWindow records a committed window and its letters.
func (o *office) recordWindow(what string, w deadletter.Window, r deadletter.Receipt) {
	numbers := o.q.numbers(w.Arrivals)
	if got := len(r.New) + r.Merged; got != len(numbers) {
		o.t.Errorf("%d letters became %+v", len(numbers), r)
	}
	o.open[r.Window] = numbers
	o.rows += len(r.New)
	o.suspects += r.Suspects
	o.note("%s %s", what, ranges(numbers))
	if r.Merged > 0 && what == "commit" {
		o.note("%d merged", r.Merged)
	}
	if r.Suspects > 0 {
		o.note("%d suspects", r.Suspects)
	}
}

// SettleWindow settles a window. It checks that no letter of the window can come back, except after
// a broker restart.
func (o *office) SettleWindow(ctx context.Context, window int64) error {
	if err := o.failure(ctx, "settle"); err != nil {
		return err
	}
	for _, n := range o.open[window] {
		if o.q.restarts == 0 && o.q.hasMessage(n) {
			o.t.Errorf("a window is settled while the broker still has its letter %d", n)
		}
	}
	delete(o.open, window)
	o.note("settle")
	return o.store.SettleWindow(ctx, window)
}

func (o *office) SettleInDoubt(ctx context.Context, window int64) error {
	return o.SettleWindow(ctx, window)
}

// isStored reports whether a letter is in the store. dlo may acknowledge only such a letter.
func (o *office) isStored(number int) bool { return o.times[number] > 0 }

// check fails the test unless all letters are in the store and none is in the queue. Each letter
// must have one row. It may have further rows, for example after a restart of the broker, but only
// if these further rows are suspects.
func (o *office) check() {
	o.t.Helper()
	letters := o.q.number
	for n := range o.q.number {
		if !o.isStored(n + 1) {
			o.t.Errorf("letter %d is not stored", n+1)
		}
	}
	if surplus := o.rows - letters; surplus < 0 || surplus > o.suspects {
		o.t.Errorf("%d letters have %d rows, and %d are suspects", letters, o.rows, o.suspects)
	}
	if n := o.q.size(); n > 0 {
		o.t.Errorf("%d letters are left in the queue", n)
	}
	if open, err := o.store.Look(
		context.Background(), "main", "/", o.name,
	); open != nil || err != nil || len(o.open) > 0 {
		o.t.Errorf("a window is open at the end: %v %v %v", open, o.open, err)
	}
}
