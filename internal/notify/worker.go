package notify

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	idle  = 5 * time.Second // time after which the outbox is read again if nothing wakes the worker
	batch = 20              // maximum number of deliveries that are read together, and of lines in one message
	// if more deliveries than this are due, they become one message, if the channel permits this
	several  = 3
	longest  = 40 * time.Second // maximum duration of one message; longer than the limit of every sender
	lastWord = 5 * time.Second  // additional time for a message that is being sent when dlo stops
)

// worker sends the deliveries of one channel. Only its own goroutine uses its fields, except for
// the fields "wake" and "sending".
type worker struct {
	n    *Notifier
	name string
	wake chan struct{}

	sending sync.Mutex // held while a message is sent, also by a test of the channel

	version    int // version of the settings for which the following fields are valid
	pace       pace
	failures   int       // number of failures in a row
	rest       time.Time // time until which the channel rests
	apart      int       // number of deliveries that must be sent separately, because they were rejected as one message
	unrecorded []deadletter.Delivered
}

func newWorker(n *Notifier, name string) *worker {
	return &worker{n: n, name: name, wake: make(chan struct{}, 1)}
}

// run sends the deliveries of the channel until ctx ends or the channel no longer exists.
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

// current returns the present settings and the channel. If the channel no longer exists, it removes
// the worker and returns false.
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

// step sends due deliveries, as many as the rate and the receiver permit. It returns the time until
// the next step; 0 = more deliveries may be due.
func (w *worker) step(ctx context.Context, s Settings, c Channel) time.Duration {
	// nothing is sent while results cannot be recorded, because it would be sent again and again
	if err := w.record(ctx); err != nil {
		return idle
	}
	if c.Sender == nil {
		return idle
	}
	if w.n.o.Silent() {
		return time.Second
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
	due, postponed := w.withoutQuiet(s.Quiet, due)
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

// withoutQuiet leaves out the deliveries that must wait for the end of quiet hours. Notices with
// the severity "page", digests and notices for machines never wait.
func (w *worker) withoutQuiet(q Quiet, due []deadletter.Delivery) (sendable []deadletter.Delivery, postponed int) {
	until := q.Until(w.n.o.Now())
	if until.IsZero() {
		return due, 0
	}
	for _, d := range due {
		if k := d.Notice.Kind; d.Notice.Severity == deadletter.SeverityPage || k == deadletter.NoticeDigest ||
			k.ForMachines() {
			sendable = append(sendable, d)
			continue
		}
		w.unrecorded = append(w.unrecorded, deadletter.Delivered{ID: d.ID, RetryAt: until})
		postponed++
	}
	return sendable, postponed
}

// parcels divides deliveries among messages, and keeps their order. If "together" is true and there
// are many deliveries, one message contains all of them except digests. Each digest is a message of
// its own.
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

// deliver sends one message and records the result. It returns false if the receiver of the channel
// needs a pause before the next message.
func (w *worker) deliver(ctx context.Context, o Office, c Channel, p []deadletter.Delivery) bool {
	m := Together(o, p)
	if len(p) == 1 {
		m = Compose(o, p[0])
	}
	_, err := w.send(ctx, c.Sender, m)
	var partly *PartlyError
	switch {
	case err == nil || errors.As(err, &partly):
		w.recordSent(p, err)
		return true
	case ctx.Err() != nil && !errors.Is(err, ErrPermanent):
		// dlo is stopping, so the outcome is unknown; the delivery stays due and is sent again
		return false
	case errors.Is(err, ErrPermanent) && len(p) > 1:
		// one of the deliveries may be the cause, so each is sent separately and the others still
		// arrive
		w.apart = len(p)
		return true
	}
	return w.recordFailed(p, err)
}
