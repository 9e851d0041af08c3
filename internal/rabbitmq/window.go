package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// adaptPrefetch sets the prefetch of the next window. It halves the prefetch if the last window
// took at least a quarter of the byte limit. Otherwise, it doubles the prefetch if that window was
// full.
func (i *Inbox) adaptPrefetch(letters int) {
	switch {
	case i.taken >= i.limits.Bytes/4:
		i.prefetch = max(1, i.prefetch/2)
	case letters >= i.prefetch:
		i.prefetch = min(2*i.prefetch, i.limits.Letters)
	}
}

// fetch describes which letters form a window.
type fetch struct {
	// maximum number of letters, without those that arrive while the consumer is cancelled
	letters int
	// called after each letter; if it returns true, the window closes early
	full    func(w []deadletter.Arrival, bytes int) bool
	linger  time.Duration // how long to wait for more letters
	sliding bool          // linger is counted from the last letter, not from the first
}

// window takes one window of letters from the inbox. It starts a consumer, and cancels this
// consumer when the window is full. The window contains all letters that arrive before the broker
// confirms the cancel. Because of the cancel, the broker may have put some letters back into the
// queue. The window fetches these letters and contains them too. If no letter arrives for as long
// as f.silence says, the window is empty.
func (i *Inbox) window(ctx context.Context, f fetch) ([]deadletter.Arrival, error) {
	fail := func(err error) ([]deadletter.Arrival, error) {
		if isCode(err, amqp.AccessRefused) && strings.Contains(err.Error(), "exclusive use") {
			err = fmt.Errorf("another consumer has it for itself (exclusive); stop that one: %w", err)
		}
		i.failure = errorText(err)
		i.away = i.away || isAway(err)
		return nil, fmt.Errorf("inbox %s: %w", i.queue, err)
	}
	select {
	case why := <-i.changed:
		return fail(errors.New(why))
	default:
	}
	i.heldUntil = time.Time{}
	var w []deadletter.Arrival
	i.taken = 0
	take := func(d *amqp.Delivery) error {
		// The ack of a window acknowledges every tag up to the last one, so the window must contain the
		// letters of all these tags.
		if i.tag++; d.DeliveryTag != i.tag {
			return fmt.Errorf("delivery %d came where %d was due", d.DeliveryTag, i.tag)
		}
		a, size, err := i.arrival(d)
		if err != nil {
			return fmt.Errorf("delivery %d: %w", d.DeliveryTag, err)
		}
		w = append(w, a)
		i.taken += size
		return nil
	}
	wait := silence
	if i.once {
		wait = onceQuiet
	}
	if i.facts.delay > 0 && !f.sliding {
		f.letters = min(f.letters, wholeGets)
		if err := i.pull(ctx, f, wait, &w, take); err != nil {
			return fail(err)
		}
		i.checkDeliveriesLeft(w)
		return w, nil
	}
	if i.regain {
		f.linger, f.full = max(f.linger, time.Second), func([]deadletter.Arrival, int) bool { return false }
	}
	if err := i.setPrefetch(f.letters); err != nil {
		return fail(err)
	}
	i.consumes++
	tag := fmt.Sprintf("dlo-%d", i.consumes)
	deliveries, err := i.ch.Consume(i.queue, tag, false, false, false, false, nil)
	if err != nil {
		return fail(err)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	proven := i.probation.proofTimer()
	for open := true; open && len(w) < f.letters; {
		select {
		case d, ok := <-deliveries:
			if !ok {
				return fail(i.endReason())
			}
			if err := take(&d); err != nil {
				return fail(err)
			}
			if len(w) == 1 || f.sliding {
				timer.Reset(f.linger)
			}
			open = !f.full(w, i.taken)
		case <-timer.C:
			open = false
		case <-proven:
			i.recordReading()
		case why := <-i.changed: // letters that were taken so far go back
			return fail(errors.New(why))
		case <-i.canceled:
			i.away = i.facts.kind != "quorum"
			return fail(errors.New("the broker cancelled the consumer"))
		case <-ctx.Done():
			open = false
		}
	}
	if err := i.ch.Cancel(tag, false); err != nil {
		return fail(err)
	}
	for d := range deliveries { // the loop ends when the broker confirms the cancel (cancel-ok)
		if err := take(&d); err != nil {
			return fail(err)
		}
	}
	select { // if the session ended, it has also closed the deliveries and may have lost some
	case err := <-i.closed:
		return fail(closeError(err))
	default:
	}
	if len(w) > 0 {
		if err := i.fetchRequeued(len(w), f.letters, take); err != nil {
			return fail(err)
		}
	}
	i.regain = i.regain && len(w) >= f.letters
	i.checkDeliveriesLeft(w)
	return w, nil
}

// fetchRequeued fetches the letters that the broker requeued when it cancelled a consumer with free
// capacity. A quorum queue has assigned these letters to the consumer, but the AMQP client library
// never sees them. They are on their way during the cancel, return to the front of the queue, and
// are flagged redelivered (cancel_test.go). If they stayed in the queue, they would be ahead of a
// window that comes back. If the window was acknowledged, they could be mistaken for it.
//
// The broker processes a get only after the requeued letters are back in the queue. If a get
// returns no letter, or a letter that is delivered for the first time, none of the requeued letters
// is left. However, 4.0 and later may also flag the first delivery of a letter that went from one
// quorum queue into another. A get may then return flagged letters for a long time, so
// fetchRequeued ends after 5 s (sweepMost).
//
// If a quorum queue has more of these letters than their ack is whole for, fetchRequeued returns an
// error. The session then ends, and all letters go back. The next session takes as many letters
// with one consumer, and leaves it no free capacity.
func (i *Inbox) fetchRequeued(have, room int, take func(d *amqp.Delivery) error) error {
	most := have + wholeGets - 1 // the letters of the consumer are one command too
	for began := time.Now(); have < room && !i.locked && time.Since(began) < sweepMost; have++ {
		d, ok, err := i.ch.Get(i.queue, false)
		if isCode(err, amqp.ResourceLocked) {
			i.locked = true // a quorum queue with a single active consumer refuses a get (405)
		}
		if err != nil || !ok {
			return err
		}
		if have == most && i.facts.kind != "classic" {
			i.regain = true
			return errors.New(
				"the broker took back more letters than one ack is whole for; they are taken again together",
			)
		}
		if err := take(&d); err != nil || !d.Redelivered {
			return err
		}
	}
	return nil
}

// wholeGets is the number of letters of a quorum queue up to which their ack is whole if dlo takes
// them with basic.get. The broker sends its queue a command for each of them, 33 at once and the
// others later. If the connection ends in between, the others come back: 167 of 200 letters, in 5
// to 8 of 20 cuts of a connection (3.10.8, 4.0.5, 4.3.6; acks_of_gets_test.go). All letters of one
// consumer are one command.
const wholeGets = 32

// sweepMost is the maximum time for fetching letters that the broker has put back into the queue
// because of a cancel. 5 seconds are enough for a window of 256 letters if each get takes 20 ms.
// With a maximum of 250 ms, some requeued letters were still in the queue ahead of the window in 12
// of 144 windows (4.3.6 on a loaded machine).
const sweepMost = 5 * time.Second

// Ack acknowledges a window. The broker may process the acknowledgement later. Fence waits until
// the broker has processed it.
func (i *Inbox) Ack(w []deadletter.Arrival) error {
	if err := i.ch.Ack(w[len(w)-1].Tag, true); err != nil {
		return fmt.Errorf("ack %d letters of %s: %w", len(w), i.queue, err)
	}
	return nil
}

// Fence waits until the broker has processed the last acknowledgement. For this, it sends a request
// on the channel on which Ack has sent the acknowledgement, and waits for the reply. When Fence
// returns nil, no letter of the acknowledged window can come back while the broker is running.
func (i *Inbox) Fence() error {
	i.applied = 0
	if err := i.setPrefetch(i.prefetch); err != nil {
		return fmt.Errorf("fence after the ack of %s: %w", i.queue, err)
	}
	i.fruitless.failures, i.scarce, i.away = 0, false, false
	if i.probation.on {
		i.recordReading()
	}
	i.probation.began = time.Time{} // the session has proved itself
	return nil
}

// setPrefetch sets the prefetch of the next consumer, and waits for the broker's reply. It does
// nothing if that prefetch is already set.
func (i *Inbox) setPrefetch(n int) error {
	if i.applied == n {
		return nil
	}
	if err := i.ch.Qos(n, 0, false); err != nil {
		return err
	}
	i.applied = n
	return nil
}

func (i *Inbox) endReason() error {
	select {
	case err := <-i.closed:
		return closeError(err)
	case <-time.After(time.Second):
		return errors.New("the consumer ended")
	}
}
