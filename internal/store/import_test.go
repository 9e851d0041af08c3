package store_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/storetest"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// importedOf returns a letter in the form in which an export contains it.
func importedOf(t *testing.T, s *store.Store, id deadletter.ID) deadletter.Imported {
	t.Helper()
	l, err := s.Letter(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	row := deadletter.Row{
		ID: l.ID, State: l.State, ReceivedAt: l.ReceivedAt, DiedAt: l.DiedAt, Reason: l.Reason, Error: l.Error,
		Attempts: 2,
	}
	row.SetOrigin(l.Origin())
	return deadletter.Imported{
		Row: row, Inbox: l.Inbox, ArrivedBy: l.ArrivedBy, Properties: l.Properties, Body: l.Body,
	}
}

func TestAnImportKeepsLettersAsTheyWere(t *testing.T) {
	t.Parallel()
	from, _ := open(t)
	to, c := open(t)
	ctx := t.Context()
	ids := receive(t, from, window(t, 1, "sms", 3)).New
	classify(t, from, deadletter.ClassifiedDead, time.Time{})
	for i, action := range []deadletter.Verb{deadletter.VerbDiscard, deadletter.VerbHold} {
		op := deadletter.Operation{Action: action, By: "ann"}
		if err := from.Freeze(ctx, &op, query.Selection{IDs: ids[i+1 : i+2]}, 0, anyPlace); err != nil {
			t.Fatal(err)
		}
		if _, err := from.Advance(ctx, op.ID, 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	var list []deadletter.Imported
	for _, id := range ids {
		list = append(list, importedOf(t, from, id))
	}
	c.at = c.at.Add(time.Hour)
	results, err := to.Import(deadletter.Through(ctx, deadletter.WayCLI), "bob", append(list, list[0]))
	if err != nil || !slices.Equal(results, []deadletter.ImportResult{
		deadletter.ImportNew, deadletter.ImportNew, deadletter.ImportNew, deadletter.ImportKnown,
	}) {
		t.Fatal(results, err)
	}
	for i, id := range ids {
		l, err := to.Letter(ctx, id)
		if err != nil || l.State != deadletter.StateReceived || l.Imported != list[i].Arrives() || l.Attempts != 0 {
			t.Fatalf("%+v %v", l, err)
		}
		again := importedOf(t, to, id)
		again.State = list[i].State
		if diff := cmp.Diff(list[i], again); diff != "" {
			t.Error(diff)
		}
	}
	if n := count(
		t, to, "state:received queue:sms reason:rejected since:2026-11-20T08:00Z before:2026-11-20T08:00:01Z",
	); n != 3 {
		t.Errorf("%d letters are found by where and when they died", n)
	}
	later := receive(t, to, window(t, 2, "sms", 1)).New[0]
	if rows, _, _, err := to.Letters(ctx, query.Query{}, deadletter.Page{Limit: 1}); err != nil || rows[0].ID != later {
		t.Error(rows, err)
	}
	classify(t, to, deadletter.ClassifiedDead, time.Time{})
	if results, err := to.Import(deadletter.Through(ctx, deadletter.WayCLI), "bob", list); err != nil ||
		!slices.Equal(results, []deadletter.ImportResult{
			deadletter.ImportKnown, deadletter.ImportKnown, deadletter.ImportKnown,
		}) {
		t.Error(results, err)
	}
	history, err := to.History(ctx, ids[1])
	if err != nil || !slices.ContainsFunc(history, func(e deadletter.Event) bool {
		return e.Kind == "imported" && e.Actor == "bob" &&
			e.Detail == "through cli; at its source it was discarded, after 2 attempts"
	}) {
		t.Error(history, err)
	}
}

func TestAnImportLeavesTheOrderOfReceiptAlone(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := t.Context()
	own := receive(t, s, window(t, 1, "sms", 1)).New[0]
	l := importedOf(t, s, own)
	serial, random, _ := own.Split()
	at := func(serial int64) deadletter.Imported {
		l.ID = deadletter.NewID(serial, uint64(random+1))
		return l
	}
	newest := c.now().UnixMilli()<<12 + 4095
	results, err := s.Import(ctx, "bob", []deadletter.Imported{
		at(serial), at(deadletter.SerialAt(c.now().Add(time.Millisecond))), at(newest), at(1),
	})
	if err != nil || !slices.Equal(results, []deadletter.ImportResult{
		deadletter.ImportTaken, deadletter.ImportAhead, deadletter.ImportNew, deadletter.ImportNew,
	}) {
		t.Fatal(results, err)
	}
	for number := range int64(2) { // no letter has the serial after the imported one
		next, _, _ := receive(t, s, window(t, number+2, "sms", 1)).New[0].Split()
		if next <= newest {
			t.Errorf("a new letter has serial %d, and %d was there", next, newest)
		}
		newest = next
	}
	// The second of these two letters has an id that is not valid. Because it cannot be stored, the
	// whole transaction must fail, and the next serial must stay the same.
	bad := at(newest + 1)
	bad.ID = "no id"
	if _, err := s.Import(ctx, "bob", []deadletter.Imported{at(2), bad}); !errors.Is(err, deadletter.ErrInvalid) {
		t.Error(err)
	}
	if n := count(t, s, ""); n != 5 {
		t.Errorf("%d letters", n)
	}
}

func TestAnImportWantsRoom(t *testing.T) {
	t.Parallel()
	path := storetest.File(t)
	s, err := store.Open(t.Context(), path, store.Options{Space: store.NewSpace(path, 1<<62, 0, 0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Import(t.Context(), "bob", nil); !errors.Is(err, deadletter.ErrUnavailable) {
		t.Error(err)
	}
}

// TestImportsAmongAllElse runs random actions on a store, with imports in between. The imports
// contain letters of any age, letters whose serial is taken, and letters that were imported before.
func TestImportsAmongAllElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n, failed := 0, false
	rapid.Check(t, func(t *rapid.T) {
		if n++; n > 15 && !failed {
			return
		}
		defer func() { failed = failed || t.Failed() }()
		m := &machine{
			path: filepath.Join(dir, fmt.Sprintf("%d.db", n)), c: &clock{time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)},
		}
		m.w.Session = 1
		m.start(t)
		defer func() { m.s.Close() }()
		var err error
		if m.db, err = sql.Open("sqlite", "file:"+m.path+"?mode=ro&_pragma=busy_timeout(10000)"); err != nil {
			t.Fatal(err)
		}
		defer m.db.Close()
		actions := m.actions()
		actions["import"] = func(t *rapid.T) {
			var list []deadletter.Imported
			for range rapid.IntRange(1, 3).Draw(t, "letters") {
				at := m.c.now().Add(time.Duration(rapid.IntRange(-3600, 5).Draw(t, "seconds")) * time.Second)
				l := deadletter.Imported{
					Row: deadletter.Row{
						ID: deadletter.NewID(
							deadletter.SerialAt(at)+int64(rapid.IntRange(0, 2).Draw(t, "count")),
							uint64(rapid.IntRange(1, 2).Draw(t, "random")),
						),
						ReceivedAt: at,
						State: rapid.SampledFrom([]deadletter.State{
							deadletter.StateDead, deadletter.StateDiscarded, deadletter.StateHeld,
							deadletter.StateScheduled, deadletter.StatePublishing,
						}).Draw(t, "state"),
						Broker: "main",
						VHost:  "/",
						Queue:  rapid.SampledFrom([]string{"sms", "theirs", ""}).Draw(t, "queue"),
						Reason: "rejected",
					},
					Inbox: "their.letters",
					Body:  []byte("theirs"),
				}
				if len(m.ids) > 0 && rapid.IntRange(0, 3).Draw(t, "known") == 0 {
					l.ID = rapid.SampledFrom(m.ids).Draw(t, "id")
				}
				list = append(list, l)
			}
			results, err := m.s.Import(t.Context(), "local", list)
			fail(t, err)
			for i, r := range results {
				if known := slices.Contains(m.ids, list[i].ID); known != (r == deadletter.ImportKnown) {
					t.Errorf("%s: %s, known: %v", list[i].ID, r, known)
				}
				if r == deadletter.ImportNew {
					m.ids = append(m.ids, list[i].ID)
				}
			}
		}
		t.Repeat(actions)
	})
}
