package ingest_test

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestWhatADeliveryLimitDeletesIsCounted uses a broker that deletes letters after too many
// deliveries. If it deletes letters before dlo has stored them, dlo must count these letters and
// report them once.
func TestWhatADeliveryLimitDeletesIsCounted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		accidents []string
		course    string
	}{
		{
			"stored by the last delivery",
			[]string{"ingest: fetched"},
			"connect, mark, calm, fetch 1-2, dlo dies, connect, fetch 1-2, 2 at stake, commit 1-2, ack 1-2, fence, settle",
		},
		{
			"deleted",
			[]string{"ingest: fetched", "ingest: at stake"},
			"connect, mark, calm, fetch 1-2, dlo dies, connect, fetch 1-2, 2 at stake, dlo dies, connect, 2 missing, 0 at stake",
		},
		{
			"deleted as the store fails",
			[]string{"ingest: fetched", "fail to commit"},
			"connect, mark, calm, fetch 1-2, dlo dies, connect, fetch 1-2, 2 at stake, fail to commit, connect, 2 missing, 0 at stake",
		},
		{
			"stored, and what is at stake is not recorded",
			[]string{"ingest: fetched", "fail to record what is at stake"},
			"connect, mark, calm, fetch 1-2, dlo dies, connect, fetch 1-2, fail to record what is at stake, commit 1-2, ack 1-2, fence, settle",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				limited := counting
				limited.deletes = 1
				o := newOffice(t, limited, accidents(c.accidents...))
				o.q.publish("m 1", "m 2")
				o.drainDuring(func() { time.Sleep(time.Minute) })
				if got := o.takeLog(); got != c.course {
					t.Errorf("\n got %s\nwant %s", got, c.course)
				}
			})
		})
	}
}
