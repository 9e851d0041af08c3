package ingest_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/ingest"
)

// TestADrainLeavesAWindowOpen kills a drain, which leaves a window open. The next drain must begin
// with this window. If dlo starts without a drain, it must only close the window, and other letters
// must go back to the queue. If the queue is empty, the window cannot come back.
func TestADrainLeavesAWindowOpen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		letters int
		dies    string
		closes  string // the log of a process that calls Resolve
		goesOn  string // the log of the next drain, after that
		taken   int
	}{
		{
			"and it comes back", 3, "ingest: committed",
			"connect, find 1-2, 1-2 came back, claim 1-2, ack 1-2, fence, settle",
			", fetch 3, commit 3, ack 3, fence, settle", 1,
		},
		{
			"and it was acknowledged", 3, "ingest: fenced", "connect, find 1-2, 3 came instead, settle, connect",
			", fetch 3, commit 3, ack 3, fence, settle", 1,
		},
		{"and the queue is empty", 2, "ingest: fenced", "connect, find 1-2, nothing came, settle", "", 0},
		{"settled", 3, "ingest: settled", "connect", ", fetch 3, commit 3, ack 3, fence, settle", 1},
	} {
		for _, resolve := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, resolve %v", c.name, resolve), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					o := newOffice(t, classic, accidents(c.dies))
					o.q.publish(bodies(c.letters)...)
					o.drainOnce(t.Context(), 2, (*ingest.Once).Run)
					o.takeLog()
					run, want, wantTaken := (*ingest.Once).Run, c.closes+c.goesOn, c.taken
					if resolve {
						run, want, wantTaken = (*ingest.Once).Resolve, c.closes, 0
					}
					taken, err := o.drainOnce(t.Context(), 0, run)
					if got := o.takeLog(); taken != wantTaken || err != nil || got != want || len(o.open) > 0 {
						t.Errorf("%d taken (%v), open %v\n got %s\nwant %s", taken, err, o.open, got, want)
					}
					if o.rows+o.q.size() != c.letters {
						t.Errorf("%d letters are %d rows and %d left in the queue", c.letters, o.rows, o.q.size())
					}
				})
			})
		}
	}
}

// TestAnOpenWindowOfAQueueThatIsGone checks a window that is open when its queue is deleted. The
// window cannot come back and must be closed. If the queue only refuses access, the window may
// still come back and must stay open.
func TestAnOpenWindowOfAQueueThatIsGone(t *testing.T) {
	t.Parallel()
	for why, open := range map[error]int{deadletter.ErrNotFound: 0, deadletter.ErrConflict: 1} {
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t, classic, accidents("ingest: fenced"))
			o.q.publish("m 1")
			o.drainOnce(t.Context(), 0, (*ingest.Once).Run)
			o.refused = why
			_, err := o.drainOnce(t.Context(), 0, (*ingest.Once).Resolve)
			if len(o.open) != open || (err != nil) != (open > 0) || err != nil && !errors.Is(err, why) {
				t.Errorf("%v: %d windows open, %v", why, len(o.open), err)
			}
		})
	}
}
