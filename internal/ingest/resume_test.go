package ingest_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A window is claimed in whatever order its letters come back: what was got one by one may be put
// back before what was consumed.
func TestAWindowComesBackInAnotherOrder(t *testing.T) {
	t.Parallel()
	for _, b := range []broker{quorum, counting} {
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t, b, nil)
			crash := accidents("ingest: committed")
			o.destine(func(point string) bool {
				if point == "cut before the resume" {
					slices.Reverse(o.q.returned)
				}
				return crash(point)
			})
			o.q.publish("m 1", "x", "x", "m 4")
			o.during(func() { time.Sleep(time.Second) })
			o.check()
			const want = "connect, mark, calm, fetch 1-4, commit 1-4, dlo dies, connect, find 1-4, 4 3 2 1 came back, claim 4 3 2 1, ack 4 3 2 1, fence, settle"
			if got := o.course(); got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		})
	}
}

// Where nothing comes, nothing is known. The window stays open until a letter decides, whichever
// process gets that letter.
func TestAnOpenWindowWaitsForALetter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, classic, accidents("ingest: fenced", "fail to look"))
		o.q.publish("m 1")
		o.during(func() { time.Sleep(time.Hour) })
		const waits = "connect, mark, calm, fail to look, connect, fetch 1, commit 1, ack 1, fence, dlo dies, connect, find 1"
		if got := o.course(); got != waits {
			t.Errorf("\n got %s\nwant %s", got, waits)
		}
		o.during(func() {
			time.Sleep(time.Hour)
			o.q.publish("m 2")
		})
		o.check()
		const decided = "connect, find 1, 2 came instead, settle, commit 2, ack 2, fence, settle"
		if got := o.course(); got != decided {
			t.Errorf("\n got %s\nwant %s", got, decided)
		}
	})
}

// Letters that equal an open window and come for the first time are not the window, unless the broker
// says of them too that they were delivered before. Then they are rows of their own, and held.
func TestTwinsOfAnOpenWindow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		broker broker
		body   string
		course string
		rows   int
	}{
		{classic, "twin", "3-4 came instead, settle, commit 3-4", 4},
		{leaking, "twin", "3-4 came instead, settle, commit 3-4", 4},
		{leaking, "r twin", "3-4 came back, claim 3-4, 2 suspects", 4},
		{counting, "r twin", "3-4 came back, claim 3-4", 4},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t, c.broker, accidents("ingest: fenced"))
			o.q.publish(c.body, c.body)
			o.during(func() {
				time.Sleep(time.Second)
				o.course()
				o.q.publish(c.body, c.body)
				time.Sleep(time.Second)
			})
			o.check()
			if got, want := o.course(), c.course+", ack 3-4, fence, settle"; got != want || o.rows != c.rows {
				t.Errorf("%s, %s: %d rows\n got %s\nwant %s", c.broker.name, c.body, o.rows, got, want)
			}
		})
	}
}

// This is left: letters that equal an open window, which a session got and could not store, come back
// to the next session like the window itself, and are taken for it. Nothing tells them apart but the
// delivery count of a quorum queue, where the window would have come back more than once.
func TestTwinsThatAnEarlierSessionGot(t *testing.T) {
	t.Parallel()
	for _, b := range []broker{classic, quorum} {
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t, b, accidents("ingest: fenced"))
			o.q.publish("twin", "twin")
			o.during(func() {
				time.Sleep(time.Second)
				o.destine(accidents("fail to settle"))
				o.course()
				o.q.publish("twin", "twin")
				time.Sleep(time.Second)
			})
			o.check()
			const want = "3-4 came instead, fail to settle, connect, find 1-2, 3-4 came back, claim 3-4, ack 3-4, fence, settle"
			if got := o.course(); got != want || o.rows != 2 {
				t.Errorf("%d rows\n got %s\nwant %s", o.rows, got, want)
			}
		})
	}
}
