package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/google/go-cmp/cmp"
)

// TestClaimOfAnOpenWindow checks a session that finds an open window. The session must take back
// either the whole window or nothing.
func TestClaimOfAnOpenWindow(t *testing.T) {
	t.Parallel()
	count := func(n ...int64) []int64 { return n } // value of x-delivery-count for each delivery; -1 = absent
	for _, c := range []struct {
		name         string
		bodies       []string
		earlier      []string // bodies of an earlier window that is settled
		first, again []int64
		looks        int  // number of earlier sessions that ended without a decision
		givesBack    bool // the session also gives back letters that were behind the window
		change       func(w *deadletter.Window)
		want         shape
		held         bool // the new rows are suspects, because they may be copies
	}{
		{name: "taken back", bodies: []string{"x", "y"}, want: shape{Merged: 2}},
		{name: "byte-identical letters too", bodies: []string{"x", "x", "x"}, want: shape{Merged: 3}},
		{
			name:    "the flag leaks, but one letter has no twin",
			bodies:  []string{"x", "y"},
			earlier: []string{"x"},
			change:  flagsLeak,
			want:    shape{Merged: 2},
		},
		{
			name:   "the flag leaks and every letter has a twin: suspects",
			bodies: []string{"x", "x"},
			change: flagsLeak,
			want:   shape{New: 2, Suspects: 2},
			held:   true,
		},
		{
			name:    "twins in an earlier window count",
			bodies:  []string{"x", "y"},
			earlier: []string{"y", "x"},
			change:  flagsLeak,
			want:    shape{New: 2, Suspects: 2},
			held:    true,
		},
		{
			name: "twins beyond the horizon do not", bodies: []string{"x", "y"}, earlier: []string{"y", "x"},
			change: func(w *deadletter.Window) { flagsLeak(w); w.Horizon = time.Second }, want: shape{Merged: 2},
		},
		{
			name:   "doubtful and merge",
			bodies: []string{"x", "x"},
			change: func(w *deadletter.Window) { flagsLeak(w); w.Uncertain = deadletter.UncertainMerge },
			want:   shape{Merged: 2},
		},
		{
			name:   "doubtful and keep",
			bodies: []string{"x", "x"},
			change: func(w *deadletter.Window) { flagsLeak(w); w.Uncertain = deadletter.UncertainKeep },
			want:   shape{New: 2},
		},
		{
			name:   "the count went up by one: a return",
			bodies: []string{"x", "x"},
			first:  count(0, 3),
			again:  count(1, 4),
			change: countsReturns,
			want:   shape{Merged: 2},
		},
		{
			name:   "the count appeared: a return",
			bodies: []string{"x", "x"},
			first:  count(-1, -1),
			again:  count(1, 1),
			change: countsReturns,
			want:   shape{Merged: 2},
		},
		{
			name:   "the count is the same: fresh twins",
			bodies: []string{"x", "x"},
			first:  count(1, 1),
			again:  count(1, 1),
			change: countsReturns,
			want:   shape{New: 2},
		},
		{
			name:   "the count appeared where only that is told: a return",
			bodies: []string{"x", "x"},
			first:  count(-1, -1),
			again:  count(1, 1),
			change: countsFirstReturn,
			want:   shape{Merged: 2},
		},
		{
			name:   "the count was there where only its appearing is told: doubtful",
			bodies: []string{"x", "x"},
			first:  count(1, 1),
			again:  count(1, 1),
			change: countsFirstReturn,
			want:   shape{New: 2, Suspects: 2},
			held:   true,
		},
		{
			name:   "counts that agree on nothing: doubtful",
			bodies: []string{"x", "x"},
			first:  count(1, 1),
			again:  count(1, 2),
			change: countsReturns,
			want:   shape{New: 2, Suspects: 2},
			held:   true,
		},
		{
			name:   "no counts at all: doubtful",
			bodies: []string{"x", "x"},
			first:  count(-1, -1),
			again:  count(-1, -1),
			change: countsReturns,
			want:   shape{New: 2, Suspects: 2},
			held:   true,
		},
		{
			name:   "a session before may have given back twins",
			bodies: []string{"x", "y"},
			looks:  1,
			want:   shape{New: 2, Suspects: 2},
			held:   true,
		},
		{name: "one of whose letters has a message id", bodies: []string{"x", "m"}, looks: 1, want: shape{Merged: 2}},
		{
			name:   "whose letters were counted once more then",
			bodies: []string{"x", "x"},
			first:  count(-1, -1),
			again:  count(1, 1),
			looks:  1,
			change: countsReturns,
			want:   shape{New: 2, Suspects: 2},
			held:   true,
		},
		{
			name:   "whose letters come for the first time",
			bodies: []string{"x", "x"},
			first:  count(1, 1),
			again:  count(1, 1),
			looks:  1,
			change: countsReturns,
			want:   shape{New: 2},
		},
		{
			name:      "letters behind the window went back",
			bodies:    []string{"x", "y"},
			givesBack: true,
			want:      shape{New: 2, Suspects: 2},
			held:      true,
		},
		{
			name:   "the broker restarted: a part may have come back, and one more",
			bodies: []string{"x", "m"},
			change: restarts,
			want:   shape{New: 1, Merged: 1, Suspects: 1},
			held:   true,
		},
		{
			name:   "the broker restarted, and each letter has a message id",
			bodies: []string{"m", "m 2"},
			change: restarts,
			want:   shape{Merged: 2},
		},
		{
			name:   "counts where nobody says they tell: doubtful",
			bodies: []string{"x", "x"},
			first:  count(0, 0),
			again:  count(1, 1),
			change: flagsLeak,
			want:   shape{New: 2, Suspects: 2},
			held:   true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, clock := open(t)
			ctx := context.Background()
			if len(c.earlier) > 0 {
				receive(t, s, copies(t, 1, 1, false, c.earlier...))
				clock.at = clock.at.Add(time.Minute)
			}
			w := copies(t, 1, 2, false, c.bodies...)
			w.GivesBack = c.givesBack
			setDeliveryCounts(t, &w, c.first)
			first, err := s.Receive(ctx, w)
			if err != nil {
				t.Fatal(err)
			}
			for range c.looks {
				if _, err := s.Look(ctx, "main", "/", "dlo.letters"); err != nil {
					t.Fatal(err)
				}
			}
			opened, err := s.Look(ctx, "main", "/", "dlo.letters")
			if err != nil || opened == nil || opened.ID != first.Window {
				t.Fatal(opened, err)
			}
			again := copies(t, 2, 1, true, c.bodies...)
			setDeliveryCounts(t, &again, c.again)
			if c.change != nil {
				c.change(&again)
			}
			for i, f := range opened.Fingerprints {
				if f != again.Arrivals[i].Fingerprint {
					t.Fatalf("delivery %d has another fingerprint when it returns", i)
				}
			}
			r, err := s.RejoinWindow(ctx, *opened, again)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, shapeOf(r)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			for i, id := range r.New {
				l := letter(t, s, id)
				if (l.Doubt == deadletter.DoubtCutOff) != c.held || c.held && l.Twin != first.New[i] {
					t.Errorf("doubt %q of %q", l.Doubt, l.Twin)
				}
			}
			open, err := s.Look(ctx, "main", "/", "dlo.letters")
			if err != nil || open == nil || open.ID != r.Window {
				t.Fatalf("the open window is %+v, the receipt says %d (%v)", open, r.Window, err)
			}
			if err := s.SettleWindow(ctx, r.Window); err != nil {
				t.Fatal(err)
			}
			if open, err := s.Look(ctx, "main", "/", "dlo.letters"); open != nil || err != nil {
				t.Errorf("still open: %+v, %v", open, err)
			}
		})
	}
}

func flagsLeak(w *deadletter.Window) { w.RedeliveredLeaks = true }

func restarts(w *deadletter.Window) { w.Restarted = true }

func countsReturns(w *deadletter.Window) { w.RedeliveredLeaks, w.EveryReturnCounted = true, true }

func countsFirstReturn(w *deadletter.Window) { w.RedeliveredLeaks, w.FirstReturnCounted = true, true }

// setDeliveryCounts sets x-delivery-count of each delivery in a window to the number at the same
// position in n.
func setDeliveryCounts(t testing.TB, w *deadletter.Window, n []int64) {
	t.Helper()
	for i := range n {
		if n[i] >= 0 {
			w.Arrivals[i].Properties.Headers["x-delivery-count"] = n[i]
		}
	}
	fillFingerprints(t, w)
}

// TestAClaimThatIsCutOffIsClaimedAgain checks an open window that comes back in one session after
// another, because each session is cut off. The window must stay open, and the next session must
// take it back.
func TestAClaimThatIsCutOffIsClaimedAgain(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := context.Background()
	if _, err := s.Receive(ctx, copies(t, 1, 1, false, "x", "y")); err != nil {
		t.Fatal(err)
	}
	for session := int64(2); session < 5; session++ {
		open, err := s.Look(ctx, "main", "/", "dlo.letters")
		if err != nil || open == nil || len(open.Fingerprints) != 2 {
			t.Fatal(open, err)
		}
		if r, err := s.RejoinWindow(ctx, *open, copies(t, session, 1, true, "x", "y")); err != nil || r.Merged != 2 {
			t.Fatal(r, err)
		}
	}
	if n := count(t, s, ""); n != 2 {
		t.Errorf("%d letters", n)
	}
}

// TestADoubtfulClaimThatIsCutOff checks letters that come back with the redelivered flag. They may
// be the letters of the open window, or equal letters that an earlier session gave back. Several
// sessions in turn receive these letters, and each session is cut off before the window is settled.
// The window must stay in doubt, and its letters must become suspects in each session.
func TestADoubtfulClaimThatIsCutOff(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := context.Background()
	w := copies(t, 1, 1, false, "x")
	w.GivesBack = true
	if _, err := s.Receive(ctx, w); err != nil {
		t.Fatal(err)
	}
	for session := int64(2); session < 5; session++ {
		open, err := s.Look(ctx, "main", "/", "dlo.letters")
		if err != nil || open == nil {
			t.Fatal(open, err)
		}
		if r, err := s.RejoinWindow(ctx, *open, copies(t, session, 1, true, "x")); err != nil || r.Suspects != 1 {
			t.Fatal(r, err)
		}
	}
}

func TestAClaimOfAnotherSizeIsRefused(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := context.Background()
	if _, err := s.Receive(ctx, copies(t, 1, 1, false, "x", "y")); err != nil {
		t.Fatal(err)
	}
	open, err := s.Look(ctx, "main", "/", "dlo.letters")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := s.RejoinWindow(ctx, *open, copies(t, 2, 1, true, "x")); err == nil {
		t.Error(r)
	}
	if _, err := s.RejoinWindow(ctx, deadletter.OpenWindow{ID: 999}, copies(t, 2, 1, true, "x")); err == nil {
		t.Error("a window that does not exist is claimed")
	}
}

// TestTheJournalIsPruned checks that the journal keeps each window for the horizon and for the time
// keepJournal after it. Older windows must be deleted.
func TestTheJournalIsPruned(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	for number := range int64(3) {
		receive(t, s, copies(t, 1, number+1, false, fmt.Sprintf("m%d", number)))
	}
	c.at = c.at.Add(10*time.Minute + time.Hour + time.Second)
	receive(t, s, copies(t, 1, 63, false, "m63"))
	receive(t, s, copies(t, 1, 64, false, "m64"))
	var n int
	if err := rawDB(t, s.Path()).QueryRow(`SELECT count(*) FROM windows`).Scan(&n); err != nil || n != 2 {
		t.Errorf("%d windows, %v", n, err)
	}
}
