package requeue_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// runDuring runs a process while the function "fn" runs, and then stops the process. It returns how
// long the stop took.
func (d *desk) runDuring(fn func(c *clerk)) time.Duration {
	ctx, stop := context.WithCancel(d.t.Context())
	defer stop()
	c, over := d.open(), make(chan struct{})
	go func() {
		defer close(over)
		c.dispatcher.Run(ctx)
	}()
	fn(c)
	synctest.Wait()
	stop()
	stopped := time.Now()
	<-over
	return time.Since(stopped).Round(time.Millisecond)
}

// TestAnswersThatTakeLong checks that dlo never waits for the responses to more than in_flight
// messages, however many letters are due. A process must not claim a letter again while it waits
// for the response, however long that takes.
func TestAnswersThatTakeLong(t *testing.T) {
	t.Parallel()
	for inFlight, want := range map[int]string{
		8: "send 1, send 2, send 3, send 4, send 5, send 6, send 7, send 8", 3: "send 1, send 2", 1: "send 1",
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, letters(10)...)
			d.options.InFlight = inFlight
			d.wire.latency = func() time.Duration { return 10 * time.Second }
			d.runDuring(func(*clerk) {
				time.Sleep(9 * time.Second)
				if got := d.takeLog(); got != want {
					t.Errorf("\n got %s\nwant %s", got, want)
				}
				time.Sleep(time.Duration(len(d.letters)) * 10 * time.Second)
			})
			for _, i := range d.letters {
				if i.state != deadletter.StateRequeued || i.attempts != 1 || len(i.tries) != 1 ||
					i.tries[0].Sends != 1 {
					t.Errorf(
						"letter %d is %s after %d attempts, sent %d times", i.number, i.state, i.attempts,
						i.tries[0].Sends,
					)
				}
			}
		})
	}
}

// TestAStopWaitsForAnswers checks that a stopping process waits for outstanding responses and
// claims no other letters.
func TestAStopWaitsForAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, letters(10)...)
		d.wire.latency = func() time.Duration { return 3 * time.Second }
		if took := d.runDuring(func(*clerk) { time.Sleep(time.Second) }); took != 2*time.Second {
			t.Errorf("it took %s to stop", took)
		}
		for _, i := range d.letters {
			want := deadletter.StateRequeued
			if i.number > 8 {
				want = deadletter.StateScheduled
			}
			if i.state != want {
				t.Errorf("letter %d is %s, want %s", i.number, i.state, want)
			}
		}
	})
}

// TestAStopWithoutAnswers checks letters whose responses do not arrive before the process ends, so
// that nobody knows whether these letters have arrived. They must be marked as in doubt, and the
// next process must send them again, one at a time.
func TestAStopWithoutAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, letters(1)...)
		d.wire.latency = func() time.Duration { return time.Hour }
		if took := d.runDuring(func(*clerk) { time.Sleep(time.Second) }); took != grace {
			t.Errorf("it took %s to stop", took)
		}
		d.wire.latency = func() time.Duration { return 0 }
		d.runDuring(func(*clerk) { time.Sleep(time.Minute) })
		const want = "send 1, 1 in doubt, again, send 1 alone, 1 confirmed"
		if got := d.takeLog(); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	})
}

// TestTheBrokerGoesAndComesBack checks a broker that becomes unavailable for a time. During this
// time, no letter may be claimed. If dlo was still waiting for the response to a letter, it must
// later send the letter again, alone and under the same token. Both sends together must count as
// one attempt.
func TestTheBrokerGoesAndComesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, letters(2)...)
		d.letters[1].due = d.began.Add(3 * time.Second)
		d.wire.latency = func() time.Duration { return 2 * time.Second }
		d.runDuring(func(*clerk) {
			time.Sleep(time.Second)
			d.wire.connect(false)
			time.Sleep(time.Minute)
			if got, want := d.takeLog(), "send 1, 1 in doubt, again"; got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
			d.wire.connect(true)
			time.Sleep(time.Minute)
		})
		const want = "send 1 alone, send 2, 1 confirmed, 2 confirmed"
		if got := d.takeLog(); got != want || d.letters[0].attempts != 1 {
			t.Errorf("%d attempts\n got %s\nwant %s", d.letters[0].attempts, got, want)
		}
	})
}

// TestTheStoreGoesAndComesBack checks a dispatcher whose store is unavailable for a time. The
// dispatcher must try again every second. It may send no letter before it has read the states of
// the breakers from the store.
//
// After a letter was sent, dlo watches for some time whether it comes back. This time must begin
// when the broker responds, even if the store records the response only later.
func TestTheStoreGoesAndComesBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fails string
		times int
		after time.Duration
	}{
		{"fail to guard", 2, 2 * time.Second},
		{"fail to claim", 4, time.Second}, // once for each worker
		{"fail to claim doubts", 4, time.Second},
		{"fail to mark", 2, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, letters(1)...)
			d.fate = accidents(slices.Repeat([]string{c.fails}, c.times)...)
			d.runDuring(func(*clerk) { time.Sleep(10 * time.Second) })
			i := d.letters[0]
			if after := i.due.Sub(
				d.began,
			) - d.options.Watch; i.state != deadletter.StateRequeued || i.attempts != 1 || after != c.after {
				t.Errorf(
					"%s: after %s the letter is %s, with %d attempts, want %s", c.fails, after, i.state, i.attempts,
					c.after,
				)
			}
		})
	}
}

// TestAWakeEndsTheRest checks that Wake makes a resting dispatcher send a letter that has become
// due.
func TestAWakeEndsTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, &item{})
		d.letters[0].due = d.began.Add(time.Hour)
		d.runDuring(func(c *clerk) {
			time.Sleep(50 * time.Millisecond)
			d.shelf().mu.Lock()
			d.letters[0].due = time.Now()
			d.shelf().mu.Unlock()
			c.dispatcher.Wake()
			time.Sleep(time.Millisecond)
			if got, want := d.takeLog(), "send 1, 1 confirmed"; got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	})
}
