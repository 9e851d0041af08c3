package ingest_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestAWindowComesBackLate kills the cluster node of a session. A quorum queue then keeps the
// window of that session for some time, and the next session gets the letters that follow this
// window. The marker may still exist, because it is on another node.
//
// When the window comes back late, its letters with a message id must be merged into their rows.
// Its letters without a message id must be held as separate rows. The aftermath must last until the
// window has come back, because until then an empty inbox proves nothing.
func TestAWindowComesBackLate(t *testing.T) {
	t.Parallel()
	for _, kept := range []string{"keep before the ack", "keep before the fence"} {
		for _, b := range []broker{quorum, counting} {
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(t, b, accidents(kept))
				o.drainDuring(func() {
					o.q.publish("m 1", "x", "m 3")
					time.Sleep(time.Second)
					o.q.publish("m 4")
					time.Sleep(time.Minute)
					if early := o.takeLog(); strings.HasSuffix(early, "calm") {
						t.Errorf("%s, %s: calm while the window is kept: %s", b.name, kept, early)
					}
					o.q.release()
					time.Sleep(time.Minute)
				})
				o.check()
				const want = "connect, fetch 1-3, commit 1-3, 2 merged, 1 suspects, ack 1-3, fence, settle, calm"
				if got := o.takeLog(); got != want || o.rows != 5 {
					t.Errorf("%s, %s: %d rows\n got %s\nwant %s", b.name, kept, o.rows, got, want)
				}
			})
		}
	}
}
