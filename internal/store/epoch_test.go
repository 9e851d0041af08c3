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
