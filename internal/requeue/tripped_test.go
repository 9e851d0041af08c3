package requeue_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/requeue"
)

// TestATrippedQueueSendsAProbe lets almost all letters of a queue come back. The breaker of the
// queue must let no letter leave for a minute. After that, it must let only a few letters leave, to
// test the queue. Other queues and requeues by people must not be affected.
func TestATrippedQueueSendsAProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, letters(8)...)
		d.options.Breaker = requeue.Breaker{CameBack: 90, Of: 4, Window: 10 * time.Minute, Probe: 2}
		c := d.open()
		step := func(want string) {
			t.Helper()
			if _, err := c.dispatcher.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := d.takeLog(); got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		}
		step("send 1, send 2, send 3, send 4, 1 confirmed, 2 confirmed, 3 confirmed, 4 confirmed")
		var back []deadletter.ID
		for _, i := range d.letters[:4] {
			back = append(back, i.id())
		}
		c.dispatcher.CameBack(back)
		d.letters[6].queue, d.letters[7].operation = "email", 7
		step("send 7, send 8, 7 confirmed, 8 confirmed")
		step("")
		time.Sleep(time.Minute)
		step("send 5, send 6, 5 confirmed, 6 confirmed")
		if first, second := d.letters[4].tries[0], d.letters[6].tries[0]; !first.Probe || second.Probe {
			t.Errorf("a probe: letter 5 %v, letter 7 %v", first.Probe, second.Probe)
		}
	})
}

// TestWhatTripsAQueue checks which letters trip the breaker of a queue when they come back. These
// are letters that reached the queue or may have reached it. Letters that did not reach the queue
// must not trip it.
func TestWhatTripsAQueue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		body  []byte
		kind  deadletter.OutcomeKind
		trips bool
	}{
		{"confirmed", nil, deadletter.OutcomeConfirmed, true},
		{"in doubt", nil, deadletter.OutcomeInDoubt, true},
		{"nacked", nil, deadletter.OutcomeNacked, false},
		{"returned", nil, deadletter.OutcomeReturned, false},
		{"refused", nil, deadletter.OutcomeRefused, false},
		{"unsent", nil, deadletter.OutcomeUnsent, false},
		{"unpublishable", make([]byte, 1001), "", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, letters(5)...)
			d.options.Breaker = requeue.Breaker{CameBack: 90, Of: 4, Window: 10 * time.Minute, Probe: 2}
			var back []deadletter.ID
			for _, i := range d.letters[:4] {
				back = append(back, i.id())
				if c.body != nil {
					i.body = c.body
				}
			}
			d.wire.answer = func(*deadletter.Publishing) answer { return answer{kind: c.kind} }
			p := d.open()
			if n, err := p.dispatcher.Step(t.Context()); n != 4 || err != nil {
				t.Fatal(n, err)
			}
			p.dispatcher.CameBack(back)
			if n, err := p.dispatcher.Step(t.Context()); (n == 0) != c.trips || err != nil {
				t.Errorf("%s: %d letters leave afterwards (%v); the breaker trips: %v", c.name, n, err, c.trips)
			}
		})
	}
}
