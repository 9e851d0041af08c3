package requeue_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/requeue"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// TestWhatAnAnswerDoesToALetterThatWaits checks what the broker's response does to a letter that
// should wait in the broker. After a confirm, the letter must wait there, and the attempt counts.
// After a rejection, the letter must wait in the store as before, and the attempt does not count.
// If there is no response, the letter must be sent again.
func TestWhatAnAnswerDoesToALetterThatWaits(t *testing.T) {
	t.Parallel()
	const wait = 10 * time.Minute
	for _, c := range []struct {
		name   string
		doubt  bool // true if an earlier copy is in doubt
		hold   bool // true if letters in doubt are held
		answer deadletter.OutcomeKind
		detail string
		end    end
		in     string // the queue of the broker in which the letter waits
	}{
		{
			name:   "confirmed",
			answer: deadletter.OutcomeConfirmed,
			end:    end{deadletter.StateScheduled, wait, 1, 0},
			in:     "dlo.wait.600000",
		},
		{
			name:   "returned",
			answer: deadletter.OutcomeReturned,
			detail: "wait queue dlo.wait.600000 does not exist (the broker returned it: 312 NO_ROUTE)",
			end:    end{deadletter.StateScheduled, wait, 0, 0},
		},
		{
			name:   "nacked",
			answer: deadletter.OutcomeNacked,
			detail: "the queue refused it",
			end:    end{deadletter.StateScheduled, wait, 0, 0},
		},
		{
			name:   "refused",
			answer: deadletter.OutcomeRefused,
			detail: "the broker closed the channel: 406",
			end:    end{deadletter.StateScheduled, wait, 0, 0},
		},
		{
			name:   "unsent",
			answer: deadletter.OutcomeUnsent,
			detail: "the broker is not connected",
			end:    end{deadletter.StateScheduled, wait, 0, 0},
		},
		{
			name:   "in doubt",
			answer: deadletter.OutcomeInDoubt,
			detail: "no answer",
			end:    end{deadletter.StatePublishing, time.Second, 0, 0},
		},
		{
			name:   "in doubt, which is held",
			hold:   true,
			answer: deadletter.OutcomeInDoubt,
			detail: "in doubt: no answer; requeue it only if a second arrival does no harm",
			end:    end{State: deadletter.StateHeld},
		},
		{
			name:   "a copy is confirmed",
			doubt:  true,
			answer: deadletter.OutcomeConfirmed,
			end:    end{deadletter.StateScheduled, wait, 1, 0},
			in:     "dlo.wait.600000",
		},
		{
			name:   "a copy is returned",
			doubt:  true,
			answer: deadletter.OutcomeReturned,
			detail: "the broker returned it: 312 NO_ROUTE",
			end:    end{deadletter.StatePublishing, 2 * time.Second, 0, 0},
		},
		{
			name:   "a copy is refused",
			doubt:  true,
			answer: deadletter.OutcomeRefused,
			detail: "the broker closed the channel: 406",
			end:    end{deadletter.StatePublishing, 2 * time.Second, 0, 0},
		},
		{
			name:   "a copy is nacked",
			doubt:  true,
			answer: deadletter.OutcomeNacked,
			detail: "the queue refused it",
			end:    end{deadletter.StatePublishing, 2 * time.Second, 0, 0},
		},
		{
			name:   "a copy is unsent",
			doubt:  true,
			answer: deadletter.OutcomeUnsent,
			detail: "the broker is not connected",
			end:    end{deadletter.StatePublishing, time.Second, 0, 0},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := deskWithWait(t, rules.WaiterQueue, wait)
				i := d.letters[0]
				if c.doubt {
					d.leaveInDoubt()
				}
				if c.hold {
					d.options.InDoubt = requeue.Hold
				}
				d.wire.answer = func(*deadletter.Publishing) answer { return answer{kind: c.answer} }
				if n, err := d.open().dispatcher.Step(t.Context()); n != 1 || err != nil {
					t.Fatal(n, err)
				}
				got := end{State: i.state, Attempts: i.attempts, Nacks: i.nacks}
				switch i.state {
				case deadletter.StateScheduled:
					got.In = time.Until(i.due)
				case deadletter.StatePublishing:
					got.In = time.Until(i.again)
				}
				if detail := i.tries[0].Detail; got != c.end || detail != c.detail || i.waitsIn != c.in {
					t.Errorf(
						"the letter is %+v in %q, want %+v in %q\n got %s\nwant %s", got, i.waitsIn, c.end, c.in,
						detail, c.detail,
					)
				}
				if sent := d.takeLog(); !strings.Contains(sent, "to dlo.wait.600000") {
					t.Errorf("the course of events: %s", sent)
				}
			})
		})
	}
}

// deskWithWait returns a desk with one letter that should wait in the broker.
func deskWithWait(t *testing.T, w rules.Waiter, wait time.Duration) *desk {
	d := newDesk(t, &item{waiter: string(w), wait: wait, due: toMillis(time.Now().Add(wait))})
	d.rules.Default.Retry = &rules.Retry{Delays: []time.Duration{wait}, Waiter: w}
	d.wire.takes = true
	return d
}

// TestALetterThatDoesNotWaitInTheBroker covers letters that are claimed later than planned. Some
// wait queues and exchanges have a separate time for each letter. In these, a late letter must wait
// for the rest of its time. In a queue in which all letters wait equally long, a letter that is a
// little late must wait for the full time.
//
// A letter must not wait in the broker at all if it is too late for such a queue, if it is already
// due, or if the broker has no place for it.
func TestALetterThatDoesNotWaitInTheBroker(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		waiter rules.Waiter
		passes time.Duration // time that passes before the dispatcher looks for letters
		takes  bool
		course string
		late   time.Duration // how much later than planned the letter is due then
	}{
		{"in time", rules.WaiterQueue, 0, true, "send 1 to dlo.wait.600000, 1 confirmed, waits", 0},
		{
			"a little later", rules.WaiterQueue, 59 * time.Second, true,
			"send 1 to dlo.wait.600000, 1 confirmed, waits", 59 * time.Second,
		},
		{"too late for its queue", rules.WaiterQueue, 61 * time.Second, true, "", 0},
		{
			"late for a delay of its own", rules.WaiterTTL, 9 * time.Minute, true,
			"send 1 to dlo.wait.ttl, 1 confirmed, waits", 0,
		},
		{
			"late for an exchange", rules.WaiterDelayed, 9 * time.Minute, true,
			"send 1 to dlo.wait.delayed, 1 confirmed, waits", 0,
		},
		{"the broker cannot", rules.WaiterTTL, 0, false, "", 0},
		{"in the last moment", rules.WaiterTTL, 10*time.Minute - 500*time.Microsecond, true, "send 1, 1 confirmed", 0},
		{"its time has come", rules.WaiterTTL, 10 * time.Minute, true, "send 1, 1 confirmed", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := deskWithWait(t, c.waiter, 10*time.Minute)
			i, due := d.letters[0], d.letters[0].due
			d.wire.takes = c.takes
			time.Sleep(c.passes)
			if _, err := d.open().dispatcher.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := d.takeLog(); got != c.course {
				t.Errorf("%s: %s, want %s", c.name, got, c.course)
			}
			if late := i.due.Sub(due); i.state == deadletter.StateScheduled && late != c.late {
				t.Errorf("%s: it is due %s after its time, want %s", c.name, late, c.late)
			}
		})
	}
}
