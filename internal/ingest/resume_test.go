package ingest_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/ingest"
)

// TestAWindowComesBackInAnotherOrder checks that a window is recognised in whatever order its
// letters come back. The order may change, because letters that are fetched one by one may be
// returned before consumed ones.
func TestAWindowComesBackInAnotherOrder(t *testing.T) {
	t.Parallel()
	for _, b := range []broker{quorum, counting} {
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t, b, nil)
			crash := accidents("ingest: committed")
			o.setFate(func(point string) bool {
				if point == "cut before the resume" {
					slices.Reverse(o.q.returned)
				}
				return crash(point)
			})
			o.q.publish("m 1", "x", "x", "m 4")
			o.drainDuring(func() { time.Sleep(time.Second) })
			o.check()
			const want = "connect, mark, calm, fetch 1-4, commit 1-4, dlo dies, connect, find 1-4, 4 3 2 1 came back, claim 4 3 2 1, ack 4 3 2 1, fence, settle"
			if got := o.takeLog(); got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		})
	}
}

// TestAnOpenWindowWaitsForALetter checks a process that finds an open window when it starts. Only
// the next letter shows whether the broker received the ack of this window. The window must
// therefore stay open until a letter comes, whichever process receives that letter.
func TestAnOpenWindowWaitsForALetter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, classic, accidents("ingest: fenced", "fail to look"))
		o.q.publish("m 1")
		o.drainDuring(func() { time.Sleep(time.Hour) })
		const waits = "connect, mark, calm, fail to look, connect, fetch 1, commit 1, ack 1, fence, dlo dies, connect, find 1"
		if got := o.takeLog(); got != waits {
			t.Errorf("\n got %s\nwant %s", got, waits)
		}
		o.drainDuring(func() {
			time.Sleep(time.Hour)
			o.q.publish("m 2")
		})
		o.check()
		const decided = "connect, find 1, 2 came instead, settle, commit 2, ack 2, fence, settle"
		if got := o.takeLog(); got != decided {
			t.Errorf("\n got %s\nwant %s", got, decided)
		}
	})
}

// TestTwinsOfAnOpenWindow checks letters that arrive while a window is open and that equal the
// letters of this window. If the broker delivers them for the first time, they do not belong to the
// window.
//
// If they are flagged as redelivered, they may belong to the window. If the broker also counts
// deliveries, the count shows whether they do. Otherwise nobody can know it, so the letters must
// get rows of their own and be held.
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
			o.drainDuring(func() {
				time.Sleep(time.Second)
				o.takeLog()
				o.q.publish(c.body, c.body)
				time.Sleep(time.Second)
			})
			o.check()
			if got, want := o.takeLog(), c.course+", ack 3-4, fence, settle"; got != want || o.rows != c.rows {
				t.Errorf("%s, %s: %d rows\n got %s\nwant %s", c.broker.name, c.body, o.rows, got, want)
			}
		})
	}
}

// TestTwinsThatAnEarlierSessionGot covers letters that equal the letters of an open window. An
// earlier session received these twins and did not store them. In the next session, the twins come
// back in the same way as the window itself would. Nobody can tell the twins from the window, so
// the twins must get rows of their own and be held. For the same reason, the window itself must be
// held if it comes back after such a session.
func TestTwinsThatAnEarlierSessionGot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, dies, fails string
		bodies, twins     []string
		course            string
		rows              int
	}{
		{
			"twins",
			"ingest: fenced",
			"fail to settle",
			[]string{"twin", "twin"},
			[]string{"twin", "twin"},
			"3-4 came instead, fail to settle, connect, find 1-2, 3-4 came back, claim 3-4, 2 suspects, ack 3-4, fence, settle",
			4,
		},
		{
			"the window itself",
			"ingest: committed",
			"fail to claim",
			[]string{"x", "y"},
			nil,
			"1-2 came back, fail to claim, connect, find 1-2, 1-2 came back, claim 1-2, 2 suspects, ack 1-2, fence, settle",
			4,
		},
		{
			"one with a message id", "ingest: committed", "fail to claim",
			[]string{"x", "m 2"},
			nil,
			"1-2 came back, fail to claim, connect, find 1-2, 1-2 came back, claim 1-2, ack 1-2, fence, settle", 2,
		},
	} {
		for _, b := range brokers {
			t.Run(c.name+" on "+b.name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					o := newOffice(t, b, accidents(c.dies, c.fails))
					o.q.publish(c.bodies...)
					o.drainDuring(func() {
						time.Sleep(time.Second)
						o.q.publish(c.twins...)
						time.Sleep(time.Second)
					})
					o.check()
					if got := o.takeLog(); !strings.HasSuffix(got, "find 1-2, "+c.course) || o.rows != c.rows {
						t.Errorf("%d rows\n got %s\nwant ... find 1-2, %s", o.rows, got, c.course)
					}
				})
			})
		}
	}
}

// TestTwinsBehindAWindow covers letters that dlo returned to the broker. In the queue, they follow
// the letters of a window. The returned letters have the flag redelivered and may equal letters of
// the window, but dlo must not mistake them for letters of the window.
//
// A queue has such letters if dlo does not know how many letters of the inbox were returned. It
// also has them if a drain has stored as many letters as it wants, or has received more letters
// than it wants.
func TestTwinsBehindAWindow(t *testing.T) {
	t.Parallel()
	unknown := func(o *office) { o.drainDuring(func() { time.Sleep(time.Minute) }) }
	smaller := func(o *office) { // Each window now has fewer letters, because ingest.letters is smaller.
		o.store.(*ledger).session = deadletter.InboxSession{Number: 1, Prefetch: 32}
		unknown(o)
	}
	once := func(count int) func(o *office) {
		return func(o *office) {
			for _, count := range []int{count, 0} {
				if _, err := o.drainOnce(o.t.Context(), count, (*ingest.Once).Run); err != nil {
					o.t.Error(err)
				}
			}
		}
	}
	for _, c := range []struct {
		name    string
		had     int // number of letters that an earlier session received and gave back
		surplus int
		then    func(o *office)
		course  string
	}{
		{
			"not known", 8, 0, unknown,
			"fetch 1-4, commit 1-4, ack 1-4, fence, dlo dies, connect, find 1-4, 5-8 came back, claim 5-8, 4 suspects, ack 5-8, fence, settle",
		},
		{
			"more than fits", 32, 0, smaller,
			"fetch 1-16, commit 1-16, ack 1-16, fence, dlo dies, connect, find 1-16, 17-32 came back, claim 17-32, 16 suspects, ack 17-32, fence, settle",
		},
		{
			"wants all", 8, 0, once(0),
			"fetch 1-4, commit 1-4, ack 1-4, fence, dlo dies, connect, find 1-4, 5-8 came back, claim 5-8, 4 suspects, ack 5-8, fence, settle",
		},
		{
			"wants no more", 4, 0, once(2),
			"fetch 1-2, commit 1-2, ack 1-2, fence, dlo dies, connect, find 1-2, 3-4 came back, claim 3-4, 2 suspects, ack 3-4, fence, settle",
		},
		{
			"got more", 0, 2, once(2),
			"fetch 1-4, commit 1-2, ack 1-2, fence, dlo dies, connect, find 1-2, 3-4 came back, claim 3-4, 2 suspects, ack 3-4, fence, settle",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(t, classic, accidents("ingest: fenced"))
				o.surplus = c.surplus
				o.q.publish(slices.Repeat([]string{"twin"}, max(c.had, 4))...)
				for _, m := range o.q.ready[:c.had] {
					m.returns = 1
				}
				c.then(o)
				o.check()
				if got, want := o.takeLog(), "connect, mark, calm, "+c.course; got != want || o.rows != o.q.number {
					t.Errorf("%d rows\n got %s\nwant %s", o.rows, got, want)
				}
			})
		})
	}
}

// TestTwinsOfALargerWindow covers windows that become smaller because of large bodies. A session
// may then give back more letters than the next window can have. The letters that were given back
// may be twins of letters in the open window, and may be delivered instead of them.
//
// The next session must therefore begin with a window that is large enough for all of these
// letters. For this, it must know how many letters were given back.
func TestTwinsOfALargerWindow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		accidents []string
		run       func(o *office)
	}{
		{"inbox", []string{"ingest: fenced", "fail to commit", "ingest: fenced"}, func(o *office) {
			o.drainDuring(func() {
				time.Sleep(time.Minute)
				o.q.publish("late")
				time.Sleep(time.Minute)
			})
		}},
		// a drain gives back the twins without an accident
		{"drain", []string{"ingest: fenced", "ingest: fenced"}, func(o *office) {
			for range 3 {
				if _, err := o.drainOnce(o.t.Context(), 0, (*ingest.Once).Run); err != nil {
					o.t.Error(err)
				}
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(t, classic, accidents())
				o.q.publish("1", "2", "3", "4")
				o.q.publish(slices.Repeat([]string{"twin"}, 16)...)
				fetches := 0
				other := inTurn(c.accidents...)
				o.setFate(func(point string) bool {
					switch {
					case point == "large bodies":
						fetches++
						return fetches == 2
					case fetches < 2:
						return false
					}
					return other(point)
				})
				c.run(o)
				o.check()
				if o.rows != o.q.number {
					t.Errorf("%d rows: %s", o.rows, o.takeLog())
				}
			})
		})
	}
}

// TestAFlaggedWindowThatTookAll uses a broker that may flag a letter as redelivered although it
// delivers the letter for the first time. If a window took all letters of the queue, dlo must not
// conclude from these flags that returned letters are still in the queue.
func TestAFlaggedWindowThatTookAll(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(o *office){
		"inbox": func(o *office) { o.drainDuring(func() { time.Sleep(time.Minute) }) },
		"drain": func(o *office) {
			for range 2 {
				if _, err := o.drainOnce(o.t.Context(), 0, (*ingest.Once).Run); err != nil {
					o.t.Error(err)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(t, leaking, accidents("ingest: committed"))
				o.q.publish("r 1", "r 2")
				run(o)
				o.check()
				if o.rows != 2 {
					t.Errorf("%d rows: %s", o.rows, o.takeLog())
				}
			})
		})
	}
}

// TestAWindowThatComesBackTwice covers letters that come back twice: first because the connection
// is cut, and then because dlo dies after it has committed them. Their window contains all letters
// that an earlier session may have received. Therefore, no copies of these letters can follow the
// window in the queue, and each letter must have only one row.
func TestAWindowThatComesBackTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, classic, nil)
		o.setFate(accidents())
		o.drainDuring(func() {
			o.q.publish("x 1")
			time.Sleep(time.Second)
			o.setFate(accidents("cut in the fetch", "ingest: committed"))
			o.q.publish("x 2", "x 3", "x 4", "x 5")
			time.Sleep(time.Second)
		})
		o.check()
		const want = "connect, mark, calm, fetch 1, commit 1, ack 1, fence, settle, cut in the fetch, connect, fetch 2-5, commit 2-5, dlo dies, connect, find 2-5, 2-5 came back, claim 2-5, ack 2-5, fence, settle"
		if got := o.takeLog(); got != want || o.rows != 5 {
			t.Errorf("%d rows\n got %s\nwant %s", o.rows, got, want)
		}
	})
}
