// Package requeue contains the only code that publishes letters. An automatic retry, a click and a
// bulk action all become scheduled letters. The dispatcher claims scheduled letters, which means
// that the store records that they are about to be sent. It then publishes them to the tail of
// their origin queue and records the outcomes. A letter becomes requeued only after the broker's
// confirm.
package requeue

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// Store contains the methods of the store that the dispatcher uses.
type Store interface {
	ClaimDue(ctx context.Context, broker string, now time.Time, n int, a deadletter.Allowance) ([]deadletter.Due, error)
	NextDue(ctx context.Context, now time.Time) (time.Time, error) // returns the zero time if no letter waits
	ClaimDoubtful(ctx context.Context, broker string, now time.Time, n int) ([]deadletter.Due, error)
	Mark(ctx context.Context, marks []deadletter.Mark, noted deadletter.Noted) error
	Watched(ctx context.Context, broker string, now time.Time) ([]deadletter.Origin, error)
	SettleQuiet(
		ctx context.Context, o deadletter.Origin, now time.Time, n int, facts deadletter.QueueFacts,
	) (int, error)
	EndWatch(
		ctx context.Context, o deadletter.Origin, now time.Time, n int, u deadletter.Unseen,
		channels func(rule string) []string,
	) (int, error)
	WatchOn(ctx context.Context, o deadletter.Origin, now, until time.Time) error
	Overdue(
		ctx context.Context, broker string, since time.Time, channels func(rule string) []string, n int,
	) (int, error)
	GiveUp(ctx context.Context, broker string, after time.Duration, n int) (int, error)
	Breakers(ctx context.Context, broker string) ([]deadletter.Breaker, error)
	SetBreaker(ctx context.Context, b deadletter.Breaker, notice *deadletter.Notice) error
	CloseBreaker(ctx context.Context, b deadletter.Breaker) error
	DrawNear(ctx context.Context, latest time.Time) (int, error)
	LastSeen(ctx context.Context) (time.Time, error)
	Waited(ctx context.Context, broker string, now time.Time, n int) ([]deadletter.Waited, error)
	RecordWaitEnds(ctx context.Context, list []deadletter.WaitEnd) error

	Progress() deadletter.Progress
	Note(p deadletter.Progress) error
	Remembered(ctx context.Context, broker, vhost string) (deadletter.Remembered, error)
	Restored(ctx context.Context, seen deadletter.Progress, whole bool) error
	BeginTurn(ctx context.Context) error
	Unproved(ctx context.Context, broker, vhost string, unproved bool) error
}

// Broker publishes messages to a RabbitMQ broker.
type Broker interface {
	Ready(ctx context.Context) error // waits until the broker is connected and accepts messages
	Publish(ctx context.Context, session int64, ps []deadletter.Publishing) []deadletter.Outcome
	Facts(ctx context.Context, queue string) deadletter.QueueFacts
	Takes(places ...deadletter.Wait) bool // reports whether letters can wait in these places now
	Status() deadletter.BrokerStatus

	Session() int64 // number of the connection that can publish; 0 = none
	// LockStore takes the lock of a store over the connection with the given number, and keeps it
	// until the connection ends. The error is a deadletter.StoreTwice if another dlo has the lock,
	// and wraps deadletter.ErrUnguarded if there can be none.
	LockStore(ctx context.Context, session int64, name string) error
	UnlockStore(session int64) // gives the lock back; this ends the connection
	// ReadMark returns the progress that the broker has recorded for a store, or nil if the broker
	// has no record. If the parameter "expected" is true, there should be a record, so ReadMark
	// looks for it several times.
	ReadMark(ctx context.Context, store string, expected bool) (*deadletter.Progress, error)
	// returns nil once the broker has confirmed the mark
	WriteMark(ctx context.Context, session int64, p deadletter.Progress) error
}

// InDoubt is what dlo does with a letter if the broker's reply was lost, so that nobody knows
// whether the letter arrived.
type InDoubt string

const (
	Republish InDoubt = "republish" // sends the letter again with the same token, so it arrives at least once
	Hold      InDoubt = "hold"      // never sends the letter twice automatically; a person decides
)

// Nack is the back-off of letters that their queue rejects. A rejection does not use up an attempt.
type Nack struct {
	First, Max  time.Duration
	NoticeAfter int // number of rejections of one letter in a row after which people get a notice
	// people get a notice after a queue has rejected every letter for this long; 0 = no notice
	NoticeAge time.Duration
}

// Options are the settings of a Dispatcher.
type Options struct {
	Broker   string // name of the broker
	VHost    string
	InFlight int
	// automatic retries per second in each queue, unless Rates or a rule says otherwise; 0 = no
	// limit
	Rate    float64
	Rates   []rules.Rate  // rates by queue; the first match applies
	Watch   time.Duration // watch window, unless a rule says otherwise
	InDoubt InDoubt       // treatment of letters in doubt, unless a rule says otherwise
	MaxBody int
	Nack    Nack
	Breaker Breaker
	Rules   *rules.Book
	Targets *rules.Targets
	Now     func() time.Time
	Log     *slog.Logger
	Crash   func(point string) // called at the named crash points; nil in production
	Metrics *Metrics
}

// Dispatcher publishes the due letters of one broker.
type Dispatcher struct {
	store  Store
	broker Broker
	o      Options
	wake   chan struct{}
	began  time.Time

	doubting atomic.Bool   // true while a worker processes letters in doubt
	sending  chan struct{} // holds a value for each batch that is sent

	mu     sync.Mutex // held during a claim, so that there is one claim at a time
	rates  map[lane]*bucket
	places places
	depth  depths

	breakers *breakers
	nacking  nacking
	proof    proof
	clock    clock  // used only by OnTime, which one goroutine calls
	sights   sights // used only by EndWatches, which one goroutine calls
}

// New returns a Dispatcher. Call Run to start it.
func New(store Store, broker Broker, o Options) *Dispatcher {
	if o.Crash == nil {
		o.Crash = func(string) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	d := &Dispatcher{
		store:    store,
		broker:   broker,
		o:        o,
		wake:     make(chan struct{}, workers),
		sending:  make(chan struct{}, min(batches, max(1, o.InFlight))),
		rates:    map[lane]*bucket{},
		depth:    depths{facts: broker.Facts, seen: map[string]depth{}},
		breakers: newBreakers(o.Breaker, o.Broker, o.VHost, o.Watch),
		nacking:  nacking{since: map[string]time.Time{}},
		sights:   sights{},
		proof:    proof{problems: map[deadletter.ProblemKind]deadletter.Problem{}},
		began:    o.Now(),
	}
	d.proof.lock.Store(&lock{})
	return d
}

// Wake makes the dispatcher look for due letters immediately.
func (d *Dispatcher) Wake() {
	for range workers {
		select {
		case d.wake <- struct{}{}:
		default:
		}
	}
}

const (
	// maximum number of letters in doubt in one batch; each is sent alone on a channel
	doubtful = 16
	// number of batches that are sent at a time; together they have at most InFlight letters that
	// were sent and have no recorded outcome
	batches = 2
	// so that a worker claims the next batch and records the progress of the store while each batch
	// is sent
	workers = 2 * batches
	tick    = 200 * time.Millisecond // longest time between two checks for due letters
	soonest = 25 * time.Millisecond  // shortest time between two checks for due letters
	trouble = time.Second            // pause after an error of the store
)

// Run publishes letters until ctx is done. It then waits for the letters that have no response
// yet.
func (d *Dispatcher) Run(ctx context.Context) error {
	for d.Guard(ctx) != nil { // no letter may leave before the states of the breakers are known
		select {
		case <-time.After(trouble):
		case <-ctx.Done():
			return nil
		}
	}
	var wg sync.WaitGroup
	for range min(workers, d.o.InFlight) {
		wg.Go(func() { d.work(ctx) })
	}
	for _, look := range []func(context.Context) error{d.OnTime, d.Guard, d.Overdue} {
		wg.Go(func() { d.everySecond(ctx, look) })
	}
	for _, look := range []func(context.Context) error{d.EndWatches, d.EndWaits} {
		wg.Go(func() {
			d.afterProof(ctx)
			d.everySecond(ctx, look)
		})
	}
	wg.Wait()
	return nil
}

func (d *Dispatcher) work(ctx context.Context) {
	for ctx.Err() == nil {
		if d.broker.Ready(ctx) != nil {
			return
		}
		n, err := d.Step(ctx)
		pause := trouble
		switch {
		case err == nil && n > 0:
			continue
		case err == nil:
			pause = d.restTime(ctx)
		case ctx.Err() == nil:
			d.o.Log.Error("sending letters failed; dlo tries again", "err", err)
		}
		select {
		case <-d.wake:
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// restTime returns how long a worker rests until it checks for due letters again. This is the time
// until the next letter is due. It is never shorter than the constant "soonest", and never longer
// than the constant "tick".
func (d *Dispatcher) restTime(ctx context.Context) time.Duration {
	now := d.o.Now()
	next, err := d.store.NextDue(ctx, now)
	if err != nil || next.IsZero() {
		return tick
	}
	return max(soonest, min(tick, next.Sub(now)))
}
