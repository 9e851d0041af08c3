package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/google/go-cmp/cmp"
)

// copies returns a window of deliveries with the given bodies. Either all deliveries are flagged as
// redelivered, or none. If a body begins with "m", it is also the message id of its delivery.
func copies(t testing.TB, session, number int64, redelivered bool, bodies ...string) deadletter.Window {
	t.Helper()
	w := window(t, number, "sms", len(bodies))
	w.Session = session
	for i, body := range bodies {
		a := &w.Arrivals[i]
		a.Body, a.Redelivered, a.Properties.MessageID = []byte(body), redelivered, ""
		if body[0] == 'm' {
			a.Properties.MessageID = body
		}
	}
	fillFingerprints(t, &w)
	return w
}

// shape contains the numbers of a receipt, without its ids.
type shape struct{ New, CameBack, Copies, Merged, Suspects int }

func shapeOf(r deadletter.Receipt) shape {
	return shape{len(r.New), r.CameBack, r.Copies, r.Merged, r.Suspects}
}

func restarted(t testing.TB, s *store.Store) {
	t.Helper()
	if err := s.Restarted(context.Background(), "main", "/", "dlo.letters", "dlo.epoch.test"); err != nil {
		t.Fatal(err)
	}
}

// TestLettersAfterABrokerRestart checks letters that dlo received in earlier sessions. After a
// broker restart, they come back one by one, all flagged as redelivered. The flag alone proves
// nothing, so a delivery that equals no earlier letter must always get a row.
func TestLettersAfterABrokerRestart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		before []string // bodies that session 1 receives and settles
		after  []string // bodies that session 2 receives
		change func(w *deadletter.Window)
		want   shape
		twin   int // position, counted from 1, of the earlier letter that is the twin of the first new row; 0 = none
	}{
		{
			name:   "equal with a message id: merged",
			before: []string{"m1"},
			after:  []string{"m1"},
			want:   shape{Merged: 1},
		},
		{
			name:   "equal without: a suspect, linked",
			before: []string{"x"},
			after:  []string{"x"},
			want:   shape{New: 1, Suspects: 1},
			twin:   1,
		},
		{name: "no match: a new row", before: []string{"x", "m1"}, after: []string{"y", "m2"}, want: shape{New: 2}},
		{name: "each row once", before: []string{"m1"}, after: []string{"m1", "m1"}, want: shape{New: 1, Merged: 1}},
		{
			name:   "each suspect's twin once",
			before: []string{"x"},
			after:  []string{"x", "x"},
			want:   shape{New: 2, Suspects: 1},
			twin:   1,
		},
		{
			name:   "twins come back as twins",
			before: []string{"m1", "m1"},
			after:  []string{"m1", "m1"},
			want:   shape{Merged: 2},
		},
		{
			name:   "of twins the older is claimed first",
			before: []string{"x", "x"},
			after:  []string{"x"},
			want:   shape{New: 1, Suspects: 1},
			twin:   1,
		},
		{
			name:   "all kinds at once",
			before: []string{"m1", "x", "m2"},
			after:  []string{"y", "m2", "x", "m1", "m1"},
			want:   shape{New: 3, Merged: 2, Suspects: 1},
		},
		{
			name: "not flagged: a fresh letter", before: []string{"m1"}, after: []string{"m1"},
			change: func(w *deadletter.Window) { w.Arrivals[0].Redelivered = false }, want: shape{New: 1},
		},
		{
			name:   "no restart: the flag says nothing",
			before: []string{"m1"},
			after:  []string{"m1"},
			change: func(w *deadletter.Window) { w.Restarted = false },
			want:   shape{New: 1},
		},
		{
			name:   "merge even without a message id",
			before: []string{"x"},
			after:  []string{"x"},
			change: func(w *deadletter.Window) { w.Uncertain = deadletter.UncertainMerge },
			want:   shape{Merged: 1},
		},
		{
			name: "keep: a row of its own that nobody holds", before: []string{"x"}, after: []string{"x"},
			change: func(w *deadletter.Window) { w.Uncertain = deadletter.UncertainKeep }, want: shape{New: 1}, twin: 1,
		},
		{
			name:   "another inbox knows nothing of it",
			before: []string{"m1"},
			after:  []string{"m1"},
			change: func(w *deadletter.Window) { w.Inbox = "other" },
			want:   shape{New: 1},
		},
		{
			name:   "another vhost knows nothing of it",
			before: []string{"m1"},
			after:  []string{"m1"},
			change: func(w *deadletter.Window) { w.VHost = "other" },
			want:   shape{New: 1},
		},
		{
			name:   "letters of this session are not claimed",
			before: []string{"m1"},
			after:  []string{"m1"},
			change: func(w *deadletter.Window) { w.Session = 1 },
			want:   shape{New: 1},
		},
		{
			name: "another byte", before: []string{"m1"}, after: []string{"m1"},
			change: func(w *deadletter.Window) { w.Arrivals[0].Body = []byte("m2") }, want: shape{New: 1},
		},
		{
			name:   "a delivery count does not matter",
			before: []string{"m1"},
			after:  []string{"m1"},
			change: func(w *deadletter.Window) { w.Arrivals[0].Properties.Headers["x-delivery-count"] = int64(1) },
			want:   shape{Merged: 1},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, clock := open(t)
			first := receive(t, s, copies(t, 1, 1, false, c.before...))
			clock.at = clock.at.Add(time.Minute)
			restarted(t, s)
			w := copies(t, 2, 1, true, c.after...)
			w.Restarted = true
			if c.change != nil {
				c.change(&w)
				fillFingerprints(t, &w)
			}
			r := receive(t, s, w)
			if diff := cmp.Diff(c.want, shapeOf(r)); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			if n := count(t, s, ""); n != len(c.before)+len(r.New) {
				t.Errorf("%d rows", n)
			}
			if len(r.New) == 1 || c.twin > 0 {
				l := letter(t, s, r.New[0])
				var want deadletter.ID
				if c.twin > 0 {
					want = first.New[c.twin-1]
				}
				if l.Twin != want || (l.Doubt != "") != (c.want.Suspects > 0) || (l.Why != "") != (l.Twin != "") {
					t.Errorf("twin %q, want %q; doubt %q; why %q", l.Twin, want, l.Doubt, l.Why)
				}
			}
		})
	}
}

// TestARowIsClaimedOnceAcrossWindows checks stored letters that come back after a broker restart.
// Each letter is expected to come back at most once. If a delivery in one window was matched with
// the row of a letter, an equal delivery in the next window must not be matched with this row.
func TestARowIsClaimedOnceAcrossWindows(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"m1", "x"} {
		s, _ := open(t)
		receive(t, s, copies(t, 1, 1, false, body))
		restarted(t, s)
		var got []shape
		for number := range int64(3) {
			w := copies(t, 2, number+1, true, body)
			w.Restarted = true
			got = append(got, shapeOf(receive(t, s, w)))
		}
		want := []shape{{Merged: 1}, {New: 1}, {New: 1}}
		if body == "x" {
			want[0] = shape{New: 1, Suspects: 1}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", body, diff)
		}
	}
}

// TestASecondRestartBringsBackTheSameLetter checks two restarts of a broker. The first one brings
// back stored letters, and dlo acknowledges them again. The second restart may undo these acks as
// well, so dlo must then recognise each of these letters once more.
func TestASecondRestartBringsBackTheSameLetter(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := context.Background()
	receive(t, s, copies(t, 1, 1, false, "m1", "m2"))
	for session := int64(2); session < 5; session++ {
		c.at = c.at.Add(10 * time.Second)
		restarted(t, s)
		w := copies(t, session, 1, true, "m2", "m1", "m1")
		w.Restarted = true
		w.Arrivals = w.Arrivals[:2+session/4] // the last session has one delivery more
		want := shape{Merged: 2}
		if session == 4 {
			want.New = 1
		}
		if diff := cmp.Diff(want, shapeOf(receive(t, s, w))); diff != "" {
			t.Errorf("session %d (-want +got):\n%s", session, diff)
		}
		c.at = c.at.Add(10 * time.Second)
		if err := s.Calm(ctx, "main", "/", "dlo.letters", fmt.Sprintf("dlo.epoch.%d", session)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheHorizonBoundsTheLook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		age   time.Duration // age of the first session when the restart is detected
		later time.Duration // time from the restart until the letter comes back
		rows  int
		want  shape
	}{
		{"within", 10 * time.Minute, 0, 50000, shape{Merged: 1}},
		{"beyond", 10*time.Minute + time.Millisecond, 0, 50000, shape{New: 1}},
		{"reckoned from when the restart was seen", 9 * time.Minute, time.Hour, 50000, shape{Merged: 1}},
		{"newer letters fill the rows", time.Minute, 0, 3, shape{New: 1}},
		{"rows enough", time.Minute, 0, 4, shape{Merged: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, clock := open(t)
			receive(t, s, copies(t, 1, 1, false, "m1"))
			receive(t, s, copies(t, 1, 2, false, "m2", "m3", "m4"))
			clock.at = clock.at.Add(c.age)
			restarted(t, s)
			clock.at = clock.at.Add(c.later)
			w := copies(t, 2, 1, true, "m1")
			w.Restarted, w.HorizonRows = true, c.rows
			if diff := cmp.Diff(c.want, shapeOf(receive(t, s, w))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSessionsOfAnInbox(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := context.Background()
	begin := func() deadletter.InboxSession {
		session, err := s.BeginSession(ctx, "main", "/", "dlo.letters")
		if err != nil {
			t.Fatal(err)
		}
		return session
	}
	reached := func(want map[[2]string]bool) {
		t.Helper()
		if got, err := s.Reached(ctx); err != nil || !cmp.Equal(got, want) {
			t.Errorf("connected once: %v, %v; want %v", got, err, want)
		}
	}
	var got []deadletter.InboxSession
	got = append(got, begin())
	reached(map[[2]string]bool{}) // the session has only tried to connect to the broker
	if err := s.Calm(ctx, "main", "/", "dlo.letters", "dlo.epoch.1"); err != nil {
		t.Fatal(err)
	}
	reached(map[[2]string]bool{{"main", "/"}: true})
	got = append(got, begin())
	restarted(t, s)
	got = append(got, begin())
	if err := s.Calm(ctx, "main", "/", "dlo.letters", "dlo.epoch.2"); err != nil {
		t.Fatal(err)
	}
	got = append(got, begin())
	want := []deadletter.InboxSession{
		{Number: 1},
		{Number: 2, Marker: "dlo.epoch.1"},
		{Number: 3, Marker: "dlo.epoch.test", Restarted: true},
		{Number: 4, Marker: "dlo.epoch.2"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

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
