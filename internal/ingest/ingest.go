// Package ingest stores incoming letters. Each letter gets exactly one row. Letters are stored in
// windows: one commit stores all letters of a window, one ack acknowledges all of them, and a
// second commit settles the window. The package decodes nothing. docs/reliability.md describes the
// protocol and its proof.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Store contains the methods of the store that ingest uses.
type Store interface {
	BeginSession(ctx context.Context, broker, vhost, inbox string) (deadletter.InboxSession, error)
	Restarted(ctx context.Context, broker, vhost, inbox, marker string) error
	Calm(ctx context.Context, broker, vhost, inbox, marker string) error
	// records SessionFacts.Delay for the next session
	HoldsBack(ctx context.Context, broker, vhost, inbox string, longest time.Duration) error
	// records the look before the session gets a letter
	Look(ctx context.Context, broker, vhost, inbox string) (*deadletter.OpenWindow, error)
	Receive(ctx context.Context, w deadletter.Window) (deadletter.Receipt, error)
	RejoinWindow(ctx context.Context, open deadletter.OpenWindow, w deadletter.Window) (deadletter.Receipt, error)
	// records how many letters the broker would delete if the session were lost; valid until
	// Receive
	AtStake(ctx context.Context, broker, vhost, inbox string, letters int) error
	SettleWindow(ctx context.Context, window int64) error
	SettleInDoubt(ctx context.Context, window int64) error
	Ping(ctx context.Context) error // writes a row; a nil error means that the store works
}

// Inbox is a dead-letter queue from which windows of unacknowledged letters are taken. While a
// window is open, Inbox delivers no other letters. Any error ends the session of the Inbox. The
// method Open then begins another session.
type Inbox interface {
	Open(ctx context.Context, session deadletter.InboxSession) (deadletter.SessionFacts, error)
	Prefetch() int // maximum number of unacknowledged letters, in the newest window or in the next one
	Next(ctx context.Context) ([]deadletter.Arrival, error)
	Resume(ctx context.Context, open []deadletter.Fingerprint) (w []deadletter.Arrival, whole bool, err error)
	Ack(w []deadletter.Arrival) error
	Fence() error
	MakeMarker(marker string) error
	DeleteMarker(marker string) error
	Missing(letters int) // reports letters that the broker deleted before they were stored
	// reports whether the broker may still give back letters of an earlier session; called while
	// this session holds no letters
	Held() (bool, error)
	Close()
}

// Options are the settings of an Ingester.
type Options struct {
	Broker, VHost, Inbox string
	Origin               string   // origin of letters whose headers name no origin; "" = unknown
	Same                 []string // other names that the configuration gives to this broker and vhost
	Uncertain            deadletter.Uncertain
	Horizon              time.Duration
	HorizonRows          int
	// returns why no letter may be stored now, for example because the disk is nearly full; nil =
	// there is room
	Room     func() error
	Stored   func() // called after each commit, to wake the classifier
	CameBack func(letters []deadletter.ID)
	Crash    func(point string) // called at the named crash points; nil in production
	Now      func() time.Time
	Log      *slog.Logger
	Metrics  *Metrics
}

// Ingester drains one inbox.
type Ingester struct {
	store Store
	inbox Inbox
	o     Options
	log   *slog.Logger

	flood atomic.Int64 // Unix milliseconds at which the last large window was stored

	say func(text string) // called with the reason why letters cannot be stored

	session deadletter.InboxSession
	facts   deadletter.SessionFacts
	number  int64 // number of the next window in the session
	fetched int   // number of letters fetched in the session
	earlier int   // number of letters that earlier sessions may have given back; 0 = none, or unknown
}

// New returns an Ingester. Call Run to drain the inbox.
func New(store Store, inbox Inbox, o Options) *Ingester {
	if o.Crash == nil {
		o.Crash = func(string) {}
	}
	if o.Room == nil {
		o.Room = func() error { return nil }
	}
	if o.Stored == nil {
		o.Stored = func() {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Ingester{
		store: store,
		inbox: inbox,
		o:     o,
		log:   o.Log.With("broker", o.Broker, "inbox", o.Inbox),
		say:   func(string) {},
	}
}

// Run drains the inbox until ctx is done. Before it returns, it finishes the open window: commit,
// ack, fence and settle.
func (i *Ingester) Run(ctx context.Context) error {
	defer i.inbox.Close()
	for ctx.Err() == nil && i.storeBack(ctx) == nil {
		if err := i.drain(ctx); ctx.Err() == nil {
			i.log.Warn("session ended", "err", err)
		}
	}
	return nil
}

// probe is how often dlo checks whether a store that failed works again.
const probe = time.Second

// storeBack waits until the store works and has room. Until then, dlo fetches no letters, and they
// stay in the broker.
func (i *Ingester) storeBack(ctx context.Context) error {
	for {
		err := i.o.Room()
		if err == nil {
			err = i.store.Ping(ctx)
		}
		if err == nil {
			return nil
		}
		i.inbox.Close()
		i.log.Warn("dlo takes in no letters", "err", err)
		i.say("dlo takes in no letters: " + err.Error())
		select {
		case <-time.After(probe):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// drain runs one session. It first decides what happened to the window that the last session left
// open. After that, it stores one window after another.
func (i *Ingester) drain(ctx context.Context) error {
	if err := i.begin(ctx); err != nil {
		return err
	}
	if err := i.resume(ctx); err != nil {
		return err
	}
	for {
		if err := i.o.Room(); err != nil {
			return err
		}
		if i.session.Restarted {
			if err := i.watchAftermath(ctx); err != nil {
				return err
			}
			continue
		}
		arrivals, err := i.inbox.Next(ctx)
		if err != nil {
			return err
		}
		// The program finishes a fetched window even if it is stopping, because the letters of the
		// window belong to the broker until they are acknowledged.
		if err := i.finishWindow(context.WithoutCancel(ctx), i.window(arrivals, 0), i.receive); err != nil {
			return err
		}
	}
}

// begin opens a session. It checks whether the broker was restarted since the last session.
func (i *Ingester) begin(ctx context.Context) error {
	session, err := i.store.BeginSession(ctx, i.o.Broker, i.o.VHost, i.o.Inbox)
	if err != nil {
		return err
	}
	i.session, i.number, i.fetched, i.earlier = session, 1, 0, 0
	if i.facts, err = i.inbox.Open(ctx, session); err != nil {
		return err
	}
	if i.facts.Delay != session.Delay {
		if err := i.store.HoldsBack(ctx, i.o.Broker, i.o.VHost, i.o.Inbox, i.facts.Delay); err != nil {
			return err
		}
	}
	if p := i.inbox.Prefetch(); 0 < session.Prefetch && session.Prefetch <= p {
		i.earlier = p
	}
	if session.AtStake > 0 {
		i.inbox.Missing(session.AtStake)
		if err := i.store.AtStake(ctx, i.o.Broker, i.o.VHost, i.o.Inbox, 0); err != nil {
			return err
		}
	}
	reason := i.facts.Late
	if i.facts.Marker != deadletter.MarkerThere {
		reason = i.facts.Marker.String()
	}
	switch {
	case session.Marker == "":
		return i.createMarker(ctx, i.store.Calm)
	case i.facts.Marker == deadletter.MarkerThere && session.Restarted:
		return nil // the restart is already known, so the horizon does not move
	case reason != "":
		i.log.Warn(reason + "; redelivered letters are compared with stored ones")
		if err := i.createMarker(ctx, i.store.Restarted); err != nil {
			return err
		}
		i.session.Restarted = true
		return i.inbox.DeleteMarker(session.Marker) // the queue of the old marker may still exist without its message
	}
	return nil
}

// createMarker creates a marker in the broker and records it in the store. From then on, a missing
// marker shows that the broker was restarted.
func (i *Ingester) createMarker(
	ctx context.Context, remember func(ctx context.Context, broker, vhost, inbox, marker string) error,
) error {
	marker := deadletter.MarkerPrefix(i.o.Inbox) + string(deadletter.NewToken())
	if err := i.inbox.MakeMarker(marker); err != nil {
		return fmt.Errorf("marker: %w", err)
	}
	i.session.Marker = marker
	return remember(ctx, i.o.Broker, i.o.VHost, i.o.Inbox, marker)
}

// resume decides what happened to the window that the last session left open, and then stores the
// letters that arrived.
func (i *Ingester) resume(ctx context.Context) error {
	open, err := i.store.Look(ctx, i.o.Broker, i.o.VHost, i.o.Inbox)
	if err != nil || open == nil {
		return err
	}
	arrivals, whole, err := i.inbox.Resume(ctx, open.Fingerprints)
	if err != nil {
		return err
	}
	i.o.Crash("ingest: decided")
	i.log.Info("open window decided", "letters", len(open.Fingerprints), "came_back", whole)
	ctx = context.WithoutCancel(ctx)
	w := i.window(arrivals, 0)
	if whole {
		return i.finishWindow(ctx, w, func(ctx context.Context, w deadletter.Window) (deadletter.Receipt, error) {
			return i.store.RejoinWindow(ctx, *open, w)
		})
	}
	if err := i.settle(ctx, open.ID); err != nil {
		return err
	}
	if i.facts.Delay > 0 {
		return errors.New("the letters behind the open window go back to the queue, which holds them back for a time")
	}
	return i.finishWindow(ctx, w, i.receive)
}

// settle settles an open window that did not come back. From RabbitMQ 4.3 on, a quorum queue may
// hold its letters back for a time, by a policy that dlo does not see or that is gone by now.
func (i *Ingester) settle(ctx context.Context, window int64) error {
	if i.facts.EveryReturnCounted {
		return i.store.SettleInDoubt(ctx, window)
	}
	return i.store.SettleWindow(ctx, window)
}

// receive stores a window of new letters. Some of the letters may have reached their delivery
// limit, so that the broker would delete them if this session were lost. Before receive stores the
// window, it records how many there are. The next session can then say how many letters are
// missing.
func (i *Ingester) receive(ctx context.Context, w deadletter.Window) (deadletter.Receipt, error) {
	atStake := 0
	for n := range w.Arrivals {
		if i.facts.LastTime(&w.Arrivals[n]) {
			atStake++
		}
	}
	if atStake > 0 {
		if err := i.store.AtStake(ctx, w.Broker, w.VHost, w.Inbox, atStake); err != nil {
			i.log.Warn(
				"dlo could not record how many letters the broker would delete if this session were lost", "letters",
				atStake, "err", err,
			)
		}
		i.o.Crash("ingest: at stake")
	}
	return i.store.Receive(ctx, w)
}

// window returns a window with the first letters of the list "arrivals". The parameter "wanted" is
// the number of letters that the window may have. If it is 0, the window has all of them.
func (i *Ingester) window(arrivals []deadletter.Arrival, wanted int) deadletter.Window {
	more := wanted > 0 && len(arrivals) > wanted
	if more {
		arrivals = arrivals[:wanted]
	}
	i.fetched += len(arrivals)
	w := deadletter.Window{
		Session:            i.session.Number,
		Number:             i.number,
		Broker:             i.o.Broker,
		VHost:              i.o.VHost,
		Inbox:              i.o.Inbox,
		Origin:             i.o.Origin,
		Same:               i.o.Same,
		Arrivals:           arrivals,
		Prefetch:           max(i.inbox.Prefetch(), len(arrivals)),
		Restarted:          i.session.Restarted,
		RedeliveredLeaks:   i.facts.RedeliveredLeaks,
		EveryReturnCounted: i.facts.EveryReturnCounted,
		FirstReturnCounted: i.facts.FirstReturnCounted,
		Uncertain:          i.o.Uncertain,
		Horizon:            i.o.Horizon,
		HorizonRows:        i.o.HorizonRows,
		GivesBack:          i.givesBack(arrivals, more, len(arrivals) == wanted),
	}
	i.number++
	return w
}

// givesBack reports whether letters behind a window may come back with the flag redelivered,
// although none of them is in the window. It returns true in two cases.
//
// In the first case, more letters were fetched than the window has, so the others go back to the
// queue. In the second case, the last letter of the window has the flag. The letters behind it may
// then have the flag too, because returned letters come first. The second case counts if the drain
// ends with this window, because these letters then stay in the queue. It also counts if the broker
// flags only returned letters and the session has taken more letters than the earlier sessions had
// unacknowledged.
func (i *Ingester) givesBack(w []deadletter.Arrival, more, last bool) bool {
	flagged := len(w) > 0 && w[len(w)-1].Redelivered
	return more || flagged && (last || !i.facts.RedeliveredLeaks && i.fetched > i.earlier)
}

const (
	// letters in a window; a window of this size means that more letters wait in the broker
	large     = 100
	floodOver = 100 * time.Millisecond // time after the last large window during which Busy returns true
)

// Busy reports whether letters are waiting in the broker to be stored. While it returns true, work
// that can wait should not take processor time from the Ingester.
func (i *Ingester) Busy() bool {
	return i.o.Now().UnixMilli()-i.flood.Load() < floodOver.Milliseconds()
}

// finishWindow finishes a window: it commits, acknowledges, fences and settles the window.
func (i *Ingester) finishWindow(
	ctx context.Context, w deadletter.Window,
	commit func(context.Context, deadletter.Window) (deadletter.Receipt, error),
) error {
	settled := false
	if i.o.Metrics != nil {
		i.o.Metrics.begin(i)
		defer func() { i.o.Metrics.end(i, settled) }()
	}
	i.o.Crash("ingest: fetched")
	receipt, err := commit(ctx, w)
	if err != nil {
		return err
	}
	i.o.Crash("ingest: committed")
	i.o.Stored()
	if i.o.CameBack != nil && len(receipt.Returned) > 0 {
		i.o.CameBack(receipt.Returned)
	}
	if err := i.inbox.Ack(w.Arrivals); err != nil {
		return err
	}
	i.o.Crash("ingest: acked")
	if err := i.inbox.Fence(); err != nil {
		return err
	}
	i.o.Crash("ingest: fenced")
	if err := i.store.SettleWindow(ctx, receipt.Window); err != nil {
		return err
	}
	i.o.Crash("ingest: settled")
	if len(w.Arrivals) >= large {
		i.flood.Store(i.o.Now().UnixMilli())
	}
	settled = true
	if i.o.Metrics != nil {
		i.o.Metrics.countLetters(i.o.Broker, i.o.Inbox, receipt)
	}
	if receipt.Suspects > 0 {
		i.log.Warn("doubtful twins held", "letters", receipt.Suspects)
	}
	return nil
}

// calmAfter is how long an inbox must be empty after a broker restart before dlo trusts its acks
// again. Letters whose acks the restart undid are redelivered first. In the tests that killed a
// broker, no ack was undone if two seconds of quiet followed it (docs/reliability.md).
const calmAfter = 5 * time.Second

// After a broker restart, letters that were already acknowledged may come back for some time.
// watchAftermath is called during this time, which is the aftermath of the restart. It stores the
// next window of letters. If no letter arrives for as long as calmAfter, it ends the aftermath
// instead.
func (i *Ingester) watchAftermath(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, calmAfter)
	defer cancel()
	arrivals, err := i.inbox.Next(waiting)
	if err == nil {
		return i.finishWindow(context.WithoutCancel(ctx), i.window(arrivals, 0), i.receive)
	}
	if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if held, err := i.inbox.Held(); held || err != nil {
		return err
	}
	i.log.Info("the inbox is empty after the restart of the broker")
	i.session.Restarted = false
	return i.store.Calm(ctx, i.o.Broker, i.o.VHost, i.o.Inbox, i.session.Marker)
}
