// Package trial sends a letter of dlo's own the whole way: out of a queue of its own, whose
// consumer rejects it once, through the broker into dlo, and back to that consumer by the one
// publishing path. It watches the letter, and takes no part in what becomes of it: that is done by
// the rooms that do it for all letters.
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

// Store is what a trial needs of the store.
type Store interface {
	TrialMark(messageID string) string
	Record(ctx context.Context, a deadletter.Act) error
	Letter(ctx context.Context, id deadletter.ID) (deadletter.Letter, error)
	Attempts(ctx context.Context, id deadletter.ID) ([]deadletter.Attempt, error) // oldest first
}

// Broker is a broker and vhost of the configuration.
type Broker struct {
	Name, VHost string
	Unable      string        // why there can be no trial with this configuration; "" = there can
	Unready     func() string // why there can be none now; "" = there can
	// Try sends a message through the queue of trials until ctx ends, and tells of its consumer.
	Try func(ctx context.Context, m deadletter.TrialMessage, heard func(accepted bool)) error
}

// Trials runs trials, one at a time. What it knows of them is lost with the process.
type Trials struct {
	store   Store
	brokers []Broker
	log     *slog.Logger
	now     func() time.Time
	begin   chan int // the broker of the trial that was started

	starting sync.Mutex // one is begun at a time

	mu      sync.Mutex
	current *deadletter.Trial // the newest; nil = none
	message string            // its message id
}

// New returns the trials of brokers; Run has to run for any to go on. now is time.Now when nil.
func New(store Store, brokers []Broker, now func() time.Time, log *slog.Logger) *Trials {
	if now == nil {
		now = time.Now
	}
	return &Trials{store: store, brokers: brokers, log: log, now: now, begin: make(chan int, 1)}
}

// Newest returns the trial that was started last since dlo was; nil = none was.
func (t *Trials) Newest() *deadletter.Trial {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil {
		return nil
	}
	newest := *t.current
	return &newest
}

// Unable says why there can be no trial at a broker with this configuration; "" = there can.
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

// Start begins a trial, which goes on without the caller; the audit has who began it. The error
// wraps ErrForbidden, ErrNotFound, or ErrConflict where none can be now.
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
	t.begin <- i // its place is free, as no trial runs
	return *t.current, nil
}

// Made says whether dlo made a letter for a trial: its message id bears the mark of this store.
func (t *Trials) Made(l *deadletter.Letter) bool {
	mark, ok := l.Arrived.Headers[deadletter.HeaderTrial].(string)
	return ok && l.Arrived.MessageID != "" && mark == t.store.TrialMark(l.Arrived.MessageID)
}

// Arrived is told of a letter that dlo made for a trial, once it is stored and read.
func (t *Trials) Arrived(l *deadletter.Letter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current != nil && t.message == l.Arrived.MessageID && t.current.Letter == "" {
		t.current.Letter, t.current.ArrivedAt, t.current.DecodedAt = l.ID, l.ReceivedAt, t.now().UTC()
	}
}

// Run goes on with what was started until ctx ends.
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
	limit = 3 * time.Minute        // of a trial; one takes about ten seconds
	look  = 200 * time.Millisecond // between two looks at its letter
)

// run sends one letter the whole way.
func (t *Trials) run(stopping context.Context, b *Broker) {
	ctx, cancel := context.WithTimeout(stopping, limit)
	through := make(chan error, 1)
	defer func() {
		cancel()
		<-through // its queue is gone then
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
		case err := <-through: // also at the end of its time
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

// compose makes the message of the trial.
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

// heard is told what the consumer of a trial does with its message, also after the trial was given
// up and another one begun.
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

// follow looks how far the letter is, and says whether it has gone the whole way; an error is why
// it will not.
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

// late says what a trial was waiting for when its time was over.
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

// fail ends a trial that does not go the whole way.
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
