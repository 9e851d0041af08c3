// Package requeue is the only publishing path. An automatic retry, a click and a bulk action all
// become scheduled letters. The dispatcher claims these letters, publishes them to the tail of
// their origin queue and marks them. It commits the intent before it sends anything. A letter is
// requeued only after the broker's confirm.
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

// Store is the part of the store that the dispatcher uses.
type Store interface {
	ClaimDue(ctx context.Context, broker string, now time.Time, n int, a deadletter.Allowance) ([]deadletter.Due, error)
	NextDue(ctx context.Context, now time.Time) (time.Time, error) // zero = nothing waits
	ClaimDoubtful(ctx context.Context, broker string, now time.Time, n int) ([]deadletter.Due, error)
	Mark(ctx context.Context, marks []deadletter.Mark, noted deadletter.Noted) error
	Watched(ctx context.Context, broker string, now time.Time) ([]deadletter.Origin, error)
	SettleQuiet(ctx context.Context, o deadletter.Origin, now time.Time, n int, facts deadletter.QueueFacts) (int, error)
	EndWatch(ctx context.Context, o deadletter.Origin, now time.Time, n int, u deadletter.Unseen, channels func(rule string) []string) (int, error)
	WatchOn(ctx context.Context, o deadletter.Origin, now, until time.Time) error
	Overdue(ctx context.Context, broker string, since time.Time, channels func(rule string) []string, n int) (int, error)
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
	Restored(ctx context.Context, seen deadletter.Progress) error
	Unproved(ctx context.Context, broker, vhost string, unproved bool) error
}

// Broker publishes messages to a RabbitMQ broker.
type Broker interface {
	Ready(ctx context.Context) error // waits until the broker is connected and accepts messages
	Publish(ctx context.Context, ps []deadletter.Publishing) []deadletter.Outcome
	Facts(ctx context.Context, queue string) deadletter.QueueFacts
	Takes(places ...deadletter.Wait) bool // reports whether letters can wait in these places now
	Status() deadletter.BrokerStatus

	Session() int64 // number of the connection that Publish uses; 0 = none
	// ReadMark returns nil if there is no mark. If a mark is expected, it looks more than once.
	ReadMark(ctx context.Context, store string, expected bool) (*deadletter.Progress, error)
	WriteMark(ctx context.Context, session int64, p deadletter.Progress) error // returns nil once the broker has confirmed the mark
}

// InDoubt is the treatment of a letter whose reply was lost.
type InDoubt string

const (
	Republish InDoubt = "republish" // sent again with the same token, so at least once
	Hold      InDoubt = "hold"      // never sent twice automatically; a person decides
)

// Nack is the back-off of letters that their queue rejects. A rejection does not use up an attempt.
type Nack struct {
	First, Max  time.Duration
	NoticeAfter int           // number of rejections of one letter in a row after which a notice is sent
	NoticeAge   time.Duration // how long a queue may reject every letter before a notice is sent; 0 = no notice
}

// Options are the settings of a Dispatcher.
type Options struct {
	Broker   string // name
	VHost    string
	InFlight int
	Rate     float64       // automatic retries per second and queue, unless Rates or a rule says otherwise; 0 = no limit
	Rates    []rules.Rate  // by queue; the first match applies
	Watch    time.Duration // watch window, unless a rule says otherwise
	InDoubt  InDoubt       // treatment, unless a rule says otherwise
	MaxBody  int
	Nack     Nack
	Breaker  Breaker
	Rules    *rules.Book
	Targets  *rules.Targets
	Now      func() time.Time
	Log      *slog.Logger
	Crash    func(point string) // called at the named points; nil in production
	Metrics  *Metrics
}

// Dispatcher publishes the due letters of one broker.
type Dispatcher struct {
	store  Store
	broker Broker
	o      Options
	wake   chan struct{}

	doubting atomic.Bool // a worker is processing doubtful letters

	mu     sync.Mutex // one claim at a time
	rates  map[lane]*bucket
	places places
	depth  depths

	breakers *breakers
	nacking  nacking
	proof    proof
	clock    clock  // used by OnTime, which one goroutine calls
	sights   sights // used by EndWatches, which one goroutine calls
}

// New returns a Dispatcher. Call Run to start it.
func New(store Store, broker Broker, o Options) *Dispatcher {
	if o.Crash == nil {
		o.Crash = func(string) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Dispatcher{
		store: store, broker: broker, o: o, wake: make(chan struct{}, workers), rates: map[lane]*bucket{}, depth: depths{facts: broker.Facts, seen: map[string]depth{}},
		breakers: newBreakers(o.Breaker, o.Broker, o.VHost, o.Watch), nacking: nacking{since: map[string]time.Time{}}, sights: sights{}, proof: proof{problems: map[deadletter.ProblemKind]deadletter.Problem{}},
	}
}

// Wake makes the dispatcher look for letters that are due.
func (d *Dispatcher) Wake() {
	for range workers {
		select {
		case d.wake <- struct{}{}:
		default:
		}
	}
}

const (
	doubtful = 16                     // doubtful letters that are sent together, each alone on a channel
	workers  = 2                      // one worker commits while the other waits for confirms; together they have at most InFlight letters unconfirmed
	tick     = 200 * time.Millisecond // time between two checks for due letters
	soonest  = 25 * time.Millisecond  // time until the next check, if something is known to be due sooner
	trouble  = time.Second            // pause after a store error
)

// Run publishes until ctx ends, and then waits for the letters in flight.
func (d *Dispatcher) Run(ctx context.Context) error {
	for d.Guard(ctx) != nil { // no letter leaves before it is known which queues are held back
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
		wg.Go(func() { d.watch(ctx, look) })
	}
	for _, look := range []func(context.Context) error{d.EndWatches, d.EndWaits} {
		wg.Go(func() {
			d.afterProof(ctx)
			d.watch(ctx, look)
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
			pause = d.rest(ctx)
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

// rest returns the time until the dispatcher checks for due letters again. This is the time until
// the next letter is due, but at least soonest and at most tick.
func (d *Dispatcher) rest(ctx context.Context) time.Duration {
	now := d.o.Now()
	next, err := d.store.NextDue(ctx, now)
	if err != nil || next.IsZero() {
		return tick
	}
	return max(soonest, min(tick, next.Sub(now)))
}
