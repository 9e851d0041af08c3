package requeue_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// sends lets the given time pass and checks how many letters are sent in it, what problem there is
// then ("" = none), and whether another dlo is said to work with the same store.
func (s *station) sends(d time.Duration, want int, problem deadletter.ProblemKind, twice bool) {
	s.t.Helper()
	before := len(s.broker.ids)
	s.run(d)
	if n := len(s.broker.ids) - before; n != want {
		s.t.Errorf("%d letters are sent, not %d", n, want)
	}
	list := s.d.Problems()
	if problem == "" && len(list) > 0 || problem != "" && (len(list) != 1 || list[0].Kind != problem) {
		s.t.Errorf("problems: %+v, not %q", list, problem)
	}
	if is, known := s.d.StoreTwice(); is != twice || !known {
		s.t.Errorf("twice: %v, known: %v", is, known)
	}
}

// TestOneStoreSends lets the broker reply in every way to the request for the lock of the store,
// and checks what dlo sends and says, and that it reads the mark of the store before it uses the
// lock.
func TestOneStoreSends(t *testing.T) {
	t.Parallel()
	taken, silence := deadletter.StoreTwice("It runs elsewhere."), errors.New("no answer")
	unguarded := fmt.Errorf("%w: ACCESS_REFUSED", deadletter.ErrUnguarded)
	s := newStation(t)
	s.storeWaiting(300, 0, time.Second)
	if _, known := s.d.StoreTwice(); known {
		t.Error("it is known before the broker was asked")
	}
	s.broker.lock = taken
	s.sends(10*time.Second, 0, deadletter.ProblemStoreTwice, true)
	s.broker.lock = silence // a broker that does not reply silences nothing, but nothing can be sent there
	s.broker.session++
	s.sends(10*time.Second, 0, "", false)
	s.broker.lock = unguarded
	s.sends(10*time.Second, 30, deadletter.ProblemStoreUnguarded, false)
	s.broker.session++
	s.sends(10*time.Second, 10, deadletter.ProblemStoreUnguarded, false)
	s.broker.lock = taken // the right was given, and the other one was faster
	s.run(30 * time.Second)
	s.sends(10*time.Second, 0, deadletter.ProblemStoreTwice, true)
	asked := s.broker.asked
	s.broker.lock = nil
	s.run(5 * time.Second)
	s.sends(time.Second, 1, "", false)
	if s.broker.asked == asked {
		t.Error("the mark was not read after the lock was taken")
	}

	s.broker.session++
	s.broker.lock = taken // the broker has not noticed the end of our last connection yet
	s.sends(10*time.Second, 0, "", false)
	s.broker.lock = nil
	s.run(5 * time.Second)
	s.sends(time.Second, 1, "", false)
	s.broker.session++
	s.broker.lock = taken
	s.run(30 * time.Second)
	s.sends(time.Second, 0, deadletter.ProblemStoreTwice, true)

	ahead := *s.broker.mark // the other one sends letters and ends
	ahead.Claims += 5
	s.broker.mark, s.broker.lock = &ahead, nil
	s.run(5 * time.Second)
	session, asked := s.broker.session, s.broker.asked
	s.sends(14*time.Second, 0, "", false)
	if s.broker.session != session || s.broker.asked != asked {
		t.Error("a store behind its mark asked for the lock again at once")
	}
	s.run(20 * time.Second)
	if r, err := s.store.Restore(t.Context()); err != nil || r == nil || s.broker.asked == asked {
		t.Errorf("restored: %+v, %v", r, err)
	}
}
