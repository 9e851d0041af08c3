package notify

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// recordSent records that a message was delivered to all receivers who can get it.
func (w *worker) recordSent(p []deadletter.Delivery, err error) {
	w.failures, w.rest = 0, time.Time{}
	detail := ""
	if err != nil {
		detail = err.Error()
	}
	for _, d := range p {
		w.unrecorded = append(w.unrecorded, deadletter.Delivered{ID: d.ID, Sent: true, With: d.With, Detail: detail})
		w.n.sent.WithLabelValues(w.name, outcomeSent).Inc()
	}
	if news := w.n.setProblem(w.name, detail); news && err != nil {
		w.n.o.Log.Warn("only some receivers of a channel were notified", "channel", w.name, "err", err)
	} else if news {
		w.n.o.Log.Info("notifications get through again", "channel", w.name)
	}
}

// recordFailed schedules the next attempt of each delivery, or ends the delivery. It reports
// whether the failure is permanent.
func (w *worker) recordFailed(p []deadletter.Delivery, err error) bool {
	now, jitter := w.n.o.Now(), w.n.o.Jitter()
	final := errors.Is(err, ErrPermanent)
	news := w.n.setProblem(w.name, err.Error())
	var later *LaterError
	var after time.Duration
	if errors.As(err, &later) {
		after = min(max(later.After, time.Second), maxLater)
	}
	if !final {
		w.failures++
		w.rest = now.Add(min(backoff(w.failures, jitter), maxRest))
		if after > 0 {
			w.rest = now.Add(after)
		}
	}
	for _, d := range p {
		r := deadletter.Delivered{ID: d.ID, Detail: err.Error()}
		r.Failed = final || d.Tries+1 >= fewest && now.Sub(d.Notice.At) >= patience
		if r.Failed && !final {
			r.Detail = fmt.Sprintf("given up after %d tries: %s", d.Tries+1, r.Detail)
		}
		outcome := outcomeFailed
		if r.Failed {
			w.n.o.Log.Error("a notification failed for good", "channel", w.name, "notice", d.Notice.ID, "err", err)
		} else {
			outcome, r.RetryAt = outcomeRetried, now.Add(max(backoff(d.Tries+1, jitter), after))
		}
		w.unrecorded = append(w.unrecorded, r)
		w.n.sent.WithLabelValues(w.name, outcome).Inc()
	}
	if news && !final {
		w.n.o.Log.Warn("a notification is tried again", "channel", w.name, "err", err)
	}
	return final
}

// send sends one message to its receiver. If dlo stops while the message is being sent, the message
// gets some more time to arrive. If the sender panics, the other notification channels continue.
func (w *worker) send(ctx context.Context, s Sender, m Message) (answer string, err error) {
	w.sending.Lock()
	defer w.sending.Unlock()
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(lastWord, cancel)
		context.AfterFunc(own, func() { t.Stop() })
	})
	defer stop()
	defer func() {
		// the value of the panic is not logged, because it may contain an address or a body
		if r := recover(); r != nil {
			w.n.o.Log.Error(
				"a channel panicked", "channel", w.name, "panic", fmt.Sprintf("%T", r), "stack", string(debug.Stack()),
			)
			err = errors.New("a fault in dlo kept the message from being sent; see the log")
		}
	}()
	return s.Send(own, m)
}

// record writes the results of attempts to the store, even while dlo stops. If a message was sent
// but its result is not recorded, the message is sent again.
func (w *worker) record(ctx context.Context) error {
	if len(w.unrecorded) == 0 {
		return nil
	}
	w.n.o.Crash("notify: sent")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWord)
	defer cancel()
	if err := w.n.store.Delivered(ctx, w.unrecorded); err != nil {
		w.n.o.Log.Error("record what was sent", "channel", w.name, "err", err)
		return err
	}
	w.unrecorded = nil
	return nil
}
