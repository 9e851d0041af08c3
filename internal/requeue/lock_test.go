package requeue_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/requeue"
)

// sends lets the given time pass and checks how many letters are sent in it, what problem there is
// then ("" = none), and what is known of other dlo on the same store.
func (s *station) sends(d time.Duration, want int, problem deadletter.ProblemKind, standing requeue.Standing) {
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
	if is := s.d.Standing(); is != standing {
		s.t.Errorf("standing %d, not %d", is, standing)
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
	s.storeWaiting(700, 0, time.Second)
	if is := s.d.Standing(); is != requeue.Pending {
		t.Errorf("standing %d before the broker was asked", is)
	}
	s.broker.lock = taken
	s.sends(time.Second, 0, "", requeue.Pending) // it may be an earlier process that was killed
	s.sends(9*time.Second, 0, deadletter.ProblemStoreTwice, requeue.Twice)
	s.broker.lock = silence
	s.sends(10*time.Second, 0, deadletter.ProblemStoreTwice, requeue.Twice) // it was refused over this connection
	// a broker that does not reply silences nothing, but nothing can be sent there
	s.broker.session++
	s.sends(10*time.Second, 0, "", requeue.Unknown)
	s.broker.lock = unguarded
	s.sends(10*time.Second, 40, deadletter.ProblemStoreUnguarded, requeue.Alone)
	s.broker.session++
	s.sends(10*time.Second, 10, deadletter.ProblemStoreUnguarded, requeue.Alone)
	s.broker.lock = silence // letters are sent while dlo asks again
	s.sends(5*time.Minute, 300, deadletter.ProblemStoreUnguarded, requeue.Alone)
	s.broker.lock = taken // the right was given, and the other one was faster
	s.sends(10*time.Second, 0, deadletter.ProblemStoreTwice, requeue.Twice)
	asked := s.broker.asked
	s.broker.lock = nil
	s.run(5 * time.Second)
	s.sends(time.Second, 1, "", requeue.Alone)
	if s.broker.asked == asked {
		t.Error("the mark was not read after the lock was taken")
	}

	s.broker.session++
	s.broker.lock = taken // the broker has not noticed the end of our last connection yet
	s.sends(10*time.Second, 0, "", requeue.Unknown)
	s.broker.lock = nil
	s.run(5 * time.Second)
	before := s.broker.mark.Claims
	s.sends(time.Second, 1, "", requeue.Alone)
	s.broker.session++
	s.sends(time.Second, 1, "", requeue.Alone)
	if n := s.broker.mark.Claims - before; n < 16 {
		t.Errorf("%d claims more over a new connection: a copy could have had as many without recording them", n)
	}
	s.broker.session++
	s.broker.lock = taken
	s.run(30 * time.Second)
	s.sends(time.Second, 0, deadletter.ProblemStoreTwice, requeue.Twice)

	ahead := *s.broker.mark // the other one sends letters and ends
	ahead.Claims += 5
	s.broker.mark, s.broker.lock = &ahead, nil
	s.run(5 * time.Second)
	session, asked := s.broker.session, s.broker.asked
	s.sends(14*time.Second, 0, "", requeue.Behind)
	if s.broker.session != session || s.broker.asked != asked {
		t.Error("a store behind its mark asked for the lock again at once")
	}
	s.sends(5*time.Minute, 0, "", requeue.Alone)
	if r, err := s.store.Restore(t.Context()); err != nil || r == nil || r.Held != 700 || s.broker.asked == asked {
		t.Errorf("restored: %+v, %v", r, err)
	}
}
