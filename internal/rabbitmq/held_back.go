package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// A quorum queue with delayed retry (RabbitMQ 4.3) holds back for a time what a lost connection or
// a cancelled consumer gives back. The letters behind come first, which the window rule does not
// allow for. dlo therefore keeps to two rules on such an inbox. A session begins to take letters
// when the broker holds nothing back: returned letters then stand in front of all others. And it
// takes new windows with basic.get, so that no letter goes back because of a cancel while a window
// is open. To find an open window again, it consumes: if the window came back whole, the consumer
// has no room left for others. If not, the session ends, and its letters go back before the next
// one.

// awaitHeldBack waits until the broker holds back no letter of an earlier session. The parameter
// "longest" is the longest time that it may do so, counted from the end of that session, which is
// before this session got its turn. The statistics of the queue can shorten the wait.
func (i *Inbox) awaitHeldBack(ctx context.Context, longest time.Duration) error {
	began := time.Now()
	if i.heldUntil.IsZero() {
		i.heldUntil = began.Add(longest)
	}
	for said := false; ; said = true {
		left := time.Until(i.heldUntil)
		delayed, told := i.delayedLetters(ctx)
		switch {
		case told && delayed == 0 && (longest == 0 || time.Since(began) > lag):
			// the figure may be as old as the time before the session ended
			return nil
		case left <= 0 && delayed == 0:
			return nil
		case left <= 0:
			i.heldUntil = time.Now().Add(time.Second)
		}
		if !said {
			select {
			case i.link.lookNow <- struct{}{}: // it reports the setting as a problem
			default:
			}
			i.say(fmt.Sprintf("the delayed retry of the queue holds letters back, so dlo waits until %s before it takes any; otherwise it could not tell which letters it has stored", i.heldUntil.UTC().Format("15:04:05 MST")))
		}
		select {
		case err := <-i.closed:
			return closeError(err)
		case <-time.After(min(time.Second, max(0, left))):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// delayedLetters returns how many letters the broker holds back, if it says so.
func (i *Inbox) delayedLetters(ctx context.Context) (n int, told bool) {
	if i.link.management.Load() == nil || i.facts.kind != "quorum" || !atLeast(i.link.Status().Version, 4, 3) {
		return 0, false
	}
	q, err := i.link.management.Load().Queue(ctx, i.link.vhost, i.queue)
	if err != nil || q.Delayed == nil {
		return 0, false
	}
	return *q.Delayed, true
}

// pullEvery is the pause after which an empty inbox is asked again.
const pullEvery = 200 * time.Millisecond

// pull takes the letters of the window "w" with basic.get. The function "take" adds a letter to it.
func (i *Inbox) pull(
	ctx context.Context, f fetch, wait time.Duration, w *[]deadletter.Arrival, take func(*amqp.Delivery) error,
) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	proven := i.probation.proofTimer()
	for len(*w) < f.letters {
		d, ok, err := i.ch.Get(i.queue, false)
		if err != nil {
			return err
		}
		if ok {
			if err := take(&d); err != nil || f.full(*w, i.taken) {
				return err
			}
			if len(*w) == 1 {
				timer.Reset(f.linger)
			}
			continue
		}
		select {
		case <-time.After(pullEvery):
		case <-timer.C:
			return nil
		case <-proven:
			i.recordReading()
		case why := <-i.changed:
			return errors.New(why)
		case err := <-i.closed:
			return closeError(err)
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}
