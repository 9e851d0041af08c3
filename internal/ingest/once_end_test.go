package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/ingest"
)

// TestAQueueThatCannotBeDrained uses a queue that refuses to be drained. The drain must end with
// the reason and must take no letter. After any other error, the drain must report the error and
// try again.
func TestAQueueThatCannotBeDrained(t *testing.T) {
	t.Parallel()
	for _, why := range []error{deadletter.ErrNotFound, deadletter.ErrInvalid, deadletter.ErrConflict} {
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t, classic, accidents("fail to begin"))
			o.refused = fmt.Errorf("inspect: %w", why)
			o.q.publish(bodies(3)...)
			if taken, err := o.drainOnce(t.Context(), 0, (*ingest.Once).Run); taken != 0 || !errors.Is(err, why) {
				t.Errorf("%d taken, %v, want %v", taken, err, why)
			}
			if got, want := o.takeLog(), `fail to begin, says "the store is away"`; got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		})
	}
}

// TestADrainIsInterrupted interrupts a drain at each point. The count must stay exact, and the
// problem must be reported.
func TestADrainIsInterrupted(t *testing.T) {
	t.Parallel()
	const all = "connect, fetch 1-3, commit 1-3, ack 1-3, fence, settle"
	for _, c := range []struct{ name, accident, course string }{
		{"before the fetch", "cut before the fetch", `cut before the fetch, says "the connection is gone", ` + all},
		{"before the commit", "fail to commit", `fetch 1-3, fail to commit, says "the store is away", ` + all},
		{
			"before the ack", "cut before the ack",
			`fetch 1-3, commit 1-3, cut before the ack, says "the connection is gone", connect, find 1-3, 1-3 came back, claim 1-3, ack 1-3, fence, settle`,
		},
		{
			"after the ack", "cut after the ack",
			`fetch 1-3, commit 1-3, ack 1-3, cut after the ack, says "the connection is gone", connect, find 1-3, 4-5 came instead, settle, connect`,
		},
		{
			"no room", "no room",
			`no room, says "dlo takes in no letters: the disk is nearly full", connect, mark, calm, fetch 1-3, commit 1-3, ack 1-3, fence, settle`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(t, classic, accidents(c.accident))
				o.q.publish(bodies(5)...)
				if taken, err := o.drainOnce(
					t.Context(), 3, (*ingest.Once).Run,
				); taken != 3 || err != nil || o.rows != 3 || o.q.size() != 2 || len(o.open) > 0 {
					t.Errorf("%d taken (%v), %d rows, %d left, open %v", taken, err, o.rows, o.q.size(), o.open)
				}
				want := c.course
				if c.accident != "no room" {
					want = "connect, mark, calm, " + want
				}
				if got := o.takeLog(); got != want {
					t.Errorf("\n got %s\nwant %s", got, want)
				}
			})
		})
	}
}

// TestADrainIsStopped stops a drain at each point. The drain must finish its open window and take
// no other window.
func TestADrainIsStopped(t *testing.T) {
	t.Parallel()
	const taken = "connect, mark, calm, fetch 1-4, commit 1-4, ack 1-4, fence, settle"
	for _, c := range []struct {
		name   string
		before string // the point at which the drain before this one was killed; "" = there was none
		stop   string // the point at which this drain is stopped
		course string
		taken  int
	}{
		{"before it began", "", "cut before the mark", "connect, mark", 0},
		{"with a window fetched", "", "cut after the fetch", taken, 4},
		{"with a window committed", "", "ingest: committed", taken, 4},
		{
			"with a window that came back", "ingest: committed", "cut after the resume",
			"connect, find 1-4, 1-4 came back, claim 1-4, ack 1-4, fence, settle", 0,
		},
		{
			"with other letters than those of the window", "ingest: fenced", "cut after the resume",
			"connect, find 1-4, 5-8 came instead, settle", 0,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(t, classic, accidents(c.before))
				o.q.publish(bodies(9)...)
				if c.before != "" {
					o.drainOnce(t.Context(), 0, (*ingest.Once).Run)
					o.takeLog()
				}
				ctx, stop := context.WithCancel(t.Context())
				o.setFate(func(point string) bool {
					if point == c.stop {
						stop()
					}
					return false
				})
				taken, err := o.drainOnce(ctx, 0, (*ingest.Once).Run)
				if got := o.takeLog(); got != c.course || taken != c.taken || err != nil {
					t.Errorf("%d taken (%v)\n got %s\nwant %s", taken, err, got, c.course)
				}
				if o.rows+o.q.size() != 9 || len(o.open) > 0 {
					t.Errorf("9 letters are %d rows and %d left in the queue; open: %v", o.rows, o.q.size(), o.open)
				}
			})
		})
	}
}

// TestADrainWithoutRoom checks a drain without room in the store. It must wait and report the
// reason, and must continue automatically once there is room.
func TestADrainWithoutRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, classic, nil)
		happens := accidents("no room", "no room", "fail to ping")
		o.setFate(func(point string) bool { return o.rows > 0 && happens(point) })
		o.q.publish(bodies(6)...)
		taken, err := o.drainOnce(t.Context(), 5, (*ingest.Once).Run)
		const want = `connect, mark, calm, fetch 1-4, commit 1-4, ack 1-4, fence, settle, no room, says "the disk is nearly full", ` +
			`no room, says "dlo takes in no letters: the disk is nearly full", fail to ping, says "dlo takes in no letters: the store is away", ` +
			`connect, fetch 5, commit 5, ack 5, fence, settle`
		if got := o.takeLog(); got != want || taken != 5 || err != nil {
			t.Errorf("%d taken (%v)\n got %s\nwant %s", taken, err, got, want)
		}
	})
}

// TestADrainInTheAftermathOfARestart checks a drain after a broker restart, when letters that were
// already acknowledged may come back. The drain must not end before the queue has been empty for
// five seconds and the store has recorded that no more letters are expected. Letters that come back
// must not be counted again.
func TestADrainInTheAftermathOfARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, classic, accidents("restart in the fence"))
		o.q.publish(bodies(3)...)
		time.AfterFunc(7*time.Second, func() { o.q.publish("m 4") })
		time.AfterFunc(11*time.Second, func() {
			o.q.publish("m 5")
			o.setFate(accidents("fail to record calm"))
		})
		taken, err := o.drainOnce(t.Context(), 0, (*ingest.Once).Run)
		if taken != 5 || err != nil || o.rows != 5 {
			t.Errorf("%d taken (%v), %d rows", taken, err, o.rows)
		}
		o.check()
		const want = `connect, mark, calm, fetch 1-3, commit 1-3, ack 1-3, restart in the fence, says "the connection is gone", ` +
			"connect, mark, restarted, unmark, find 1-3, 1-3 came back, claim 1-3, ack 1-3, fence, settle, " +
			"fetch 4, commit 4, ack 4, fence, settle, fetch 5, commit 5, ack 5, fence, settle, " +
			`fail to record calm, says "the store is away", connect, calm`
		if got := o.takeLog(); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	})
}
