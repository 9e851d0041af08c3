package notify

import (
	"context"
	"errors"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	idle     = 5 * time.Second  // time between checks of the outbox without a wake
	batch    = 20               // deliveries fetched together; also the most lines in one message
	several  = 3                // more deliveries than this are combined, if the channel allows it
	longest  = 40 * time.Second // limit for one message, above every sender's own limit
	lastWord = 5 * time.Second  // time for a message in progress when dlo stops
)

// worker serves one channel. Only its own goroutine accesses it, except for wake.
type worker struct {
	n    *Notifier
	name string
	wake chan struct{}

	version    int // version of the settings to which the following fields belong
	pace       pace
	failures   int       // in a row
	rest       time.Time // not before
	apart      int       // deliveries to send separately, because they were rejected together
	unrecorded []deadletter.Delivered
}

func newWorker(n *Notifier, name string) *worker {
	return &worker{n: n, name: name, wake: make(chan struct{}, 1)}
}

// run sends the channel's deliveries until ctx ends or the channel no longer exists.
func (w *worker) run(ctx context.Context) {
	for ctx.Err() == nil {
		s, c, ok := w.current(ctx)
		if !ok {
			return
		}
		wait := w.step(ctx, s, c)
		if wait <= 0 {
			continue
		}
		select {
		case <-w.wake:
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
	w.n.mu.Lock()
	defer w.n.mu.Unlock()
	delete(w.n.workers, w.name)
}

// current returns the current settings. If the channel no longer exists, it removes the worker.
func (w *worker) current(ctx context.Context) (Settings, Channel, bool) {
	w.n.mu.Lock()
	defer w.n.mu.Unlock()
	c, ok := w.n.settings.Channels[w.name]
	if !ok && len(w.unrecorded) == 0 || ctx.Err() != nil {
		delete(w.n.workers, w.name)
		return Settings{}, Channel{}, false
	}
	if w.version != w.n.version {
		w.version, w.failures, w.rest = w.n.version, 0, time.Time{}
	}
	if c.Every <= 0 {
		c.Every = time.Second
	}
	if c.Burst <= 0 {
		c.Burst = 5
	}
	return w.n.settings, c, true
}

// step sends due deliveries, as far as pace and receiver allow. It returns the time to wait before
// the next step. 0 means that there may be more deliveries.
func (w *worker) step(ctx context.Context, s Settings, c Channel) time.Duration {
	if err := w.record(ctx); err != nil { // do not send what cannot be recorded: it would be sent over and over
		return idle
	}
	if c.Sender == nil {
		return idle
	}
	if left := w.rest.Sub(w.n.o.Now()); left > 0 && left <= maxLater {
		return left
	}
	due, err := w.n.store.Due(deadletter.Within(ctx, s.Scopes[w.name]), w.name, batch)
	if err != nil {
		if ctx.Err() == nil {
			w.n.o.Log.Error("read the outbox", "channel", w.name, "err", err)
		}
		return idle
	}
	due, postponed := w.awake(s.Quiet, due)
	if postponed > 0 && w.record(ctx) != nil {
		return idle
	}
	if len(due) == 0 && postponed == 0 {
		return idle
	}
	for _, p := range parcels(c.Together && w.apart == 0, due) {
		if ctx.Err() != nil {
			return 0
		}
		if wait := w.pace.wait(w.n.o.Now(), c.Every, c.Burst); wait > 0 {
			return wait
		}
		w.apart = max(0, w.apart-len(p))
		through := w.deliver(ctx, s.Office, c, p)
		if w.record(ctx) != nil {
			return idle
		}
		if !through {
			return max(w.rest.Sub(w.n.o.Now()), time.Millisecond)
		}
	}
	return 0
}

// awake removes deliveries that have to wait for the end of quiet hours. Pages, digests and
// machine events never wait.
func (w *worker) awake(q Quiet, due []deadletter.Delivery) (now []deadletter.Delivery, postponed int) {
	until := q.Until(w.n.o.Now())
	if until.IsZero() {
		return due, 0
	}
	for _, d := range due {
		if k := d.Notice.Kind; d.Notice.Severity == deadletter.SeverityPage || k == deadletter.NoticeDigest || k.ForMachines() {
			now = append(now, d)
			continue
		}
		w.unrecorded = append(w.unrecorded, deadletter.Delivered{ID: d.ID, RetryAt: until})
		postponed++
	}
	return now, postponed
}

// parcels splits deliveries into messages, in order. Digests are always sent on their own.
func parcels(together bool, due []deadletter.Delivery) [][]deadletter.Delivery {
	var joint []deadletter.Delivery
	var alone, each [][]deadletter.Delivery
	for i, d := range due {
		each = append(each, due[i:i+1])
		if d.Notice.Kind == deadletter.NoticeDigest {
			alone = append(alone, due[i:i+1])
		} else {
			joint = append(joint, d)
		}
	}
	if together && len(joint) > several {
		return append([][]deadletter.Delivery{joint}, alone...)
	}
	return each
}

// deliver sends one message and records the result. It returns false if the receiver should get no
// further messages for a while.
func (w *worker) deliver(ctx context.Context, o Office, c Channel, p []deadletter.Delivery) bool {
	m := Together(o, p)
	if len(p) == 1 {
		m = Compose(o, p[0])
	}
	err := w.send(ctx, c.Sender, m)
	var partly *PartlyError
	switch {
	case err == nil || errors.As(err, &partly):
		w.sent(p, err)
		return true
	case ctx.Err() != nil && !errors.Is(err, ErrPermanent): // interrupted because dlo is stopping: the outcome is unknown, so it stays due and is sent again
		return false
	case errors.Is(err, ErrPermanent) && len(p) > 1: // one of them may be to blame: send each on its own, so that the others still get through
		w.apart = len(p)
		return true
	}
	return w.failed(p, err)
}
