package requeue_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestAStepTakesItsShare checks that a step takes at most half of in_flight, because two workers
// share it. A step may always take one letter.
func TestAStepTakesItsShare(t *testing.T) {
	t.Parallel()
	for inFlight, want := range map[int]string{8: "4 4 2 0", 3: "1 1 1 1", 1: "1 1 1 1"} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, letters(10)...)
			d.options.InFlight = inFlight
			c := d.open()
			var got []string
			for range 4 {
				n, err := c.dispatcher.Step(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, string(rune('0'+n)))
			}
			if got := strings.Join(got, " "); got != want {
				t.Errorf("in_flight %d: steps of %s letters, want %s", inFlight, got, want)
			}
		})
	}
}

// TestWhatIsInDoubtGoesFirst covers letters in doubt: an earlier process sent them and got no
// response. They must be sent first, one at a time, and under their old tokens. A single worker
// must take them, at most sixteen at a time. The other worker must send due letters at the same
// time.
func TestWhatIsInDoubtGoesFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, letters(24)...)
		d.options.InFlight = 40
		d.leaveInDoubt() // 20 letters are in doubt
		d.wire.latency = func() time.Duration { return time.Second }
		c := d.open()
		for range 2 {
			go c.dispatcher.Step(t.Context())
			synctest.Wait()
		}
		const doubtful = "send 1 alone, send 2 alone, send 3 alone, send 4 alone, send 5 alone, send 6 alone, send 7 alone, send 8 alone, " +
			"send 9 alone, send 10 alone, send 11 alone, send 12 alone, send 13 alone, send 14 alone, send 15 alone, send 16 alone"
		if got, want := d.takeLog(), doubtful+", send 21, send 22, send 23, send 24"; got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		d.takeLog()
		go c.dispatcher.Step(t.Context())
		synctest.Wait()
		if got, want := d.takeLog(), "send 17 alone, send 18 alone, send 19 alone, send 20 alone"; got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
		time.Sleep(time.Second)
	})
}

// TestAClaimFails checks a worker that failed to claim letters. Only one worker at a time may claim
// letters in doubt, so the failed worker must give up this right. The next step must then claim the
// letters.
func TestAClaimFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, letters(2)...)
		d.options.InFlight = 2
		d.leaveInDoubt()
		c := d.open()
		for _, point := range []string{"fail to claim doubts", "fail to claim"} {
			d.fate = accidents(point)
			if n, err := c.dispatcher.Step(t.Context()); n != 0 || !errors.Is(err, errStore) {
				t.Errorf("%s: %d letters, %v", point, n, err)
			}
			if _, err := c.dispatcher.Step(t.Context()); err != nil {
				t.Error(err)
			}
		}
		const want = "fail to claim doubts, send 1 alone, 1 confirmed, fail to claim, send 2, 2 confirmed"
		if got := d.takeLog(); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	})
}

// TestAnOutcomeIsNotForgotten checks that the outcome of a sent letter is recorded, however long
// the store is unavailable. Until then, the worker must claim no other letters.
func TestAnOutcomeIsNotForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, letters(2)...)
		d.fate = accidents("fail to mark", "fail to mark", "fail to mark")
		began := time.Now()
		n, err := d.open().dispatcher.Step(t.Context())
		if n != 2 || err != nil || time.Since(began) != 3*time.Second {
			t.Errorf("%d letters, %v, after %s", n, err, time.Since(began))
		}
		const want = "send 1, send 2, fail to mark, fail to mark, fail to mark, 1 confirmed, 2 confirmed"
		if got := d.takeLog(); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	})
}

// TestAnOutcomeThatCannotBeRecorded checks a sent letter whose outcome cannot be recorded before
// the process ends. The next process must treat the letter as one that may or may not have arrived.
func TestAnOutcomeThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, letters(1)...)
		d.fate = func(point string) bool { return point == "fail to mark" }
		ctx, stop := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer stop()
		c := d.open()
		if n, err := c.dispatcher.Step(ctx); n != 0 || !errors.Is(err, errStore) {
			t.Errorf("%d letters, %v", n, err)
		}
		c.drop()
		d.fate = accidents()
		if _, err := d.open().dispatcher.Step(t.Context()); err != nil {
			t.Error(err)
		}
		const want = "send 1, fail to mark, fail to mark, fail to mark, send 1 alone, 1 confirmed"
		if got := d.takeLog(); got != want || d.letters[0].attempts != 1 {
			t.Errorf("%d attempts\n got %s\nwant %s", d.letters[0].attempts, got, want)
		}
	})
}

// TestAStopInAStep checks that a stopping process claims no other letters and finishes those that
// it has claimed.
func TestAStopInAStep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ point, course string }{
		{"", ""},
		{"fail to claim", "send 1, send 2, 1 confirmed, 2 confirmed"},
		{"requeue: claimed", "send 1, send 2, 1 confirmed, 2 confirmed"},
		{"requeue: publishing", "send 1, send 2, 1 confirmed, 2 confirmed"},
		{"requeue: confirmed", "send 1, send 2, 1 confirmed, 2 confirmed"},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk(t, letters(2)...)
			ctx, stop := context.WithCancel(t.Context())
			if c.point == "" {
				stop()
			}
			d.fate = func(point string) bool {
				if point == c.point {
					stop()
				}
				return false
			}
			_, err := d.open().dispatcher.Step(ctx)
			if got := d.takeLog(); got != c.course || (err != nil) != (c.point == "") {
				t.Errorf("a stop at %q: %v, %s, want %s", c.point, err, got, c.course)
			}
		})
	}
}

// TestTheCourseOfABatchThatIsNotSent checks a batch that dlo does not send, because its progress
// cannot be recorded. For this batch, dlo must not reach the crash points that follow the sending.
// Other tests stop dlo at these crash points, and rely on the letters having been sent.
func TestTheCourseOfABatchThatIsNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, letters(2)...)
		var points []string
		d.fate = func(point string) bool {
			if strings.HasPrefix(point, "requeue: ") {
				points = append(points, point)
			}
			return point == "fail to write the mark"
		}
		if _, err := d.open().dispatcher.Step(t.Context()); err != nil {
			t.Error(err)
		}
		if want := []string{"requeue: claimed", "requeue: marked"}; !slices.Equal(points, want) {
			t.Errorf("points %v, want %v", points, want)
		}
	})
}

// TestWhatCannotBePublished checks that a letter that cannot be published is held with the reason.
// It must not block other letters.
func TestWhatCannotBePublished(t *testing.T) {
	t.Parallel()
	deep := deadletter.Table{}
	for range 40 {
		deep = deadletter.Table{"deeper": deep}
	}
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, &item{body: make([]byte, 1001)}, &item{queue: "billing"}, &item{}, &item{
			properties: deadletter.Properties{Headers: deep},
		})
		if n, err := d.open().dispatcher.Step(t.Context()); n != 4 || err != nil {
			t.Errorf("%d letters, %v", n, err)
		}
		const want = "send 3, 1 refused, 4 refused, 2 refused, 3 confirmed"
		if got := d.takeLog(); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
		for n, why := range map[int]string{
			1: "unpublishable: the body has 1001 bytes, more than requeue.max_body 1000",
			2: "no target: queue billing is not in requeue_to of broker main",
			4: "unpublishable: ",
		} {
			i := d.letters[n-1]
			if got := i.tries[0].Detail; !strings.HasPrefix(got, why) || i.state != deadletter.StateHeld ||
				i.attempts != 0 {
				t.Errorf("letter %d is %s after %d attempts: %s, want %s", n, i.state, i.attempts, got, why)
			}
		}
	})
}
