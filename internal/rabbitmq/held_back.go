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
			text := fmt.Sprintf(
				"the delayed retry of the queue holds letters back, so dlo waits until %s before it takes any; otherwise it could not tell which letters it has stored",
				i.heldUntil.UTC().Format("2006-01-02 15:04:05 MST"),
			)
			if i.facts.unknown {
				text += ". Set management of the broker, and give its user the tag monitoring: then dlo goes on when the queue holds nothing back"
			}
			i.say(text)
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
	if i.link.management == nil || i.facts.kind != "quorum" || !atLeast(i.link.Status().Version, 4, 3) {
		return 0, false
	}
	q, err := i.link.management.Queue(ctx, i.link.vhost, i.queue)
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

// proveReturn proves that the queue gives letters back at once, where the broker does not say so.
// It rejects the letters of a window with requeue, which no delivery limit counts from 4.3 on, and
// takes them again, twice. Letters that came back stand in front of the others, so all of them have
// to be there before as many others as earlier sessions can have held. The second time,
// x-acquired-count must have grown, so that letters that nothing else tells apart are no proof; the
// first time, it can still be that of another queue. If the proof fails, the error wraps
// deadletter.ErrHeldBack. Otherwise proveReturn returns the letters that it took.
func (i *Inbox) proveReturn(ctx context.Context, rejected []deadletter.Arrival) (w []deadletter.Arrival, err error) {
	type print struct {
		letter   deadletter.Fingerprint
		acquired int64
	}
	for _, counted := range []bool{false, true} {
		printOf := func(a *deadletter.Arrival, grown int64) print {
			if counted {
				return print{a.Fingerprint, acquired(a) + grown}
			}
			return print{letter: a.Fingerprint}
		}
		missing, seen, back := map[print]int{}, 0, rejected[:0:0]
		for n := range rejected {
			missing[printOf(&rejected[n], 1)]++
		}
		if err := i.ch.Nack(i.tag, true, true); err != nil {
			return nil, err
		}
		w, err = i.window(ctx, fetch{
			letters: i.limits.Letters + max(len(w), len(rejected)),
			linger:  resumeQuiet,
			sliding: true,
			full: func(w []deadletter.Arrival, _ int) bool {
				for ; seen < len(w); seen++ {
					if p := printOf(&w[seen], 0); missing[p] > 0 {
						missing[p]--
						back = append(back, w[seen])
					}
				}
				return len(back) == len(rejected)
			},
		})
		switch {
		case err != nil:
			return nil, err
		case len(back) < len(rejected) && ctx.Err() != nil:
			return nil, ctx.Err()
		case len(back) < len(rejected):
			err = fmt.Errorf("inbox %s: %w, and the broker does not say for how long", i.queue, deadletter.ErrHeldBack)
			i.failure = errorText(err)
			return nil, err
		}
		rejected = back
	}
	return w, nil
}

// acquired returns how often a letter was delivered before (RabbitMQ 4.3).
func acquired(a *deadletter.Arrival) int64 {
	n, _ := a.Properties.Headers["x-acquired-count"].(int64)
	return n
}
