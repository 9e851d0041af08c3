package ingest_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestNothingIsFetchedWithoutRoom checks that dlo tries again once a second if the store has no
// room or is unavailable. Until then, no letter may be fetched and no session may hold the queue,
// so that the letters stay in the broker.
func TestNothingIsFetchedWithoutRoom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		broken []string // accidents that happen for a while
		window string   // log of what happens to the first window
		looks  string
		later  string
	}{
		{
			"no room",
			[]string{"no room"},
			"fetch 2, commit 2, ack 2, fence, settle, no room", "no room",
			"connect, fetch 3, commit 3, ack 3, fence, settle",
		},
		{
			"the store is away before the commit",
			[]string{"fail to commit", "fail to ping"},
			"fetch 2, fail to commit", "fail to ping",
			"connect, fetch 2-3, commit 2-3, ack 2-3, fence, settle",
		},
		{
			"the store is away after the commit",
			[]string{"fail to settle", "fail to ping"},
			"fetch 2, commit 2, ack 2, fence, fail to settle", "fail to ping",
			"connect, find 2, 3 came instead, settle, commit 3, ack 3, fence, settle",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(t, classic, accidents())
				o.drainDuring(func() {
					o.q.publish("m 1")
					time.Sleep(time.Second)
					o.takeLog()
					o.setFate(func(point string) bool { return slices.Contains(c.broken, point) })
					o.q.publish("m 2")
					time.Sleep(4500 * time.Millisecond)
					o.q.publish("m 3")
					time.Sleep(5 * time.Second)
					synctest.Wait()
					if got, want := o.takeLog(), c.window+strings.Repeat(
						", "+c.looks, 10,
					); got != want || !o.q.isFree() {
						t.Errorf("the queue is free: %v\n got %s\nwant %s", o.q.isFree(), got, want)
					}
					o.setFate(accidents())
					time.Sleep(time.Second)
				})
				o.check()
				if got := o.takeLog(); got != c.later {
					t.Errorf("\n got %s\nwant %s", got, c.later)
				}
			})
		})
	}
}
