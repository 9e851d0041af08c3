package ingest_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestARestartBringsLettersBack checks letters that were acknowledged and that a broker restart
// brings back. A letter with a message id must be merged into its row. A letter without a message
// id must get a row of its own and be held.
func TestARestartBringsLettersBack(t *testing.T) {
	t.Parallel()
	for _, b := range brokers {
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t, b, accidents())
			o.drainDuring(func() {
				o.q.publish("m 1", "x", "m 3")
				time.Sleep(time.Minute)
				o.takeLog()
				o.q.restart()
				time.Sleep(time.Minute)
			})
			o.check()
			const want = "connect, mark, restarted, unmark, fetch 1-3, commit 1-3, 2 merged, 1 suspects, ack 1-3, fence, settle, calm"
			if got := o.takeLog(); got != want || o.rows != 4 {
				t.Errorf("%s: %d rows\n got %s\nwant %s", b.name, o.rows, got, want)
			}
		})
	}
}

// TestTheAftermathEndsInAnEmptyInbox checks when dlo stops expecting letters that a broker restart
// brings back. It must stop once the inbox has been empty for five seconds, and not before. With
// each window, the five seconds must begin again.
func TestTheAftermathEndsInAnEmptyInbox(t *testing.T) {
	t.Parallel()
	for windows := range 4 {
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t, classic, accidents())
			o.drainDuring(func() {
				time.Sleep(time.Second)
				o.takeLog()
				o.q.restart()
				time.Sleep(4 * time.Second) // The broker is back after three seconds.
				for range windows {
					o.q.publish("m 1")
					time.Sleep(4 * time.Second)
				}
				if early := o.takeLog(); strings.Contains(early, "calm") {
					t.Errorf("%d windows: calm before the inbox was empty: %s", windows, early)
				}
				time.Sleep(5 * time.Second)
				if got := o.takeLog(); got != "calm" {
					t.Errorf("%d windows: not calm after the inbox was empty: %s", windows, got)
				}
			})
			o.check()
		})
	}
}

// TestAfterTheAftermathNothingIsCompared checks a time long after a broker restart, when dlo no
// longer expects the broker to deliver stored letters again. If a letter then arrives that equals a
// stored one, it must be stored as a separate letter.
func TestAfterTheAftermathNothingIsCompared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, counting, accidents())
		o.drainDuring(func() {
			o.q.publish("r twin")
			time.Sleep(time.Second)
			o.q.forgets = func(int) int { return 0 }
			o.q.restart()
			time.Sleep(time.Minute)
			o.takeLog()
			o.q.publish("r twin")
			time.Sleep(time.Minute)
		})
		o.check()
		const want = "fetch 2, commit 2, ack 2, fence, settle"
		if got := o.takeLog(); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	})
}

// TestCalmIsNotRecorded covers a store that fails to record the end of the aftermath of a broker
// restart. The aftermath has then not ended, and the next session must wait again.
func TestCalmIsNotRecorded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, classic, accidents())
		o.drainDuring(func() {
			time.Sleep(time.Second)
			o.takeLog()
			o.setFate(accidents("fail to record calm"))
			o.q.restart()
			time.Sleep(time.Minute)
		})
		o.check()
		const want = "connect, mark, restarted, unmark, fail to record calm, connect, calm"
		if got := o.takeLog(); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	})
}

// TestARestartInTheAftermathOfAnother covers a second broker restart soon after a first one. The
// second restart may bring back letters that already came back after the first one. dlo must
// recognise them again.
func TestARestartInTheAftermathOfAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, classic, accidents())
		o.drainDuring(func() {
			o.q.publish("m 1", "m 2", "m 3")
			time.Sleep(time.Second)
			o.takeLog()
			for range 2 {
				o.q.restart()
				time.Sleep(5 * time.Second)
			}
			time.Sleep(time.Minute)
		})
		o.check()
		const again = "connect, mark, restarted, unmark, fetch 1-3, commit 1-3, 3 merged, ack 1-3, fence, settle, "
		if got := o.takeLog(); got != again+again+"calm" || o.rows != 3 {
			t.Errorf("%d rows\n got %s\nwant %s", o.rows, got, again+again+"calm")
		}
	})
}
