package ingest_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// In the aftermath of a restart, the broker gives back acknowledged letters. A letter with a
// message id is merged into its row. A letter without a message id becomes a row of its own and is
// held.
func TestARestartBringsLettersBack(t *testing.T) {
	t.Parallel()
	for _, b := range brokers {
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t, b, accidents())
			o.during(func() {
				o.q.publish("m 1", "x", "m 3")
				time.Sleep(time.Minute)
				o.course()
				o.q.restart()
				time.Sleep(time.Minute)
			})
			o.check()
			const want = "connect, mark, restarted, unmark, fetch 1-3, commit 1-3, 2 merged, 1 suspects, ack 1-3, fence, settle, calm"
			if got := o.course(); got != want || o.rows != 4 {
				t.Errorf("%s: %d rows\n got %s\nwant %s", b.name, o.rows, got, want)
			}
		})
	}
}

// The aftermath ends once the inbox has been empty for five seconds, and not before. However many
// windows there are, each window restarts the five seconds.
func TestTheAftermathEndsInAnEmptyInbox(t *testing.T) {
	t.Parallel()
	for windows := range 4 {
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t, classic, accidents())
			o.during(func() {
				time.Sleep(time.Second)
				o.course()
				o.q.restart()
				time.Sleep(4 * time.Second) // The broker is back after three seconds.
				for range windows {
					o.q.publish("m 1")
					time.Sleep(4 * time.Second)
				}
				if early := o.course(); strings.Contains(early, "calm") {
					t.Errorf("%d windows: calm before the inbox was empty: %s", windows, early)
				}
				time.Sleep(5 * time.Second)
				if got := o.course(); got != "calm" {
					t.Errorf("%d windows: not calm after the inbox was empty: %s", windows, got)
				}
			})
			o.check()
		})
	}
}

// Once the aftermath is over, a letter that equals a stored one is a separate letter again.
func TestAfterTheAftermathNothingIsCompared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, counting, accidents())
		o.during(func() {
			o.q.publish("r twin")
			time.Sleep(time.Second)
			o.q.forgets = func(int) int { return 0 }
			o.q.restart()
			time.Sleep(time.Minute)
			o.course()
			o.q.publish("r twin")
			time.Sleep(time.Minute)
		})
		o.check()
		const want = "fetch 2, commit 2, ack 2, fence, settle"
		if got := o.course(); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	})
}

// The aftermath is over when the store has recorded its end. If the store fails, the next session
// waits again.
func TestCalmIsNotRecorded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, classic, accidents())
		o.during(func() {
			time.Sleep(time.Second)
			o.course()
			o.destine(accidents("fail to record calm"))
			o.q.restart()
			time.Sleep(time.Minute)
		})
		o.check()
		const want = "connect, mark, restarted, unmark, fail to record calm, connect, calm"
		if got := o.course(); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	})
}

// A restart during the aftermath of another restart may bring back letters that already came back.
// They are still the same letters.
func TestARestartInTheAftermathOfAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, classic, accidents())
		o.during(func() {
			o.q.publish("m 1", "m 2", "m 3")
			time.Sleep(time.Second)
			o.course()
			for range 2 {
				o.q.restart()
				time.Sleep(5 * time.Second)
			}
			time.Sleep(time.Minute)
		})
		o.check()
		const again = "connect, mark, restarted, unmark, fetch 1-3, commit 1-3, 3 merged, ack 1-3, fence, settle, "
		if got := o.course(); got != again+again+"calm" || o.rows != 3 {
			t.Errorf("%d rows\n got %s\nwant %s", o.rows, got, again+again+"calm")
		}
	})
}
