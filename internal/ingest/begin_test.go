package ingest_test

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestASessionBegins checks that a session fetches no letter before a marker is created and
// recorded. A missing marker means that the broker was restarted. The session must then create a
// new marker immediately and delete the old one.
func TestASessionBegins(t *testing.T) {
	t.Parallel()
	const rest = "fetch 1, commit 1, ack 1, fence, settle"
	for _, c := range []struct {
		name      string
		accidents []string
		course    string
	}{
		{"for the first time", nil, "connect, mark, calm, " + rest},
		{
			"for the second time",
			[]string{"cut before the fetch"},
			"connect, mark, calm, cut before the fetch, connect, " + rest,
		},
		{"and the store fails", []string{"fail to begin"}, "fail to begin, connect, mark, calm, " + rest},
		{
			"and no marker is made",
			[]string{"cut before the mark"},
			"connect, cut before the mark, connect, mark, calm, " + rest,
		},
		{
			"and the marker is not remembered",
			[]string{"fail to record calm"},
			"connect, mark, fail to record calm, connect, mark, calm, " + rest,
		},
		{
			"after a restart",
			[]string{"restart before the fetch"},
			"connect, mark, calm, restart before the fetch, connect, mark, restarted, unmark, " + rest + ", calm",
		},
		{
			"after two restarts",
			[]string{"restart before the fetch", "restart before the fetch"},
			"connect, mark, calm, restart before the fetch, connect, mark, restarted, unmark, restart before the fetch, connect, mark, restarted, unmark, " + rest + ", calm",
		},
		{
			"after a restart, and no marker is made",
			[]string{"restart before the fetch", "cut before the mark", "cut before the mark"},
			"connect, cut before the mark, connect, cut before the mark, connect, mark, calm, restart before the fetch, connect, mark, restarted, unmark, " + rest + ", calm",
		},
		{
			"after a restart, which is not remembered",
			[]string{"restart before the fetch", "fail to record a restart"},
			"connect, mark, calm, restart before the fetch, connect, mark, fail to record a restart, connect, mark, restarted, unmark, " + rest + ", calm",
		},
		{
			"after a restart, and the old marker is not deleted",
			[]string{"restart before the fetch", "cut before the unmark"},
			"connect, mark, calm, restart before the fetch, connect, mark, restarted, cut before the unmark, connect, " + rest + ", calm",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(t, classic, accidents(c.accidents...))
				o.q.publish("m 1")
				o.drainDuring(func() { time.Sleep(time.Minute) })
				o.check()
				if got := o.takeLog(); got != c.course {
					t.Errorf("\n got %s\nwant %s", got, c.course)
				}
			})
		})
	}
}

// TestTheAftermathOutlivesTheProcess checks the aftermath of a broker restart. This is the time in
// which letters that were already acknowledged may come back. It must not end with the process that
// noticed the restart. The next process must also compare the letters that come back.
func TestTheAftermathOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, classic, accidents())
		o.drainDuring(func() {
			o.q.publish("m 1", "m 2", "m 3")
			time.Sleep(time.Second)
			o.setFate(accidents("restart before the fetch", "ingest: fetched"))
			o.q.publish("m 4")
			time.Sleep(time.Minute)
		})
		o.check()
		if o.rows != 4 {
			t.Errorf("%d rows of 4 letters", o.rows)
		}
	})
}

// TestTheFirstWindowTakesAllThatCameBack checks the size of the first window of a session. The
// letters that the last session had fetched go back to the queue. A quorum queue puts them behind
// letters that were returned earlier. The first window must contain all of them, so it must be at
// least as large as the largest window that the last session can have had. If the last session left
// a window open, its letters come first in this new window.
func TestTheFirstWindowTakesAllThatCameBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, quorum, accidents())
		o.drainDuring(func() {
			o.q.publish("m 1", "m 2", "m 3", "m 4") // as many letters as the first window can have
			time.Sleep(time.Second)
			o.takeLog()
			o.setFate(accidents("ingest: fetched", "ingest: committed"))
			o.q.publish("m 5", "m 6", "m 7", "m 8", "m 9", "m 10")
			time.Sleep(time.Second)
		})
		o.check()
		const want = "fetch 5-10, dlo dies, connect, fetch 5-10, commit 5-10, dlo dies, connect, find 5-10, 5-10 came back, claim 5-10, ack 5-10, fence, settle"
		if got := o.takeLog(); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	})
}
