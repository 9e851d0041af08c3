package ingest_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// If the cluster node of a session dies, a quorum queue keeps the session's window, and the next
// session gets the letters behind that window. The marker may still exist, because it is on another
// node. The window comes back late. Its letters with a message id are merged into their rows. Its
// letters without a message id are held as separate rows. The aftermath lasts until the window
// comes back. Until then, an empty inbox proves nothing.
func TestAWindowComesBackLate(t *testing.T) {
	t.Parallel()
	for _, kept := range []string{"keep before the ack", "keep before the fence"} {
		for _, b := range []broker{quorum, counting} {
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(t, b, accidents(kept))
				o.during(func() {
					o.q.publish("m 1", "x", "m 3")
					time.Sleep(time.Second)
					o.q.publish("m 4")
					time.Sleep(time.Minute)
					if early := o.course(); strings.HasSuffix(early, "calm") {
						t.Errorf("%s, %s: calm while the window is kept: %s", b.name, kept, early)
					}
					o.q.release()
					time.Sleep(time.Minute)
				})
				o.check()
				const want = "connect, fetch 1-3, commit 1-3, 2 merged, 1 suspects, ack 1-3, fence, settle, calm"
				if got := o.course(); got != want || o.rows != 5 {
					t.Errorf("%s, %s: %d rows\n got %s\nwant %s", b.name, kept, o.rows, got, want)
				}
			})
		}
	}
}
