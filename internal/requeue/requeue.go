// Package requeue is the one publishing path: an automatic retry, a click and a bulk action all end as scheduled letters that its dispatcher claims, publishes to the tail of
// their origin queue and marks. Intent is committed before the wire is touched, and a letter is requeued only after the broker's confirm.
package requeue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/prometheus/client_golang/prometheus"
)

// Store is what the dispatcher needs of the store.
type Store interface {
	ClaimDue(ctx context.Context, broker string, now time.Time, n int, lease time.Duration, a deadletter.Allowance) ([]deadletter.Due, error)
	NextDue(ctx context.Context, now time.Time) (time.Time, error) // zero = nothing waits
	ClaimDoubtful(ctx context.Context, broker string, now time.Time, n int, lease time.Duration) ([]deadletter.Due, error)
	Mark(ctx context.Context, marks []deadletter.Mark) error
	Watched(ctx context.Context, broker string, now time.Time) ([]deadletter.Origin, error)
	SettleQuiet(ctx context.Context, o deadletter.Origin, now time.Time, n int, facts deadletter.QueueFacts) (int, error)
	WatchOn(ctx context.Context, o deadletter.Origin, now, until time.Time) error
	Breakers(ctx context.Context, broker string) ([]deadletter.Breaker, error)
	SetBreaker(ctx context.Context, b deadletter.Breaker, notice *deadletter.Notice) error
	CloseBreaker(ctx context.Context, o deadletter.Origin, why string) error
	DrawNear(ctx context.Context, latest time.Time) (int, error)
	LastSeen(ctx context.Context) (time.Time, error)
	Waited(ctx context.Context, broker string, now time.Time, n int) ([]deadletter.Waited, error)
	Land(ctx context.Context, list []deadletter.Landed) error
}

// Broker publishes.
type Broker interface {
	Ready(ctx context.Context) error // waits until the broker is connected and takes messages
	Publish(ctx context.Context, ps []deadletter.Publishing) []deadletter.Outcome
	Facts(ctx context.Context, queue string) deadletter.QueueFacts
	Takes(places ...deadletter.Wait) bool // letters can wait there now
	Status() deadletter.BrokerStatus
}

// InDoubt says what becomes of a letter whose answer was lost.
type InDoubt string

const (
	Republish InDoubt = "republish" // with the same token: at least once
	Hold      InDoubt = "hold"      // never automatically twice: a person decides
)

// Nack is the back-off of letters that their queue refuses; the attempt is not used.
type Nack struct {
	First, Max  time.Duration
	NoticeAfter int           // refusals of one letter in a row: a notice
	NoticeAge   time.Duration // a queue refuses for so long without taking one letter: a notice; 0 = none
}

// Options are the settings of a Dispatcher.
type Options struct {
	Broker   string // name
	VHost    string
	InFlight int
	Rate     float64       // automatic retries per queue and second, where neither Rates nor a rule says otherwise; 0 = no limit
	Rates    []rules.Rate  // by queue, the first that fits
	Watch    time.Duration // where no rule says otherwise
	InDoubt  InDoubt       // where no rule says otherwise
	Lease    time.Duration
	MaxBody  int
	Nack     Nack
	Breaker  Breaker
	Rules    *rules.Book
	Targets  *rules.Targets
	Now      func() time.Time
	Log      *slog.Logger
	Crash    func(point string) // called at the named points; nil in the product
	Metrics  *Metrics
}

// Metrics counts attempts.
type Metrics struct {
	attempts *prometheus.CounterVec
	lag      prometheus.Gauge
	queues   deadletter.Labels
}

// NewMetrics registers the collectors of requeue.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dlo_attempts_total", Help: "Publishes back to RabbitMQ by outcome: confirmed, returned, nacked, refused, unknown."}, []string{"queue", "outcome"}),
		lag:      prometheus.NewGauge(prometheus.GaugeOpts{Name: "dlo_schedule_lag_seconds", Help: "How long after it was due the newest automatic retry was claimed."}),
	}
	r.MustRegister(m.attempts, m.lag)
	return m
}

// Dispatcher publishes the due letters of one broker.
type Dispatcher struct {
	store  Store
	broker Broker
	o      Options
	wake   chan struct{}

	doubting atomic.Bool // a worker has doubtful letters in hand

	mu     sync.Mutex // one claim at a time
	rates  map[lane]*bucket
	places places
	depth  depths

	breakers *breakers
	nacking  nacking
	clock    clock // of OnTime, which one goroutine calls
}

// New returns a Dispatcher; Run works.
func New(store Store, broker Broker, o Options) *Dispatcher {
	if o.Crash == nil {
		o.Crash = func(string) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Dispatcher{
		store: store, broker: broker, o: o, wake: make(chan struct{}, workers), rates: map[lane]*bucket{}, depth: depths{facts: broker.Facts, seen: map[string]depth{}},
		breakers: newBreakers(o.Breaker, o.Broker, o.VHost, o.Watch), nacking: nacking{since: map[string]time.Time{}},
	}
}

// Wake says that letters may be due.
func (d *Dispatcher) Wake() {
	for range workers {
		select {
		case d.wake <- struct{}{}:
		default:
		}
	}
}

const (
	doubtful = 16                     // letters in doubt that are sent at a time, each alone on a channel
	workers  = 2                      // one commits while the other waits for confirms; together they have at most InFlight letters unconfirmed
	tick     = 200 * time.Millisecond // between two looks for what is due
	soonest  = 25 * time.Millisecond  // where it is known that something will be due sooner
	trouble  = time.Second            // pause after an error of the store
)

// Run publishes until ctx ends, and waits for what is in flight.
func (d *Dispatcher) Run(ctx context.Context) error {
	for d.Guard(ctx) != nil { // nothing leaves before it is known which queues are not to be sent to
		select {
		case <-time.After(trouble):
		case <-ctx.Done():
			return nil
		}
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() { d.work(ctx) })
	}
	for _, look := range []func(context.Context) error{d.OnTime, d.Guard, d.Settle, d.Land} {
		wg.Go(func() { d.watch(ctx, look) })
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
			d.o.Log.Error("requeue", "err", err)
		}
		select {
		case <-d.wake:
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// rest is how long nothing will be due.
func (d *Dispatcher) rest(ctx context.Context) time.Duration {
	now := d.o.Now()
	next, err := d.store.NextDue(ctx, now)
	if err != nil || next.IsZero() {
		return tick
	}
	return max(soonest, min(tick, next.Sub(now)))
}

// Step claims one batch, publishes it and marks it; it returns how many letters it had. What was claimed is finished also when ctx ends meanwhile.
func (d *Dispatcher) Step(ctx context.Context) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	claimed, done, err := d.claim(context.WithoutCancel(ctx))
	defer done()
	if err != nil || len(claimed) == 0 {
		return 0, err
	}
	d.o.Crash("requeue: claimed")
	marks := make([]deadletter.Mark, 0, len(claimed))
	var ps []deadletter.Publishing
	sent := map[deadletter.Token]*deadletter.Due{}
	under := map[deadletter.Token]*deadletter.Publishing{}
	changes := map[deadletter.Token]string{}
	for i := range claimed {
		due := &claimed[i]
		p, changed, err := d.prepare(due)
		switch {
		case due.Attempt.Outcome == deadletter.OutcomeInDoubt && d.inDoubt(due) == Hold:
			marks = append(marks, deadletter.Mark{
				Letter: due.Letter.ID, Token: due.Attempt.Token, Outcome: deadletter.OutcomeInDoubt,
				Detail: "in doubt: it was sent, or was about to be, when the answer was lost; requeue it only if it may arrive twice",
			})
		case err != nil:
			d.breakers.void(due.Letter.ID)
			marks = append(marks, deadletter.Mark{Letter: due.Letter.ID, Token: due.Attempt.Token, Outcome: deadletter.OutcomeRefused, Detail: err.Error()})
		default:
			ps = append(ps, p)
			sent[p.Token], under[p.Token], changes[p.Token] = due, &p, changed
		}
	}
	if len(ps) > 0 {
		d.o.Crash("requeue: publishing")
		for _, o := range d.broker.Publish(ctx, ps) {
			m := d.mark(sent[o.Token], under[o.Token], o)
			if m.Outcome == deadletter.OutcomeConfirmed {
				m.Detail = changes[o.Token]
			}
			marks = append(marks, m)
		}
		d.o.Crash("requeue: confirmed")
	}
	if err := d.record(ctx, marks); err != nil {
		return 0, err
	}
	d.o.Crash("requeue: marked")
	if d.o.Metrics != nil {
		for _, m := range marks {
			outcome := strings.ReplaceAll(string(m.Outcome), "in doubt", "unknown")
			queue := ""
			if due := sent[m.Token]; due != nil {
				queue = due.Letter.Origin.Queue
			}
			d.o.Metrics.attempts.WithLabelValues(d.o.Metrics.queues.Of(queue), outcome).Inc()
		}
	}
	return len(claimed), nil
}

// record commits marks, however long the store takes to have room: what is known of a published letter must not be forgotten. Until then nothing more is claimed.
func (d *Dispatcher) record(ctx context.Context, marks []deadletter.Mark) error {
	for {
		err := d.store.Mark(context.WithoutCancel(ctx), marks)
		if err == nil || ctx.Err() != nil {
			return err // what stays unrecorded at the end of the process is in doubt at its next start
		}
		d.o.Log.Error("outcomes are not recorded yet", "letters", len(marks), "err", err)
		select {
		case <-time.After(trouble):
		case <-ctx.Done():
		}
	}
}

// unsentAgain is when a letter that did not leave is due again; without a connection nothing is claimed anyway.
const unsentAgain = time.Second

// claim takes doubtful letters first, a few at a time and by one worker only, so that those that never get an answer leave the other to the rest. done gives the place back.
func (d *Dispatcher) claim(ctx context.Context) (claimed []deadletter.Due, done func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, n, done := d.o.Now(), max(1, d.o.InFlight/workers), func() {}
	if d.doubting.CompareAndSwap(false, true) {
		done = func() { d.doubting.Store(false) }
		if claimed, err := d.store.ClaimDoubtful(ctx, d.o.Broker, now, min(n, doubtful), d.o.Lease); err != nil || len(claimed) > 0 {
			return claimed, done, err
		}
		done()
		done = func() {}
	}
	set := d.o.Rules.Set()
	own := set.Paced()
	claimed, err = d.store.ClaimDue(ctx, d.o.Broker, now, n, d.o.Lease, deadletter.Allowance{Rules: own, Waiters: d.taking(set), Allow: func(o deadletter.Origin, rule string) (int, bool) { return d.allow(o.Queue, rule, now) }})
	for _, due := range claimed {
		if due.Attempt.Operation != 0 {
			continue
		}
		rule := ""
		if slices.Contains(own, due.Letter.Rule) {
			rule = due.Letter.Rule
		}
		d.spend(lane{due.Letter.Origin.Queue, rule})
		if due.Waiter != "" {
			d.breakers.sent(due.Letter.Origin.Queue, due.Letter.ID, false, now, due.Letter.DueAt)
			continue
		}
		d.breakers.sent(due.Letter.Origin.Queue, due.Letter.ID, due.Attempt.Probe, now, now)
		if d.o.Metrics != nil {
			d.o.Metrics.lag.Set(now.Sub(due.Letter.DueAt).Seconds())
		}
	}
	return claimed, done, err
}

// prepare makes the message for an attempt; the error says why it cannot be published. changed says what was left out.
func (d *Dispatcher) prepare(due *deadletter.Due) (p deadletter.Publishing, changed string, err error) {
	l := &due.Letter
	if err := d.o.Targets.Allow(deadletter.Origin{Broker: l.Origin.Broker, VHost: l.Origin.VHost, Queue: due.Attempt.Queue}); err != nil {
		return p, "", fmt.Errorf("no target: %w", err)
	}
	if len(l.Body) > d.o.MaxBody {
		return p, "", fmt.Errorf("unpublishable: the body has %d bytes, more than requeue.max_body %d", len(l.Body), d.o.MaxBody)
	}
	properties, changes := deadletter.Sanitise(l.Properties)
	properties.Headers[deadletter.HeaderID] = string(l.ID)
	properties.Headers[deadletter.HeaderToken] = string(due.Attempt.Token)
	properties.Headers[deadletter.HeaderAttempt] = int64(due.Attempt.Number)
	if d.o.Rules.Set().Of(l.Rule).MirrorXDeath {
		properties.Headers["x-death"] = mirrored(due)
	}
	if err := deadletter.Publishable(properties); err != nil {
		return p, "", fmt.Errorf("unpublishable: %w", err)
	}
	var out []string
	for _, c := range changes {
		if c.Notable() {
			out = append(out, c.Field)
		}
	}
	if len(out) > 0 {
		changed = "left out: " + strings.Join(out, ", ")
	}
	// What is in doubt goes alone, so that it can put no other in doubt.
	p = deadletter.Publishing{Token: due.Attempt.Token, Queue: due.Attempt.Queue, Properties: properties, Body: l.Body, Alone: due.Attempt.Outcome == deadletter.OutcomeInDoubt}
	d.divert(&p, due)
	return p, changed, nil
}

// mark turns an outcome into what is recorded.
func (d *Dispatcher) mark(due *deadletter.Due, p *deadletter.Publishing, o deadletter.Outcome) deadletter.Mark {
	m := deadletter.Mark{Letter: due.Letter.ID, Token: o.Token, Outcome: o.Kind, Detail: o.Detail}
	now := d.o.Now()
	if o.Kind != deadletter.OutcomeConfirmed && o.Kind != deadletter.OutcomeInDoubt {
		d.breakers.void(due.Letter.ID)
	}
	switch {
	case due.Attempt.Outcome == deadletter.OutcomeInDoubt && (o.Kind == deadletter.OutcomeUnsent || o.Kind == deadletter.OutcomeNacked || p.Wait != nil && o.Kind != deadletter.OutcomeConfirmed):
		// This copy did not get there, and nobody knows of the one before it: whatever goes next has its token.
		m.Outcome, m.Resend, m.DueAt = deadletter.OutcomeInDoubt, true, now.Add(d.o.Nack.delay(due.Attempt.Sends-1))
		if o.Kind == deadletter.OutcomeUnsent {
			m.DueAt = now.Add(unsentAgain)
		}
		return m
	case p.Wait == nil || o.Kind == deadletter.OutcomeInDoubt:
	case o.Kind == deadletter.OutcomeConfirmed:
		m.WaitsIn, m.DueAt = p.Wait.Queue, now.Add(p.WaitFor)
		return m
	default:
		m.Stays, m.DueAt = true, due.Letter.DueAt
		if o.Kind == deadletter.OutcomeReturned {
			m.Detail = fmt.Sprintf("wait queue %s is not there (%s)", p.Wait.Queue, o.Detail)
		}
		return m
	}
	switch o.Kind {
	case deadletter.OutcomeConfirmed:
		m.DueAt = now.Add(d.watching(due.Letter.Rule))
		d.nacking.over(due.Attempt.Queue)
		m.Depth = d.depth.of(due.Attempt.Queue, now)
	case deadletter.OutcomeReturned:
		m.Detail = fmt.Sprintf("no target: queue %s does not exist (%s)", deadletter.Visible(due.Attempt.Queue), o.Detail)
	case deadletter.OutcomeNacked:
		m.DueAt = now.Add(d.o.Nack.delay(due.Letter.Nacks))
		queue := deadletter.Visible(due.Attempt.Queue)
		since := d.nacking.seen(due.Attempt.Queue, now)
		switch {
		case d.o.Nack.NoticeAge > 0 && now.Sub(since) >= d.o.Nack.NoticeAge:
			m.Notice = &deadletter.Notice{
				Kind: "nacks", Key: fmt.Sprintf("nacking %s %s", d.o.Broker, queue), Severity: deadletter.SeverityNotify,
				Text: fmt.Sprintf("queue %s has refused every letter since %s; it is full, or its overflow says so", queue, since.UTC().Format(time.RFC3339)),
			}
		case due.Letter.Nacks+1 == d.o.Nack.NoticeAfter:
			m.Notice = &deadletter.Notice{
				Kind: "nacks", Key: fmt.Sprintf("nacks %s %s", d.o.Broker, queue), Severity: deadletter.SeverityNotify, Letter: due.Letter.ID,
				Text: fmt.Sprintf("queue %s has refused letter %s %d times; it is full, or its overflow says so", queue, due.Letter.ID.Short(), d.o.Nack.NoticeAfter),
			}
		}
	case deadletter.OutcomeInDoubt:
		if m.Resend = d.inDoubt(due) == Republish; m.Resend {
			m.DueAt = now.Add(d.o.Nack.delay(due.Attempt.Sends - 1)) // a queue that never answers is asked ever more seldom
		} else {
			m.Detail = "in doubt: " + o.Detail + "; requeue it only if it may arrive twice"
		}
	case deadletter.OutcomeUnsent:
		m.DueAt = now.Add(unsentAgain)
	}
	return m
}

// watching is how long the rule of a letter, or else the configuration, has it watched.
func (d *Dispatcher) watching(rule string) time.Duration {
	return cmp.Or(d.o.Rules.Set().Of(rule).Watch, d.o.Watch)
}

// inDoubt is what the rule of a letter, or else the configuration, says of lost answers.
func (d *Dispatcher) inDoubt(due *deadletter.Due) InDoubt {
	return cmp.Or(InDoubt(d.o.Rules.Set().Of(due.Letter.Rule).InDoubt), d.o.InDoubt)
}

func (n Nack) delay(before int) time.Duration {
	d := n.First
	for range min(before, 30) {
		if d *= 2; d >= n.Max {
			return n.Max
		}
	}
	return min(d, n.Max)
}

// watch looks after something, again and again: the letters that were requeued, the breakers, the clock. None waits for another.
func (d *Dispatcher) watch(ctx context.Context, look func(context.Context) error) {
	for {
		if err := look(ctx); err != nil && !errors.Is(err, context.Canceled) {
			d.o.Log.Error("watch", "err", err)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return
		}
	}
}

// CameBack tells the breakers of letters that came back.
func (d *Dispatcher) CameBack(ids []deadletter.ID) { d.breakers.back(ids, d.o.Now()) }

// Guard records what the breakers have come to, and takes over what a person decided about them.
func (d *Dispatcher) Guard(ctx context.Context) error {
	changes := d.breakers.tick(d.o.Now(), d.highest)
	for i, c := range changes {
		var err error
		if c.breaker.State == "" {
			err = d.store.CloseBreaker(ctx, c.breaker.Origin, c.breaker.Why)
		} else {
			err = d.store.SetBreaker(ctx, c.breaker, c.notice)
		}
		if err != nil {
			d.breakers.again(changes[i:])
			return err
		}
		d.o.Log.Info("breaker", "queue", c.breaker.Origin.Queue, "state", cmp.Or(string(c.breaker.State), "closed"), "why", c.breaker.Why)
	}
	recorded, err := d.store.Breakers(ctx, d.o.Broker)
	if err != nil {
		return err
	}
	if d.o.Breaker.CameBack <= 0 {
		for _, b := range recorded {
			if err := d.store.CloseBreaker(ctx, b.Origin, "the configuration has no breaker any more"); err != nil {
				return err
			}
		}
		return nil
	}
	d.breakers.adopt(recorded)
	return nil
}

const (
	settleChunk = 1000
	watchMore   = 30 * time.Second // how long letters stay watched whose queue is known not to be drained
)

// Settle settles the requeued letters whose watch window is over, unless their queue is known to have no consumers or to be deeper than when they were sent.
func (d *Dispatcher) Settle(ctx context.Context) error {
	now := d.o.Now()
	origins, err := d.store.Watched(ctx, d.o.Broker, now)
	if err != nil {
		return err
	}
	for _, o := range origins {
		facts := d.broker.Facts(ctx, o.Queue)
		for facts.Consumers != 0 {
			n, err := d.store.SettleQuiet(ctx, o, now, settleChunk, facts)
			if err != nil {
				return err
			}
			if n < settleChunk {
				break
			}
		}
		if err := d.store.WatchOn(ctx, o, now, now.Add(watchMore)); err != nil {
			return err
		}
	}
	return nil
}
