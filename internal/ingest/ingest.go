// Package ingest stores incoming letters, and stores each letter in exactly one row. A window is
// stored in one commit and acknowledged in one ack. A second commit settles the window. The package
// decodes nothing. docs/reliability.md describes the protocol and its proof.
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

// Store is the part of the store that ingest needs.
type Store interface {
	BeginSession(ctx context.Context, broker, vhost, inbox string) (deadletter.InboxSession, error)
	Restarted(ctx context.Context, broker, vhost, inbox, marker string) error
	Calm(ctx context.Context, broker, vhost, inbox, marker string) error
	Look(ctx context.Context, broker, vhost, inbox string) (*deadletter.OpenWindow, error) // records the look before the session gets a letter
	Receive(ctx context.Context, w deadletter.Window) (deadletter.Receipt, error)
	RejoinWindow(ctx context.Context, open deadletter.OpenWindow, w deadletter.Window) (deadletter.Receipt, error)
	AtStake(ctx context.Context, broker, vhost, inbox string, letters int) error // valid until Receive
	SettleWindow(ctx context.Context, window int64) error
	Ping(ctx context.Context) error // writes a row; nil means that the store works
}

// Inbox is a dead-letter queue. It delivers windows of unacknowledged letters. While a window is
// open, it delivers nothing more. Any error ends its session; Open begins another session.
type Inbox interface {
	Open(ctx context.Context, marker string, prefetch int) (deadletter.SessionFacts, error)
	Prefetch() int // maximum number of unacknowledged letters, in the newest window or the next
	Next(ctx context.Context) ([]deadletter.Arrival, error)
	Resume(ctx context.Context, open []deadletter.Fingerprint) (w []deadletter.Arrival, whole bool, err error)
	Ack(w []deadletter.Arrival) error
	Fence() error
	MakeMarker(marker string) error
	DeleteMarker(marker string) error
	Missing(letters int) // reports letters that the broker deleted before they were stored
	Held() (bool, error) // whether the broker may still give back letters of an earlier session; called while this session holds no letters
	Close()
}

// Options are the settings of an Ingester.
type Options struct {
	Broker, VHost, Inbox string
	Origin               string   // origin of letters whose headers do not name one; "" = unknown
	Same                 []string // other names of this broker and vhost in the configuration
	Uncertain            deadletter.Uncertain
	Horizon              time.Duration
	HorizonRows          int
	Room                 func() error // why no letter may be stored now (the disk is nearly full); nil = there is room
	Stored               func()       // called after each commit; wakes the classifier
	CameBack             func(letters []deadletter.ID)
	Crash                func(point string) // called at the named points; nil in production
	Now                  func() time.Time
	Log                  *slog.Logger
	Metrics              *Metrics
}

// Ingester drains one inbox.
type Ingester struct {
	store Store
	inbox Inbox
	o     Options
	log   *slog.Logger

	flood atomic.Int64 // when the last large window was stored, Unix milliseconds

	say func(text string) // called with the reason why letters cannot be stored

	session deadletter.InboxSession
	facts   deadletter.SessionFacts
	number  int64 // number of the session's next window
	fetched int   // letters fetched in the session
	earlier int   // letters that earlier sessions may have given back; 0 = none, or unknown
}

// New returns an Ingester. Its Run drains the inbox.
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
	return &Ingester{store: store, inbox: inbox, o: o, log: o.Log.With("broker", o.Broker, "inbox", o.Inbox), say: func(string) {}}
}

// Run drains until ctx ends. It then finishes the open window (commit, ack, fence, settle) and
// returns.
func (i *Ingester) Run(ctx context.Context) error {
	defer i.inbox.Close()
	for ctx.Err() == nil && i.storeBack(ctx) == nil {
		if err := i.drain(ctx); ctx.Err() == nil {
			i.log.Warn("session ended", "err", err)
		}
	}
	return nil
}

// probe is the interval between checks of a failed store.
const probe = time.Second

// storeBack waits until the store works and has room. Until then nothing is fetched, and the
// letters stay in the broker.
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

// drain runs one session. It first decides what happens to the window that the last session left
// open. After that, it takes one window after another.
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
			if err := i.calm(ctx); err != nil {
				return err
			}
			continue
		}
		arrivals, err := i.inbox.Next(ctx)
		if err != nil {
			return err
		}
		// A fetched window is finished even if the program is stopping, because until the ack its
		// letters belong to the broker.
		if err := i.keep(context.WithoutCancel(ctx), i.window(arrivals, 0), i.receive); err != nil {
			return err
		}
	}
}

// begin opens a session and checks whether the broker was restarted since the last one.
func (i *Ingester) begin(ctx context.Context) error {
	session, err := i.store.BeginSession(ctx, i.o.Broker, i.o.VHost, i.o.Inbox)
	if err != nil {
		return err
	}
	i.session, i.number, i.fetched, i.earlier = session, 1, 0, 0
	if i.facts, err = i.inbox.Open(ctx, session.Marker, session.Prefetch); err != nil {
		return err
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
		return i.mark(ctx, i.store.Calm)
	case i.facts.Marker == deadletter.MarkerThere && session.Restarted:
		return nil // the restart is already known: the horizon does not move
	case reason != "":
		i.log.Warn(reason + "; redelivered letters are compared with stored ones")
		if err := i.mark(ctx, i.store.Restarted); err != nil {
			return err
		}
		i.session.Restarted = true
		return i.inbox.DeleteMarker(session.Marker) // the queue of the old marker may still exist without its message
	}
	return nil
}

// mark creates a marker and records it. From then on, the loss of the marker indicates a restart.
func (i *Ingester) mark(ctx context.Context, remember func(ctx context.Context, broker, vhost, inbox, marker string) error) error {
	marker := deadletter.MarkerPrefix(i.o.Inbox) + string(deadletter.NewToken())
	if err := i.inbox.MakeMarker(marker); err != nil {
		return fmt.Errorf("marker: %w", err)
	}
	i.session.Marker = marker
	return remember(ctx, i.o.Broker, i.o.VHost, i.o.Inbox, marker)
}

// resume decides what happened to the window that the last session left open.
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
		return i.keep(ctx, w, func(ctx context.Context, w deadletter.Window) (deadletter.Receipt, error) {
			return i.store.RejoinWindow(ctx, *open, w)
		})
	}
	if err := i.store.SettleWindow(ctx, open.ID); err != nil {
		return err
	}
	return i.keep(ctx, w, i.receive)
}

// receive stores a window of new letters. It first counts the letters that the broker deletes if
// this session is lost. The next session then knows how many letters are missing.
func (i *Ingester) receive(ctx context.Context, w deadletter.Window) (deadletter.Receipt, error) {
	atStake := 0
	for n := range w.Arrivals {
		if i.facts.LastTime(&w.Arrivals[n]) {
			atStake++
		}
	}
	if atStake > 0 {
		if err := i.store.AtStake(ctx, w.Broker, w.VHost, w.Inbox, atStake); err != nil {
			i.log.Warn("dlo could not record how many letters the broker would delete if this session were lost", "letters", atStake, "err", err)
		}
		i.o.Crash("ingest: at stake")
	}
	return i.store.Receive(ctx, w)
}

// window creates a window from the first letters of arrivals. The parameter wanted is their number;
// 0 = all letters.
func (i *Ingester) window(arrivals []deadletter.Arrival, wanted int) deadletter.Window {
	more := wanted > 0 && len(arrivals) > wanted
	if more {
		arrivals = arrivals[:wanted]
	}
	i.fetched += len(arrivals)
	w := deadletter.Window{
		Session: i.session.Number, Number: i.number, Broker: i.o.Broker, VHost: i.o.VHost, Inbox: i.o.Inbox, Origin: i.o.Origin, Same: i.o.Same, Arrivals: arrivals, Prefetch: max(i.inbox.Prefetch(), len(arrivals)),
		Restarted: i.session.Restarted, RedeliveredLeaks: i.facts.RedeliveredLeaks, EveryReturnCounted: i.facts.EveryReturnCounted, FirstReturnCounted: i.facts.FirstReturnCounted,
		Uncertain: i.o.Uncertain, Horizon: i.o.Horizon, HorizonRows: i.o.HorizonRows, GivesBack: i.givesBack(arrivals, more, len(arrivals) == wanted),
	}
	i.number++
	return w
}

// givesBack reports whether letters behind a window may come back flagged as redelivered, although
// none of them is in the window. There are two cases. If more letters were fetched than the window
// has, the others go back to the queue. If the last letter of the window was flagged, the letters
// behind it may be flagged too, because returned letters come first. In the second case, these
// letters stay in the queue if the drain ends with this window. Otherwise, and in an inbox, they
// matter only on brokers that flag nothing but returned letters, once the session has taken more
// letters than the earlier sessions had unacknowledged.
func (i *Ingester) givesBack(w []deadletter.Arrival, more, last bool) bool {
	flagged := len(w) > 0 && w[len(w)-1].Redelivered
	return more || flagged && (last || !i.facts.RedeliveredLeaks && i.fetched > i.earlier)
}

const (
	large     = 100                    // letters; a window of this size means that more letters wait in the broker
	floodOver = 100 * time.Millisecond // time after the last large window
)

// Busy reports whether letters wait in the broker to be stored. Work that can be done later should
// leave the processor to ingest during that time.
func (i *Ingester) Busy() bool {
	return i.o.Now().UnixMilli()-i.flood.Load() < floodOver.Milliseconds()
}

// keep commits a window, acknowledges it, fences it and settles it.
func (i *Ingester) keep(ctx context.Context, w deadletter.Window, commit func(context.Context, deadletter.Window) (deadletter.Receipt, error)) error {
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
		i.o.Metrics.took(i.o.Broker, i.o.Inbox, receipt)
	}
	if receipt.Suspects > 0 {
		i.log.Warn("doubtful twins held", "letters", receipt.Suspects)
	}
	return nil
}

// calmAfter is how long an inbox must be empty after a broker restart before its acks are trusted
// again. Letters whose acks were undone are redelivered first. After two seconds of quiet, a kill
// undid no ack (docs/reliability.md).
const calmAfter = 5 * time.Second

// calm takes one more window in the aftermath of a restart. If the inbox is empty, it ends the
// aftermath.
func (i *Ingester) calm(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, calmAfter)
	defer cancel()
	arrivals, err := i.inbox.Next(waiting)
	if err == nil {
		return i.keep(context.WithoutCancel(ctx), i.window(arrivals, 0), i.receive)
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
