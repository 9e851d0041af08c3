package ingest_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/ingest"
)

// TestIngestIsBusyInAFlood checks Busy, which reports whether letters are waiting in the broker.
// After a full window of a hundred letters, Busy must return true for a tenth of a second. After a
// smaller window, it must return false.
func TestIngestIsBusyInAFlood(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		letters int
		want    string
	}{{99, "false false"}, {100, "true false"}} {
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t, classic, accidents())
			i := ingest.New(o, &inbox{queue: o.q, limit: 100, first: 100}, o.options)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			go i.Run(ctx)
			time.Sleep(time.Second)
			o.q.publish(slices.Repeat([]string{"x"}, c.letters)...)
			synctest.Wait()
			got := fmt.Sprint(i.Busy())
			time.Sleep(100 * time.Millisecond)
			if got += fmt.Sprint(" ", i.Busy()); got != c.want {
				t.Errorf("after a window of %d letters, and later: busy %s, want %s", c.letters, got, c.want)
			}
			stop()
			synctest.Wait()
			o.check()
		})
	}
}
