package store_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/storetest"
)

// TestDoubtfulTwinsAreSettledAtOnce checks letters that a broker may have delivered twice because
// it was restarted. The query doubt:restart must find them until people have decided about them. A
// single operation must be able to decide about all of them.
func TestDoubtfulTwinsAreSettledAtOnce(t *testing.T) {
	t.Parallel()
	s, clock := open(t)
	bodies := []string{"a", "b", "c", "d"}
	receive(t, s, copies(t, 1, 1, false, bodies...))
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	clock.at = clock.at.Add(time.Minute)
	restarted(t, s)
	w := copies(t, 2, 1, true, bodies...)
	w.Restarted = true
	twins := receive(t, s, w).New
	if n := count(t, s, "doubt:restart"); n != len(bodies) {
		t.Errorf("%d letters are doubted before they are classified", n)
	}
	classify(t, s, deadletter.ClassifiedHold, time.Time{})
	for q, want := range map[string]int{
		"doubt:restart": 4, "doubt:cut-off": 0, "doubt:restart,cut-off state:held": 4, "-doubt:restart": 4,
		"state:dead doubt:restart": 0,
	} {
		if n := count(t, s, q); n != want {
			t.Errorf("%s: %d, want %d", q, n, want)
		}
	}

	operate(t, s, deadletter.VerbDiscard, twins[0], twins[1])
	operate(t, s, deadletter.VerbRelease, twins[2])
	if l := letter(t, s, twins[2]); l.State != deadletter.StateReceived || l.Doubt != "" || !l.Unguarded {
		t.Errorf("released: %s, doubt %q, unguarded %t", l.State, l.Doubt, l.Unguarded)
	}
	op := operate(t, s, deadletter.VerbRequeue, twins[3])
	if n := count(t, s, "doubt:restart"); n != 1 {
		t.Errorf("%d letters are doubted; one is still to be sent", n)
	}
	if err := s.CancelOperation(t.Context(), op, "local"); err != nil {
		t.Fatal(err)
	}
	if l := letter(t, s, twins[3]); l.State != deadletter.StateHeld || l.Doubt != deadletter.DoubtRestart {
		t.Errorf("not sent after all: %s, doubt %q", l.State, l.Doubt)
	}
	_, due := requeue(t, s, clock, twins[3])
	if l := letter(t, s, due[0].Letter.ID); l.Doubt != "" {
		t.Errorf("it is sent, and its doubt is %q", l.Doubt)
	}
	if n := count(t, s, "doubt:restart,cut-off"); n != 0 {
		t.Errorf("%d letters are doubted after all decisions", n)
	}
}

// TestACutOffWindowIsSettledInOneStep checks an operation on the query doubt:cut-off. The query
// finds letters that may be copies of the letters of an earlier window. The operation decides about
// all letters that the query finds. It does not touch the letters of the earlier window.
func TestACutOffWindowIsSettledInOneStep(t *testing.T) {
	t.Parallel()
	for verb, state := range map[deadletter.Verb]deadletter.State{
		deadletter.VerbDiscard: deadletter.StateDiscarded, deadletter.VerbRelease: deadletter.StateReceived,
	} {
		t.Run(string(verb), func(t *testing.T) {
			t.Parallel()
			s, _ := open(t)
			ctx := t.Context()
			w := copies(t, 1, 1, false, "x", "x", "x")
			w.GivesBack = true // after that, nothing shows whether the window came back
			if _, err := s.Receive(ctx, w); err != nil {
				t.Fatal(err)
			}
			classify(t, s, deadletter.ClassifiedDead, time.Time{})
			window, err := s.Look(ctx, "main", "/", "dlo.letters")
			if err != nil || window == nil {
				t.Fatal(window, err)
			}
			if r, err := s.RejoinWindow(
				ctx, *window, copies(t, 2, 1, true, "x", "x", "x"),
			); err != nil || r.Suspects != 3 {
				t.Fatal(r, err)
			}
			classify(t, s, deadletter.ClassifiedHold, time.Time{})
			cutOff, err := query.Parse("doubt:cut-off", query.Options{})
			if err != nil {
				t.Fatal(err)
			}
			held, _, _, err := s.Letters(ctx, cutOff, deadletter.Page{Limit: 10})
			if err != nil || len(held) != 3 {
				t.Fatal(held, err)
			}

			op := deadletter.Operation{Action: verb, By: "local", Through: "api"}
			if err := s.Freeze(ctx, &op, query.Selection{Query: &cutOff}, 0, anyPlace); err != nil {
				t.Fatal(err)
			}
			if _, err := s.LayOut(ctx, op.ID); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Advance(ctx, op.ID, 10, nil); err != nil {
				t.Fatal(err)
			}
			for _, l := range held {
				if got := letter(t, s, l.ID); got.State != state {
					t.Errorf("a letter in doubt is %s", got.State)
				}
			}
			if doubted, dead := count(t, s, "doubt:cut-off"), count(t, s, "state:dead"); doubted != 0 || dead != 3 {
				t.Errorf("%d letters are in doubt, %d of 3 others are dead", doubted, dead)
			}
		})
	}
}

// TestDoubtsOfTheVersionBefore checks that a search for a doubt also finds letters that an older
// version held because they may be twins.
func TestDoubtsOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	path := storetest.FileOf(t, 10)
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	const insert = `INSERT INTO letters (id, random, state, inbox,
		origin, received_at, changed_at, size, twin, suspect, held_from, why)
		VALUES ($1, 1, $2, 1, 0, 1, 1, 1, $3, $4, $5, $6)`
	if _, err := db.Exec(`INSERT INTO inboxes (id, broker, vhost, queue)
		VALUES (1, 'main', '/', 'dlo.letters')`); err != nil {
		t.Fatal(err)
	}
	for i, l := range []struct {
		state    string
		twin     any
		suspect  int
		from, by string
	}{
		{"dead", nil, 0, "", ""},
		{"held", 1, 0, "received", "probably the same as its twin, which the broker delivered again after its restart"},
		{
			"held", 1, 0, "received",
			"probably the same as its twin, delivered again after dlo was cut off between ack and record",
		},
		{"received", 1, 1, "", "probably the same as its twin, which the broker delivered again after its restart"},
		{"held", 1, 0, "received", "no origin: nothing says which queue it died in"},
		{
			"discarded", 1, 0, "held",
			"probably the same as its twin, which the broker delivered again after its restart",
		},
	} {
		if _, err := db.Exec(insert, i+1, l.state, l.twin, l.suspect, l.from, l.by); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for q, want := range map[string]int{"doubt:restart": 2, "doubt:cut-off": 1} {
		if n := count(t, s, q); n != want {
			t.Errorf("%s: %d, want %d", q, n, want)
		}
	}
}
