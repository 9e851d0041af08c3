package requeue_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
)

// notePath returns the path of the note beside a store's file.
func notePath(t *testing.T, path string) string {
	t.Helper()
	found, err := filepath.Glob(path + ".progress-????????")
	if err != nil || len(found) != 1 {
		t.Fatalf("notes beside the store: %q, %v", found, err)
	}
	return found[0]
}

func (s *station) closeStore() (file, note []byte, mark *deadletter.Progress) {
	s.t.Helper()
	path := s.store.Path()
	if err := s.store.Close(); err != nil {
		s.t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	note, err = os.ReadFile(notePath(s.t, path))
	if err != nil {
		s.t.Fatal(err)
	}
	return file, note, s.broker.mark
}

// startOn starts a process on the files of an earlier process. The parameter "file" is the content
// of the store, and the parameter "note" is the content of the note beside it. If "note" is nil,
// there is no note.
func (s *station) startOn(file, note []byte) {
	s.t.Helper()
	path := s.store.Path()
	if err := os.WriteFile(path, file, 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Remove(notePath(s.t, path)); err != nil {
		s.t.Fatal(err)
	}
	if note != nil {
		name := s.store.Progress().Store[:8]
		if err := os.WriteFile(path+".progress-"+name, note, 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	var err error
	if s.store, err = store.Open(s.t.Context(), path, store.Options{Now: s.now}); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.store.Close() })
	s.broker.session++
	s.start()
}

// TestARestoredStoreNeverSendsSilently copies a store and lets the store continue. After that, dlo
// starts with this store or with its copy. The store's progress is recorded in the note and in the
// mark. In each case, each of these records is current, is old or is gone. The mark can also be
// that of another store. The test checks for each case what the table in docs/reliability.md says.
// A letter that people release from the copy must be sent under the token of its first attempt.
func TestARestoredStoreNeverSendsSilently(t *testing.T) {
	t.Parallel()
	const (
		kept = "kept"
		gone = "gone"
		old  = "old"
		mine = "of another store"
	)
	for _, c := range []struct {
		copied     bool
		note, mark string
		sends      bool
		restored   bool
		problem    deadletter.ProblemKind
	}{
		{false, kept, kept, true, false, ""},
		{false, gone, kept, true, false, ""},
		{false, old, kept, true, false, ""},
		{true, kept, kept, false, true, ""},
		{true, gone, kept, false, true, ""},
		{true, old, kept, false, true, ""},
		{true, kept, gone, false, true, deadletter.ProblemBrokerReplaced},
		{true, kept, old, false, true, ""}, // the copy does not know the later marks
		{false, kept, gone, true, false, deadletter.ProblemBrokerReplaced},
		{false, kept, old, true, false, deadletter.ProblemBrokerReplaced},
		{false, kept, mine, true, false, deadletter.ProblemBrokerReplaced},
		{false, gone, gone, false, false, deadletter.ProblemStoreUnproved},
		{false, gone, old, false, false, deadletter.ProblemStoreUnproved},
		{false, old, gone, false, false, deadletter.ProblemStoreUnproved},
		{true, gone, gone, false, false, deadletter.ProblemStoreUnproved},
	} {
		name := "the store"
		if c.copied {
			name = "a copy"
		}
		t.Run(name+", note "+c.note+", mark "+c.mark, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			s.storeWaiting(30, 0, time.Second)
			s.run(10 * time.Second)
			oldFile, oldNote, oldMark := s.closeStore()
			s.startOn(oldFile, oldNote)
			s.run(10 * time.Second)
			file, note, mark := s.closeStore()
			before := len(s.broker.ids)
			if before != 20 {
				t.Fatalf("%d letters were sent", before)
			}
			note = map[string][]byte{kept: note, old: oldNote}[c.note]
			s.broker.mark = map[string]*deadletter.Progress{
				kept: mark,
				old:  oldMark,
				mine: {Store: "another", Claims: 99, At: s.at},
			}[c.mark]
			if c.copied {
				file = oldFile
			}
			s.startOn(file, note)
			s.run(25 * time.Second)
			if sent := len(s.broker.ids) - before; c.sends && sent != 10 || !c.sends && sent != 0 {
				t.Errorf("%d letters are sent", sent)
			}
			r, err := s.store.Restore(t.Context())
			if err != nil || (r != nil) != c.restored || r != nil && (r.Held != 30 || r.Missing != 0) {
				t.Errorf("restored: %+v, %v", r, err)
			}
			var kinds []deadletter.ProblemKind
			for _, p := range s.d.Problems() {
				kinds = append(kinds, p.Kind)
			}
			if want := []deadletter.ProblemKind{c.problem}; c.problem != "" && !slices.Equal(kinds, want) ||
				c.problem == "" && len(kinds) > 0 {
				t.Errorf("problems: %v", kinds)
			}
			if c.problem == deadletter.ProblemStoreUnproved {
				s.answerCopied(c.copied)
			}
			if c.copied {
				s.releaseAll(before)
			}
		})
	}
}

// answerCopied answers the question whether a store of unknown age is a copy, as a person would. It
// then checks how many letters are sent.
func (s *station) answerCopied(copied bool) {
	s.t.Helper()
	before := len(s.broker.ids)
	want := 10
	if copied {
		if err := s.store.HoldCopy(s.t.Context(), "ann"); err != nil {
			s.t.Fatal(err)
		}
		want = 0
	} else if err := s.store.Accept(s.t.Context(), "ann"); err != nil {
		s.t.Fatal(err)
	}
	s.run(5 * time.Second)
	if sent := len(s.broker.ids) - before; sent != want {
		s.t.Errorf("%d letters are sent after the answer", sent)
	}
	for _, p := range s.d.Problems() {
		if p.Kind == deadletter.ProblemStoreUnproved {
			s.t.Errorf("after the answer: %s", p.Title)
		}
	}
}

// releaseAll releases all letters of a copy of the store and checks the tokens under which they are
// sent. The parameter "before" is the number of letters that the original store had already sent.
// The first ten of these letters were sent before the copy was made.
func (s *station) releaseAll(before int) {
	s.t.Helper()
	ctx := s.t.Context()
	op := deadletter.Operation{Action: deadletter.VerbRequeue, By: "ann", Restored: true}
	if err := s.store.Freeze(ctx, &op, query.Selection{Query: &query.Query{}}, 0, anyPlace); err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.store.Advance(ctx, op.ID, 100, nil); err != nil {
		s.t.Fatal(err)
	}
	s.run(25 * time.Second)
	first := map[deadletter.ID]deadletter.Token{}
	for i, id := range s.broker.ids[:before] {
		first[id] = s.broker.under[i]
	}
	again := 0
	for i, id := range s.broker.ids[before:] {
		under, was := s.broker.under[before+i], first[id]
		switch {
		case slices.Contains(s.broker.ids[:10], id):
			// the copy knows the first attempt on this letter, so this is the next attempt
			if under == was {
				s.t.Errorf("letter %s is sent once more under the token of an attempt that was confirmed", id.Short())
			}
		case was != "":
			again++
			if under != was {
				s.t.Errorf("letter %s is sent under %s; its first copy has %s", id.Short(), under, was)
			}
		}
	}
	if n := len(s.broker.ids) - before; n != 30 || again != 10 {
		s.t.Errorf("%d letters are sent, %d of them again", n, again)
	}
}

// TestLettersWaitForTheirMark uses a store whose progress is recorded in the broker, in a message
// called the mark. Before dlo sends letters over a connection, it must have read the mark over the
// same connection. After letters are claimed, the mark must be renewed before these letters are
// sent. If the broker does not respond for half a minute, dlo must rely on the note beside the
// store, if there is one.
func TestLettersWaitForTheirMark(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.storeWaiting(100, 0, time.Second)
	s.run(5 * time.Second)
	s.broker.noMarks = errors.New("no leader")
	s.run(20 * time.Second)
	if n := len(s.broker.ids); n != 5 {
		t.Errorf("%d letters are sent without a mark", n)
	}
	s.run(20 * time.Second)
	if n := len(s.broker.ids); n != 45 {
		t.Errorf("%d letters are sent although the note beside the store shows that they may", n)
	}
	list := s.d.Problems()
	if len(list) != 1 || list[0].Kind != deadletter.ProblemNoProgress {
		t.Errorf("problems: %+v", list)
	}
	s.broker.session++ // over a new connection, dlo must read the mark again
	asked := s.broker.asked
	s.run(10 * time.Second)
	if n := len(s.broker.ids); n != 55 || s.broker.asked == asked {
		t.Errorf("%d letters after the broker was asked %d times over the new connection", n, s.broker.asked-asked)
	}
	s.broker.noMarks = nil
	s.run(40 * time.Second)
	if n, list := len(s.broker.ids), s.d.Problems(); n != 95 || len(list) > 0 {
		t.Errorf("%d letters, problems %+v", n, list)
	}
	if s.broker.mark.Claims != s.store.Progress().Claims {
		t.Errorf("the mark has %d claims of %d", s.broker.mark.Claims, s.store.Progress().Claims)
	}
}

// TestAMarkThatCannotBeReadOfAStoreThatNothingIsNotedBeside checks a store for which both proofs of
// its age are missing. The mark in the broker cannot be read, and there is no note beside the file.
// No letter may be sent, and people must be asked.
func TestAMarkThatCannotBeReadOfAStoreThatNothingIsNotedBeside(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.storeWaiting(30, 0, time.Second)
	s.run(10 * time.Second)
	file, _, _ := s.closeStore()
	s.startOn(file, nil)
	s.broker.noMarks = errors.New("no leader")
	s.run(time.Minute)
	if n, list := len(
		s.broker.ids,
	), s.d.Problems(); n != 10 || len(list) != 1 || list[0].Kind != deadletter.ProblemStoreUnproved {
		t.Errorf("%d letters, problems %+v", n, list)
	}
	if err := s.store.Accept(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	s.run(5 * time.Second)
	if n, list := len(
		s.broker.ids,
	), s.d.Problems(); n != 30 || len(list) != 1 || list[0].Kind != deadletter.ProblemNoProgress {
		t.Errorf("%d letters once people say that it is current, problems %+v", n, list)
	}
}

// TestWithoutAnyNoteNothingIsSent checks that letters wait while dlo can record the progress of the
// store neither in the broker nor in the note on the disk.
func TestWithoutAnyNoteNothingIsSent(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.storeWaiting(10, 0, time.Second)
	if err := os.Mkdir(s.store.Path()+".progress-"+s.store.Progress().Store[:8]+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	s.run(2 * time.Second)
	if n, err := len(s.broker.ids), s.store.Unnoted(); n != 2 || err == nil || len(s.d.Problems()) > 0 {
		t.Errorf("%d letters with the mark alone, %v, problems %+v", n, err, s.d.Problems())
	}
	s.broker.noMarks = errors.New("no leader")
	s.run(2 * time.Minute)
	if n, list := len(
		s.broker.ids,
	), s.d.Problems(); n != 2 || len(list) != 1 || list[0].Kind != deadletter.ProblemNoProgress ||
		list[0].Severity != deadletter.SeverityPage {
		t.Errorf("%d letters are sent; problems %+v", n, list)
	}
	s.broker.noMarks = nil
	s.run(time.Minute)
	if n := len(s.broker.ids); n != 10 {
		t.Errorf("%d letters once the mark can be written again", n)
	}
}

// anyPlace allows an operation for letters of every origin.
func anyPlace(deadletter.Origin) error { return nil }
