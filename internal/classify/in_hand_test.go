package classify_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/classify"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestTheLetterInHandIsNoted checks the note in which dlo keeps the id of the letter that it is
// reading. While letters are read, exactly one letter at a time must be noted. None may be noted
// while the verdicts are recorded. If the id of a letter cannot be noted, the letter must not be
// read.
func TestTheLetterInHandIsNoted(t *testing.T) {
	t.Parallel()
	f := &fake{}
	var want []deadletter.ID
	for n := range int64(3) {
		l := deadLetter("sms", "rejected", nil)
		l.ID = deadletter.NewID(n+1, 1)
		f.letters = append(f.letters, l)
		want = append(want, l.ID, "")
	}
	o := options()
	o.Crash = func(point string) {
		if last := len(
			f.noted,
		) - 1; point == "reading" && f.noted[last] == "" || point == "classify: decided" && f.noted[last] != "" {
			t.Errorf("%s: %v is noted", point, f.noted)
		}
	}
	if n, err := classify.New(f, o).Step(t.Context()); n != 3 || err != nil || !slices.Equal(f.noted, want) {
		t.Errorf("%d letters, %v; noted %v, want %v", n, err, f.noted, want)
	}
	f.letters, f.verdicts, f.fail = []deadletter.Letter{deadLetter("sms", "rejected", nil)}, nil, errors.New("no room")
	o.Crash = func(point string) {
		if point == "reading" {
			t.Error("it is read without a note")
		}
	}
	if n, err := classify.New(f, o).Step(t.Context()); n != 0 || !errors.Is(err, f.fail) || len(f.verdicts) != 0 {
		t.Errorf("%d letters, %v", n, err)
	}
}

// notes contains the ids of the letters that two readers are reading at the moment.
type notes struct {
	t    *testing.T
	mu   sync.Mutex
	of   [2]deadletter.ID
	died map[deadletter.ID]bool // letters that were being read when dlo died
}

func (n *notes) note(at int, id deadletter.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.of[at] = id
	if other := n.of[1-at]; id != "" && other != "" && (n.died[id] || n.died[other]) {
		n.t.Errorf("%s and %s are read at once, and dlo died of one of them before", id, other)
	}
}

type notingFake struct {
	fake
	*notes
}

func (f *notingFake) Reading(id deadletter.ID) error { f.note(0, id); return nil }

type notingUnread struct {
	unread
	*notes
}

func (u *notingUnread) Rereading(id deadletter.ID) error { u.note(1, id); return nil }

// TestWhatDloMayHaveDiedOfIsReadAlone checks that the classifier and the reader normally work at
// the same time. But if a letter was being read when dlo died, it must be read alone. While one of
// the two reads such a letter, the other one must wait.
func TestWhatDloMayHaveDiedOfIsReadAlone(t *testing.T) {
	t.Parallel()
	const letters = 60
	n := &notes{t: t, died: map[deadletter.ID]bool{}}
	f, u := &notingFake{notes: n}, &notingUnread{notes: n}
	for i := range int64(2 * letters) {
		l := deadLetter("sms", "rejected", nil)
		l.ID = deadletter.NewID(i+1, 1)
		if i%5 == 0 {
			l.Crashes, n.died[l.ID] = 1, true
		}
		if i < letters {
			f.letters = append(f.letters, l)
		} else {
			l.State = deadletter.StateDead
			u.letters = append(u.letters, l)
		}
	}
	o := options()
	o.Crash = func(point string) {
		if point == "reading" {
			time.Sleep(100 * time.Microsecond)
		}
	}
	c := classify.New(f, o)
	r := classify.NewReader(u, c, func() {})
	var both sync.WaitGroup
	both.Go(func() {
		if _, err := c.Step(context.Background()); err != nil {
			t.Error(err)
		}
	})
	both.Go(func() {
		if _, err := r.Step(context.Background()); err != nil {
			t.Error(err)
		}
	})
	both.Wait()
	if len(f.verdicts) != letters || len(u.read) != letters {
		t.Errorf("%d and %d of %d letters were read", len(f.verdicts), len(u.read), letters)
	}
}
