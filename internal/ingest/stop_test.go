package ingest_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestAStopFinishesTheWindow checks that a stopping dlo finishes the letters that it has fetched:
// it commits, acknowledges, fences and settles them. All other letters must stay in the queue.
func TestAStopFinishesTheWindow(t *testing.T) {
	t.Parallel()
	const (
		begin    = "connect, mark, calm, fetch 1-4, commit 1-4"
		finished = ", ack 1-4, fence, settle"
	)
	for _, c := range []struct {
		name     string
		accident string // accident before the stop
		stop     string // point at which dlo is stopped
		course   string
	}{
		{"fetched", "", "cut after the fetch", begin + finished},
		{"committed", "", "ingest: committed", begin + finished},
		{"fenced", "", "ingest: fenced", begin + finished},
		{
			"a window that came back", "ingest: committed", "cut after the resume",
			begin + ", dlo dies, connect, find 1-4, 1-4 came back, claim 1-4" + finished,
		},
		{
			"letters that came instead", "ingest: fenced", "cut after the resume",
			begin + ", ack 1-4, fence, dlo dies, connect, find 1-4, 5-8 came instead, settle, commit 5-8, ack 5-8, fence, settle",
		},
		{
			"after a restart of the broker", "restart before the fetch", "cut after the fetch",
			"connect, mark, calm, restart before the fetch, connect, mark, restarted, unmark, fetch 1-4, commit 1-4" +
				finished,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(t, classic, nil)
				happens := accidents(c.accident)
				o.setFate(func(point string) bool {
					if point == c.stop {
						o.stop()
					}
					return happens(point)
				})
				o.q.publish("m 1", "m 2", "m 3", "m 4", "m 5", "m 6", "m 7", "m 8", "m 9")
				o.drainDuring(func() { time.Sleep(time.Minute) })
				if got := o.takeLog(); got != c.course {
					t.Errorf("\n got %s\nwant %s", got, c.course)
				}
				if left := o.q.number - o.q.size(); left != o.rows || len(o.open) > 0 {
					t.Errorf("%d letters left the queue, %d are stored; open: %v", left, o.rows, o.open)
				}
			})
		})
	}
}

// TestAStopEndsEveryWait checks that a process without an open window stops immediately, whatever
// it is waiting for.
func TestAStopEndsEveryWait(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		happen []string
		course string
	}{
		{"a letter", nil, "connect, mark, calm, fetch 1, commit 1, ack 1, fence, settle"},
		{
			"what decides about an open window",
			[]string{"ingest: fenced"},
			"connect, mark, calm, fetch 1, commit 1, ack 1, fence, dlo dies, connect, find 1",
		},
		{
			"the end of an aftermath",
			[]string{"restart before the fetch"},
			"connect, mark, calm, restart before the fetch, connect, mark, restarted, unmark, fetch 1, commit 1, ack 1, fence, settle",
		},
		{"room", slices.Repeat([]string{"no room"}, 5), "no room, no room, no room, no room, no room"},
		{
			"the store", slices.Repeat([]string{"fail to ping"}, 5),
			"fail to ping, fail to ping, fail to ping, fail to ping, fail to ping",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(t, classic, accidents(c.happen...))
				o.q.publish("m 1")
				var stopped time.Time
				o.drainDuring(func() {
					time.Sleep(4500 * time.Millisecond)
					stopped = time.Now()
				})
				if got, late := o.takeLog(), time.Since(stopped); got != c.course || late > 0 {
					t.Errorf("%s after the stop\n got %s\nwant %s", late, got, c.course)
				}
			})
		})
	}
}
