package ingest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/google/go-cmp/cmp"
)

// TestACommitIsTold checks that the classifier and the breakers are notified immediately after a
// commit. If the commit failed, they must not be notified.
func TestACommitIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, classic, accidents("fail to commit", "cut before the ack"))
		back := deadletter.NewID(1, 1)
		o.store = &spy{Store: o.store, returned: []deadletter.ID{back}}
		o.options.Stored = func() { o.note("stored") }
		o.options.CameBack = func(ids []deadletter.ID) { o.note("came back %v", cmp.Equal(ids, []deadletter.ID{back})) }
		o.q.publish("m 1")
		o.drainDuring(func() { time.Sleep(time.Second) })
		const want = "connect, mark, calm, fetch 1, fail to commit, connect, fetch 1, commit 1, stored, came back true, cut before the ack, " +
			"connect, find 1, 1 came back, claim 1, stored, ack 1, fence, settle"
		if got := o.takeLog(); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	})
}
