package store_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/internal/storetest"
	"github.com/google/go-cmp/cmp"
)

// TestUndo checks that a decision can be undone, unless the group has changed since the decision.
func TestUndo(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("a", 1, 1)
	g.die("b", 2, 1)
	both := []deadletter.GroupID{1, 2}
	before := g.load(1)
	owner, ticket, page := "ben", "OPS-1", deadletter.SeverityNotify
	for _, d := range []deadletter.Decision{
		{Groups: both, Owner: &owner, Ticket: &ticket, Severity: &page, Note: "looked at it"},
		{Groups: both, Resolve: &deadletter.Resolution{Version: "2"}},
		{Groups: both, Snooze: &deadletter.Snooze{Until: g.clock.now().Add(time.Hour + 1234567)}},
		{Groups: []deadletter.GroupID{1}, Into: 2},
	} {
		done := g.decide(d)
		undone, err := g.Undo(t.Context(), done.ID, "ben")
		if err != nil || len(undone.Groups) != len(d.Groups) {
			t.Fatal(undone, err)
		}
		after := g.load(1)
		after.ChangedAt = before.ChangedAt // an undo is also a change
		if diff := cmp.Diff(before.GroupRow, after.GroupRow); diff != "" || after.Head != 0 {
			t.Errorf("%s: %s", done.Kind, diff)
		}
		if _, err := g.Undo(t.Context(), done.ID, "ben"); !errors.Is(err, deadletter.ErrConflict) {
			t.Errorf("a second undo: %v", err)
		}
	}
	done := g.decide(deadletter.Decision{Groups: both, Resolve: &deadletter.Resolution{}})
	g.advance(time.Hour)
	g.die("a", 1, 1)
	undone, err := g.Undo(t.Context(), done.ID, "ben")
	if err != nil || !slices.Equal(undone.Groups, []deadletter.GroupID{2}) || len(undone.Skipped) != 1 ||
		undone.Skipped[0].Group != 1 {
		t.Errorf("%+v %v", undone, err)
	}
	if one := g.load(1); one.Status != deadletter.GroupRegressed {
		t.Errorf("an undo undid what the group did by itself: %s", one.Status)
	}
	if _, err := g.Undo(t.Context(), 99, "ben"); !errors.Is(err, deadletter.ErrNotFound) {
		t.Error(err)
	}
	list, err := g.Decisions(t.Context(), time.Time{}, 10)
	if err != nil || len(list) != 5 || list[0].ID != done.ID || list[0].UndoneAt.IsZero() || list[4].By != "ana" ||
		!slices.Equal(list[4].Groups, both) {
		t.Errorf("%+v %v", list, err)
	}
}

func TestDecisionsThatAreRefused(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("a", 1, 1)
	long, loud := strings.Repeat("x", 5000), deadletter.Severity("loud")
	one := []deadletter.GroupID{1}
	for what, d := range map[string]deadletter.Decision{
		"nothing":                 {Groups: one},
		"no group":                {Note: "n"},
		"two at once":             {Groups: one, Reopen: true, Split: true},
		"a long note":             {Groups: one, Note: long},
		"a long owner":            {Groups: one, Owner: &long},
		"a severity that is none": {Groups: one, Severity: &loud},
		"the past":                {Groups: one, Snooze: &deadletter.Snooze{Until: g.clock.now()}},
		"for ever": {
			Groups: one, Snooze: &deadletter.Snooze{Until: g.clock.now().Add(91 * 24 * time.Hour)},
		},
		"fewer letters": {Groups: one, Snooze: &deadletter.Snooze{After: -1}},
	} {
		if _, err := g.Decide(t.Context(), d); !errors.Is(err, deadletter.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, d := range map[string]deadletter.Decision{
		"open": {Groups: one, Reopen: true}, "not merged": {Groups: one, Split: true}, "itself": {Groups: one, Into: 1},
	} {
		if _, err := g.Decide(t.Context(), d); !errors.Is(err, deadletter.ErrConflict) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, d := range map[string]deadletter.Decision{
		"no such group": {Groups: []deadletter.GroupID{1, 9}, Note: "n"},
		"into none":     {Groups: one, Into: 9},
	} {
		if _, err := g.Decide(t.Context(), d); !errors.Is(err, deadletter.ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if one := g.load(1); len(one.History) != 0 || one.Note != "" {
		t.Errorf("refused, and yet %+v", one.History)
	}
}

// TestUndoAndWhatPeopleWereTold undoes decisions that end a group. If people were not yet notified
// of the end, they must never get this notice. If they were notified of the end, they must get a
// notice that the group is open again.
func TestUndoAndWhatPeopleWereTold(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("sms", 1, 5)
	g.advance(time.Minute)
	g.deliverNotices("oncall")
	resolve := deadletter.Decision{Groups: []deadletter.GroupID{1}, Resolve: &deadletter.Resolution{}}
	undo := func(d deadletter.Decided) {
		t.Helper()
		if _, err := g.Undo(t.Context(), d.ID, "ana"); err != nil {
			t.Fatal(err)
		}
	}
	undo(g.decide(resolve))
	if got := g.deliverNotices("oncall"); got != nil {
		t.Errorf("nobody had heard of the end: %v", got)
	}
	done := g.decide(resolve)
	if got := g.deliverNotices("oncall"); !slices.Equal(got, []string{"resolved G-1/1"}) {
		t.Error(got)
	}
	undo(done)
	g.advance(time.Minute)
	if got := g.deliverNotices("oncall"); len(got) != 1 || !strings.HasPrefix(got[0], "opened G-1/") {
		t.Error(got)
	}
	g.decide(resolve)
	g.deliverNotices("oncall")
	reopened := g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Reopen: true})
	g.die("sms", 1, 1)
	g.advance(time.Minute)
	if got := g.deliverNotices("oncall"); len(got) != 1 {
		t.Error(got)
	}
	undo(reopened)
	if got := g.deliverNotices("oncall"); len(got) != 1 || !strings.HasPrefix(got[0], "resolved G-1/") {
		t.Errorf("it is resolved again, and its incident stays open: %v", got)
	}
}

// TestUndoOfASplitMakesNoChains checks an undo that would merge a group into a group which is
// itself merged into another group. The undo must fail with ErrConflict.
func TestUndoOfASplitMakesNoChains(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	for key := range byte(3) {
		g.die(fmt.Sprint("q", key), key+1, 1)
	}
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2}, Into: 1})
	split := g.decide(deadletter.Decision{Groups: []deadletter.GroupID{2}, Split: true})
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{3}, Into: 2})
	if _, err := g.Undo(t.Context(), split.ID, "ana"); !errors.Is(err, deadletter.ErrConflict) {
		t.Errorf("G-3 is in G-2, which is in G-1: %v", err)
	}
	if counts, err := g.GroupCounts(t.Context(), ""); err != nil || counts.Letters != 3 || counts.Inbox != 2 {
		t.Errorf("%+v %v", counts, err)
	}
}

// TestANoteHasItsAuthor checks that a note is shown with the name of its author, even after an
// undo, and after a decision of another person.
func TestANoteHasItsAuthor(t *testing.T) {
	t.Parallel()
	g := withGroups(t)
	g.die("a", 1, 1)
	owner := "cleo"
	says := func(want string) {
		t.Helper()
		if one := g.load(1); one.NoteBy+": "+one.Note != want {
			t.Errorf("%s: %s, want %s", one.NoteBy, one.Note, want)
		}
	}
	write := func(by, note string) deadletter.Decided {
		t.Helper()
		out, err := g.Decide(t.Context(), deadletter.Decision{Groups: []deadletter.GroupID{1}, Note: note, By: by})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	says(": ")
	write("ben", "first")
	says("ben: first")
	g.decide(deadletter.Decision{Groups: []deadletter.GroupID{1}, Owner: &owner}) // ana decides
	says("ben: first")
	second := write("cleo", "second")
	says("cleo: second")
	if _, err := g.Undo(t.Context(), second.ID, "ana"); err != nil {
		t.Fatal(err)
	}
	says("ben: first")
}

// TestOlderNotesHaveTheirAuthors upgrades a store of a version that did not record the authors of
// notes. After that, the notes must have authors, which the recorded decisions show. It must still
// be possible to undo these decisions.
func TestOlderNotesHaveTheirAuthors(t *testing.T) {
	t.Parallel()
	path := storetest.FileOf(t, 26)
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`INSERT OR IGNORE INTO types (id, name) VALUES (0, '')`,
		`INSERT INTO origins (id, broker, vhost, queue) VALUES (1, 'main', '/', 'sms')`,
		`INSERT INTO groups (id, key, version, title, origin,
			type, reason, error, severity, first_at, last_at, note, status) VALUES
			(1, x'01', 1, 'a', 1, 0, 'rejected', '', 'page',
			0, 0, 'first', 'open'), (2, x'02', 1, 'b', 1, 0,
			'rejected', '', 'page', 0, 0, 'pruned', 'open'),
			(3, x'03', 1, 'c', 1, 0, 'rejected', '', 'page', 0, 0, '', 'open')`,
		`INSERT INTO decisions (id, kind, detail, by, at) VALUES (1,
			'note', 'first', 'ben', 1), (2, 'assigned', 'to cleo', 'ana', 2)`,
		`INSERT INTO decision_groups (decision, grp, was, is_now)
			VALUES (1, 1, '{"status":"open"}', '{"status":"open","note":"first"}'),
			(2, 1, '{"status":"open","note":"first"}', '{"status":"open","owner":"cleo","note":"first"}')`,
		`UPDATE groups SET owner = 'cleo' WHERE id = 1`,
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
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
	if _, err := s.Undo(t.Context(), 2, "ana"); err != nil {
		t.Error(err)
	}
	for id, want := range map[deadletter.GroupID]string{1: "ben", 2: "", 3: ""} {
		if g, err := s.Group(t.Context(), id); err != nil || g.NoteBy != want {
			t.Errorf("%s: %q, %v, want %q", id, g.NoteBy, err, want)
		}
	}
}
