// Package trial makes a test letter and sends it along the whole path of a letter. The letter goes
// into a queue of dlo, whose consumer rejects it once. The broker then leads it to dlo, and dlo
// sends it back to the same consumer like any other letter. This package only watches the letter.
// The packages that handle all letters also handle this one.
package trial

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
)

// Store is the part of the store that trials need.
type Store interface {
	TrialMark(messageID string) string
	Record(ctx context.Context, a deadletter.Act) error
	Letter(ctx context.Context, id deadletter.ID) (deadletter.Letter, error)
	Attempts(ctx context.Context, id deadletter.ID) ([]deadletter.Attempt, error) // attempts of a letter, oldest first
}

// Broker is a broker and vhost in the configuration.
type Broker struct {
	Name, VHost string
	Unable      string        // reason why a trial is impossible with this configuration; "" = a trial is possible
	Unready     func() string // returns the reason why a trial is impossible now; "" = a trial is possible
	// Try sends a message through the trial queue. It runs until ctx ends. When the consumer
	// rejects or accepts the message, Try calls the function "heard".
	Try func(ctx context.Context, m deadletter.TrialMessage, heard func(accepted bool)) error
}

// Trials runs trials, one at a time. It keeps its state only in memory.
type Trials struct {
	store   Store
	brokers []Broker
	log     *slog.Logger
	now     func() time.Time
	begin   chan int // position of the broker for the trial that was just started

	starting sync.Mutex // held while a trial is started, so that only one is started at a time

	mu      sync.Mutex
	current *deadletter.Trial // newest trial; nil = none
	message string            // message id of the newest trial
}

// New returns the trials of the given brokers. A trial makes progress only while the method Run is
// running. If the parameter "now" is nil, the trials use time.Now.
func New(store Store, brokers []Broker, now func() time.Time, log *slog.Logger) *Trials {
	if now == nil {
		now = time.Now
	}
	return &Trials{store: store, brokers: brokers, log: log, now: now, begin: make(chan int, 1)}
}

// Newest returns the newest trial since dlo was started. If no trial was started, it returns nil.
func (t *Trials) Newest() *deadletter.Trial {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil {
		return nil
	}
	newest := *t.current
	return &newest
}

// Unable returns the reason why a trial at a broker is impossible with this configuration. If a
// trial is possible, it returns "".
func (t *Trials) Unable(broker string) string {
	b, err := t.find(broker)
	if err != nil {
		return err.Error()
	}
	return t.brokers[b].Unable
}

func (t *Trials) find(broker string) (int, error) {
	if broker == "" && len(t.brokers) == 1 {
		return 0, nil
	}
	i := slices.IndexFunc(t.brokers, func(b Broker) bool { return b.Name == broker })
	if i < 0 {
		return 0, deadletter.NoSuch("broker %q in the configuration", deadletter.Visible(broker))
	}
	return i, nil
}

// Start starts a trial, which continues in the background. The audit records who started it. If a
// trial is impossible now, the error wraps ErrConflict. Other errors wrap ErrForbidden or
// ErrNotFound.
func (t *Trials) Start(ctx context.Context, by deadletter.Principal, broker string) (deadletter.Trial, error) {
	i, err := t.find(broker)
	if err != nil {
		return deadletter.Trial{}, err
	}
	b := &t.brokers[i]
	if err := deadletter.Allow(by, deadletter.VerbTry, deadletter.Origin{Broker: b.Name, VHost: b.VHost}); err != nil {
		return deadletter.Trial{}, err
	}
	why := b.Unable
	if why == "" {
		why = b.Unready()
	}
	if why != "" {
		return deadletter.Trial{}, fmt.Errorf("%w: %s", deadletter.ErrConflict, why)
	}
	t.starting.Lock()
	defer t.starting.Unlock()
	if newest := t.Newest(); newest != nil && newest.State == deadletter.TrialRunning {
		return deadletter.Trial{}, fmt.Errorf("%w: a trial is under way already", deadletter.ErrConflict)
	}
	detail := "a test letter goes through queue " + deadletter.TrialQueue
	if err := t.store.Record(ctx, deadletter.Once(deadletter.ActTrialStarted, by.Name, detail, deadletter.Target{
		Kind: deadletter.TargetBroker,
		Name: b.Name,
	})); err != nil {
		return deadletter.Trial{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current = &deadletter.Trial{
		Broker:    b.Name,
		VHost:     b.VHost,
		By:        by.Name,
		State:     deadletter.TrialRunning,
		StartedAt: t.now().UTC(),
	}
	t.message = "dlo-try-" + string(deadletter.NewToken())
	t.begin <- i // this never blocks, because no other trial is running
	return *t.current, nil
}

// Made reports whether dlo itself made a letter for a trial. dlo puts a mark into a header of such
// a letter. The mark depends on the message id and on this store, so that nobody else can make it.
func (t *Trials) Made(l *deadletter.Letter) bool {
	mark, ok := l.Arrived.Headers[deadletter.HeaderTrial].(string)
	return ok && l.Arrived.MessageID != "" && mark == t.store.TrialMark(l.Arrived.MessageID)
}

// Arrived records the arrival of a letter that dlo made for a trial. The caller calls it when the
// letter is stored and classified.
func (t *Trials) Arrived(l *deadletter.Letter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current != nil && t.message == l.Arrived.MessageID && t.current.Letter == "" {
		t.current.Letter, t.current.ArrivedAt, t.current.DecodedAt = l.ID, l.ReceivedAt, t.now().UTC()
	}
}

// Run runs the trials that are started, until ctx ends.
func (t *Trials) Run(ctx context.Context) error {
	for {
		select {
		case i := <-t.begin:
			t.run(ctx, &t.brokers[i])
		case <-ctx.Done():
			return nil
		}
	}
}

const (
	limit = 3 * time.Minute        // maximum duration of a trial, which normally takes about ten seconds
	look  = 200 * time.Millisecond // time between two checks of the letter
)

// run sends one letter along the whole path and watches it.
func (t *Trials) run(stopping context.Context, b *Broker) {
	ctx, cancel := context.WithTimeout(stopping, limit)
	through := make(chan error, 1)
	defer func() {
		cancel()
		<-through // when this returns, the trial queue has been deleted
	}()
	m, err := t.compose(b)
	if err != nil {
		through <- nil
		t.fail(err)
		return
	}
	go func() {
		through <- b.Try(ctx, m, func(accepted bool) { t.recordConsumed(m.Properties.MessageID, accepted) })
	}()
	for {
		select {
		case err := <-through: // this also happens when the time of the trial is up
			through <- nil
			if err == nil {
				err = t.timeoutError()
			}
			if stopping.Err() == nil {
				t.fail(err)
			}
			return
		case <-time.After(look):
		}
		over, err := t.follow(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			t.fail(err)
			return
		case over:
			t.change(func(c *deadletter.Trial) { c.State = deadletter.TrialDone })
			return
		}
	}
}

// compose returns the message that a trial sends.
func (t *Trials) compose(b *Broker) (deadletter.TrialMessage, error) {
	t.mu.Lock()
	at, by, id := t.current.StartedAt, t.current.By, t.message
	t.mu.Unlock()
	body, err := payload.Trial(
		"Hello from Dead Letter Office. The consumer of this queue rejects the message once, and accepts it the next time.",
		b.Name, by, at,
	)
	return deadletter.TrialMessage{Body: body, Properties: deadletter.Properties{
		MessageID:    id,
		AppID:        "dlo",
		ContentType:  payload.TrialContent,
		DeliveryMode: 2,
		Timestamp:    at.Truncate(time.Second),
		Headers:      deadletter.Table{deadletter.HeaderTrial: t.store.TrialMark(id)},
	}}, err
}

func (t *Trials) change(change func(c *deadletter.Trial)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(t.current)
}

// recordConsumed records that the consumer of a trial accepted or rejected the message. It may also
// be called after this trial has failed and another trial was started.
func (t *Trials) recordConsumed(message string, accepted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case message != t.message:
	case accepted:
		t.current.AcceptedAt = t.now().UTC()
	default:
		t.current.RejectedAt = t.now().UTC()
	}
}

// follow checks how far the letter of the trial has got. It reports whether the letter has
// completed the whole path. If the letter can no longer complete the path, the error says why.
func (t *Trials) follow(ctx context.Context) (over bool, err error) {
	id := t.Newest().Letter
	if id == "" {
		return false, nil
	}
	l, err := t.store.Letter(ctx, id)
	if err != nil {
		return false, err
	}
	attempts, err := t.store.Attempts(ctx, id)
	if err != nil {
		return false, err
	}
	t.change(func(c *deadletter.Trial) {
		c.Summary = l.Summary
		if len(attempts) > 0 && attempts[0].Outcome == deadletter.OutcomeConfirmed {
			c.RequeuedAt = attempts[0].ClosedAt
		}
		if l.State == deadletter.StateQuiet {
			c.QuietAt, over = l.ChangedAt, true
		}
	})
	switch l.State {
	case deadletter.StateDead, deadletter.StateHeld, deadletter.StateDiscarded, deadletter.StatePurged:
		return false, fmt.Errorf("its letter is %s: %s", l.State, l.Why)
	}
	return over, nil
}

// timeoutError returns the error for a trial whose time is up. It says which step did not happen.
func (t *Trials) timeoutError() error {
	c := t.Newest()
	switch {
	case c.RejectedAt.IsZero():
		return errors.New("its message was not delivered to its consumer in time")
	case c.ArrivedAt.IsZero():
		return errors.New(
			"its message was rejected, and did not arrive here in time: check whether the inbox is read, and whether the dead-letter exchange leads to it",
		)
	case c.RequeuedAt.IsZero():
		return errors.New("its letter was not sent back in time")
	}
	return errors.New("dlo could not see in time what became of its letter, which was sent back")
}

// fail ends a trial as failed and records the reason.
func (t *Trials) fail(err error) {
	t.log.Warn("the trial did not get all the way", "err", err)
	t.change(func(c *deadletter.Trial) {
		c.State, c.Problem = deadletter.TrialFailed, deadletter.Visible(err.Error())
		var refused *deadletter.TrialRefused
		if errors.As(err, &refused) {
			c.Cure = refused.Cure
		}
	})
}
