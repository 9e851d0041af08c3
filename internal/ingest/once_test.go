package ingest_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/deadletteroffice/dlo/internal/ingest"
)

// bodies returns n different bodies that are also message ids.
func bodies(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprint("m ", i+1)
	}
	return list
}

// TestADrainTakesWhatWasAskedFor checks that a drain takes as many letters as requested and leaves
// the rest. If there are fewer letters, it must take all of them.
func TestADrainTakesWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                    string
		letters, count, surplus int
		taken                   int
		course                  string
	}{
		{"an empty queue", 0, 0, 0, 0, ""},
		{
			"all", 10, 0, 0, 10,
			", fetch 1-4, commit 1-4, ack 1-4, fence, settle, fetch 5-10, commit 5-10, ack 5-10, fence, settle",
		},
		{"more than there are", 3, 5, 0, 3, ", fetch 1-3, commit 1-3, ack 1-3, fence, settle"},
		{"as many as there are", 4, 4, 0, 4, ", fetch 1-4, commit 1-4, ack 1-4, fence, settle"},
		{"less than a window", 10, 3, 0, 3, ", fetch 1-3, commit 1-3, ack 1-3, fence, settle"},
		{
			"less than two windows", 10, 6, 0, 6,
			", fetch 1-4, commit 1-4, ack 1-4, fence, settle, fetch 5-6, commit 5-6, ack 5-6, fence, settle",
		},
		{"one comes more", 10, 3, 1, 3, ", fetch 1-4, commit 1-3, ack 1-3, fence, settle, connect"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOffice(t, classic, accidents())
				o.surplus = c.surplus
				o.q.publish(bodies(c.letters)...)
				taken, err := o.drainOnce(t.Context(), c.count, (*ingest.Once).Run)
				if taken != c.taken || err != nil || o.rows != taken || o.q.size() != c.letters-taken {
					t.Errorf("%d taken (%v), %d rows, %d left of %d", taken, err, o.rows, o.q.size(), c.letters)
				}
				if got, want := o.takeLog(), "connect, mark, calm"+c.course; got != want {
					t.Errorf("\n got %s\nwant %s", got, want)
				}
			})
		})
	}
}
