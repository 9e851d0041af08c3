// Package trial sends a letter made by dlo the whole way: from a queue of its own, whose consumer
// rejects it once, through the broker into dlo, and back to that consumer on the only publishing
// path. The package only watches the letter. The rooms that handle all letters handle this one,
// too.
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
	Attempts(ctx context.Context, id deadletter.ID) ([]deadletter.Attempt, error) // oldest first
}

// Broker is a broker and vhost in the configuration.
type Broker struct {
	Name, VHost string
	Unable      string        // why there can be no trial with this configuration; "" = there can
	Unready     func() string // why there can be none now; "" = there can
	// Try sends a message through the trial queue until ctx ends. It calls heard when the consumer
	// rejects or accepts the message.
	Try func(ctx context.Context, m deadletter.TrialMessage, heard func(accepted bool)) error
}

// Trials runs trials, one at a time. It keeps its state in memory only.
type Trials struct {
	store   Store
	brokers []Broker
	log     *slog.Logger
	now     func() time.Time
	begin   chan int // the broker of the started trial

	starting sync.Mutex // one trial is started at a time

	mu      sync.Mutex
	current *deadletter.Trial // the newest; nil = none
	message string            // the newest trial's message id
}

// New returns the trials of the given brokers. A trial makes progress only while Run is running. If
// now is nil, New uses time.Now.
func New(store Store, brokers []Broker, now func() time.Time, log *slog.Logger) *Trials {
	if now == nil {
		now = time.Now
	}
	return &Trials{store: store, brokers: brokers, log: log, now: now, begin: make(chan int, 1)}
}

// Newest returns the trial that was started last since dlo started, or nil if no trial was started.
func (t *Trials) Newest() *deadletter.Trial {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil {
		return nil
	}
	newest := *t.current
	return &newest
}

// Unable explains why this configuration allows no trial at a broker, or returns "" if it does.
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

// Start starts a trial, which continues in the background. The audit records who started it. The
// error wraps ErrForbidden, ErrNotFound, or ErrConflict if no trial is possible now.
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
	if err := t.store.Record(ctx, deadletter.Once(deadletter.ActTrialStarted, by.Name, detail, deadletter.Target{Kind: deadletter.TargetBroker, Name: b.Name})); err != nil {
		return deadletter.Trial{}, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current = &deadletter.Trial{Broker: b.Name, VHost: b.VHost, By: by.Name, State: deadletter.TrialRunning, StartedAt: t.now().UTC()}
	t.message = "dlo-try-" + string(deadletter.NewToken())
	t.begin <- i // never blocks, because no trial is running
	return *t.current, nil
}

// Made reports whether dlo made a letter for a trial. The header of such a letter contains this
// store's mark for its message id.
func (t *Trials) Made(l *deadletter.Letter) bool {
	mark, ok := l.Arrived.Headers[deadletter.HeaderTrial].(string)
	return ok && l.Arrived.MessageID != "" && mark == t.store.TrialMark(l.Arrived.MessageID)
}

// Arrived is called for a letter that dlo made for a trial, once it is stored and classified.
func (t *Trials) Arrived(l *deadletter.Letter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current != nil && t.message == l.Arrived.MessageID && t.current.Letter == "" {
		t.current.Letter, t.current.ArrivedAt, t.current.DecodedAt = l.ID, l.ReceivedAt, t.now().UTC()
	}
}

// Run runs the started trials until ctx ends.
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
	limit = 3 * time.Minute        // limit of a trial; it normally takes about ten seconds
	look  = 200 * time.Millisecond // interval between looks at its letter
)

// run sends one letter the whole way and watches it.
func (t *Trials) run(stopping context.Context, b *Broker) {
	ctx, cancel := context.WithTimeout(stopping, limit)
	through := make(chan error, 1)
	defer func() {
		cancel()
		<-through // after this, its queue is deleted
	}()
	m, err := t.compose(b)
	if err != nil {
		through <- nil
		t.fail(err)
		return
	}
	go func() {
		through <- b.Try(ctx, m, func(accepted bool) { t.heard(m.Properties.MessageID, accepted) })
	}()
	for {
		select {
		case err := <-through: // also when its time is up
			through <- nil
			if err == nil {
				err = t.late()
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

// compose returns the message of the trial.
func (t *Trials) compose(b *Broker) (deadletter.TrialMessage, error) {
	t.mu.Lock()
	at, by, id := t.current.StartedAt, t.current.By, t.message
	t.mu.Unlock()
	body, err := payload.Trial("Hello from Dead Letter Office. The consumer of this queue rejects the message once, and accepts it the next time.", b.Name, by, at)
	return deadletter.TrialMessage{Body: body, Properties: deadletter.Properties{
		MessageID: id, AppID: "dlo", ContentType: payload.TrialContent, DeliveryMode: 2, Timestamp: at.Truncate(time.Second), Headers: deadletter.Table{deadletter.HeaderTrial: t.store.TrialMark(id)},
	}}, err
}

func (t *Trials) change(change func(c *deadletter.Trial)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(t.current)
}

// heard records whether the consumer of a trial accepted or rejected its message. It may be called
// after the trial failed and another one started.
func (t *Trials) heard(message string, accepted bool) {
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

// follow checks the progress of the letter, and reports whether the letter has gone the whole way.
// If it cannot go the whole way, err explains why.
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
		if l.State == deadletter.StateSettled {
			c.SettledAt, over = l.ChangedAt, true
		}
	})
	switch l.State {
	case deadletter.StateDead, deadletter.StateHeld, deadletter.StateDiscarded, deadletter.StatePurged:
		return false, fmt.Errorf("its letter is %s: %s", l.State, l.Why)
	}
	return over, nil
}

// late returns an error for a trial whose time is up. The error says which step has not happened.
func (t *Trials) late() error {
	c := t.Newest()
	switch {
	case c.RejectedAt.IsZero():
		return errors.New("its message was not delivered to its consumer in time")
	case c.ArrivedAt.IsZero():
		return errors.New("its message was rejected, and did not arrive here in time: check whether the inbox is read, and whether the dead-letter exchange leads to it")
	case c.RequeuedAt.IsZero():
		return errors.New("its letter was not sent back in time")
	}
	return errors.New("dlo could not see in time what became of its letter, which was sent back")
}

// fail ends a trial that does not succeed.
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
