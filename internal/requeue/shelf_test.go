package requeue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// shelf is a store in memory for the letters of one broker. It decides as internal/store does, and
// TestTheShelfDecidesAsTheStore checks this.
type shelf struct {
	mu      sync.Mutex
	epoch   int     // epoch of the process that uses the store now
	letters []*item // letters in the order of their numbers, which begin with 1
	paused  map[string]bool
	stopped map[int]bool // group -> true if its retries are paused
	marks   []deadletter.Mark
	now     deadletter.Progress
	marked  int64           // number of claims in the last mark that the broker confirmed
	beside  int64           // number of commits in the last note beside the store
	overdue int             // number of letters that a breaker has held back for too long
	givenUp []time.Duration // the limits with which GiveUp was called
	// the queue with which the last claim began; queues are numbered from 1, in the order of their
	// letters
	began int
}

// item is a letter of a test, with its classification and with everything that happened to it.
type item struct {
	number     int
	queue      string
	rule       string
	group      int
	due        time.Time // for a scheduled letter, when it is due; for a requeued letter, when its watch ends
	waiter     string    // name of the waiter in the broker; "" = the store
	wait       time.Duration
	operation  deadletter.OperationID
	revision   int
	body       []byte
	properties deadletter.Properties

	state    deadletter.State
	attempts int
	nacks    int
	waitsIn  string
	epoch    int       // epoch of the process that holds the letter; 0 = none
	again    time.Time // when a letter that is publishing and that no process holds is sent again
	tries    []*try
}

// try is an attempt to send a letter. If the letter waits in the broker first, try also contains
// the waiter and the time at which this wait ends.
type try struct {
	deadletter.Attempt
	waiter string
	until  time.Time
}

// open starts a new process.
func (s *shelf) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch++
	s.began = 0
}

func (s *shelf) pause(queue string, group int, on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if group == 0 {
		s.paused[queue] = on
	} else {
		s.stopped[group] = on
	}
}

func (s *shelf) look(i *item) (deadletter.State, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return i.state, i.attempts
}

func (i *item) id() deadletter.ID { return deadletter.NewID(int64(i.number), 1) }

// byID returns the letter with the given id.
func (s *shelf) byID(id deadletter.ID) *item {
	number, _, _ := id.Split()
	return s.letters[number-1]
}

// toMillis cuts a time to milliseconds, which is the precision of the store.
func toMillis(at time.Time) time.Time { return time.UnixMilli(at.UnixMilli()).UTC() }

// scheduled returns letters that wait in the store, in the order in which they are due. It returns
// the letters for which the function "fits" returns true.
func (s *shelf) scheduled(fits func(*item) bool) []*item {
	var list []*item
	for _, i := range s.letters {
		if i.state == deadletter.StateScheduled && i.waitsIn == "" && fits(i) {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b *item) int { return a.due.Compare(b.due) })
	return list
}

// isFree reports whether neither an operation nor a pause holds back the automatic retry of a
// letter.
func (s *shelf) isFree(i *item) bool {
	return i.operation == 0 && !s.paused[i.queue] && !s.stopped[i.group]
}

func (s *shelf) ClaimDue(
	_ context.Context, _ string, now time.Time, n int, a deadletter.Allowance,
) ([]deadletter.Due, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = toMillis(now)
	var claimed []deadletter.Due
	take := func(limit int, probe, early bool, fits func(*item) bool) {
		for k, i := range s.scheduled(func(i *item) bool { return i.due.After(now) == early && fits(i) }) {
			switch {
			case k >= limit || len(claimed) == n:
				return
			case early && tooLateToWait(i.waiter, i.wait, i.due, now):
				i.waiter = ""
			default:
				claimed = append(claimed, s.claim(i, now, probe, early))
			}
		}
	}
	lane := func(queue string, limit int, probe bool, fits func(*item) bool) {
		mine := func(i *item) bool { return i.queue == queue && s.isFree(i) && fits(i) }
		before := len(claimed)
		take(limit, probe, false, mine)
		for _, w := range a.Waiters {
			if !probe {
				take(limit-(len(claimed)-before), false, true, func(i *item) bool { return i.waiter == w && mine(i) })
			}
		}
	}
	for _, queue := range s.queuesInTurn(now, a.Waiters) {
		o := deadletter.Origin{Broker: "main", VHost: "/", Queue: queue}
		shares := a.Shares(o)
		parted := func(rule string, fits func(*item) bool) {
			limit, probe := a.Allow(o, rule)
			for k := range shares {
				share, before := &shares[k], len(claimed)
				lane(
					queue, min(limit, share.N), share.Probe,
					func(i *item) bool { return i.group == int(share.Group) && fits(i) },
				)
				limit, share.N = limit-(len(claimed)-before), share.N-(len(claimed)-before)
			}
			lane(queue, limit, probe, func(i *item) bool {
				return fits(i) && !slices.ContainsFunc(
					shares, func(share deadletter.GroupShare) bool { return i.group == int(share.Group) },
				)
			})
		}
		for _, rule := range a.Rules {
			parted(rule, func(i *item) bool { return i.rule == rule })
		}
		parted("", func(i *item) bool { return !slices.Contains(a.Rules, i.rule) })
	}
	take(n, false, false, func(i *item) bool { return i.operation != 0 })
	return claimed, nil
}

// queuesInTurn returns the queues with letters that may leave now. It begins with the queue whose
// turn it is.
func (s *shelf) queuesInTurn(now time.Time, waiters []string) []string {
	var all, list []string
	for _, i := range s.letters {
		if !slices.Contains(all, i.queue) {
			all = append(all, i.queue)
		}
	}
	first, next := -1, 0
	for at, queue := range all {
		if !s.hasDue(queue, now, waiters) {
			continue
		}
		if first < 0 && at+1 > s.began {
			first, next = len(list), at+1
		}
		list = append(list, queue)
	}
	if len(list) == 0 {
		return nil
	}
	if first < 0 {
		first, next = 0, slices.Index(all, list[0])+1
	}
	s.began = next
	return slices.Concat(list[first:], list[:first])
}

// hasDue reports whether a queue has a letter that may leave now.
func (s *shelf) hasDue(queue string, now time.Time, waiters []string) bool {
	return len(s.scheduled(func(i *item) bool {
		return i.queue == queue && s.isFree(i) && (!i.due.After(now) || slices.Contains(waiters, i.waiter))
	})) > 0
}

// tooLateToWait reports whether a letter is too late for a wait queue in which all letters wait
// equally long. If the rest of its delay is much shorter than this wait, the letter would come back
// too late.
func tooLateToWait(waiter string, wait time.Duration, due, now time.Time) bool {
	return waiter == deadletter.WaiterQueue && due.Sub(now) < wait-max(time.Second, wait/10)
}

func (s *shelf) claim(i *item, now time.Time, probe, early bool) deadletter.Due {
	s.now.Claims++
	t := &try{Attempt: deadletter.Attempt{
		Letter: i.id(), Number: i.attempts + 1, Token: deadletter.NewToken(), Sends: 1, Queue: i.queue,
		Operation: i.operation, Outcome: deadletter.OutcomeOpen, At: now, Probe: probe, Revision: i.revision,
	}}
	due := i.due
	if early {
		t.waiter, t.until = i.waiter, due
	}
	i.tries = append(i.tries, t)
	i.state, i.epoch, i.due, i.waiter = deadletter.StatePublishing, s.epoch, time.Time{}, ""
	d := s.dueOf(i, t)
	d.Letter.DueAt = due
	return d
}

func (s *shelf) dueOf(i *item, t *try) deadletter.Due {
	d := deadletter.Due{Attempt: t.Attempt}
	d.Letter = deadletter.Letter{
		Row: deadletter.Row{
			ID:         i.id(),
			State:      i.state,
			Attempts:   i.attempts,
			Group:      deadletter.GroupID(i.group),
			Reason:     "rejected",
			Size:       len(i.body),
			Broker:     "main",
			VHost:      "/",
			Queue:      i.queue,
			Exchange:   "events",
			RoutingKey: "k",
		},
		Nacks:      i.nacks,
		Rule:       i.rule,
		Body:       i.body,
		Properties: i.properties,
	}
	if t.waiter != "" {
		d.Waiter, d.Wait, d.Letter.DueAt = t.waiter, i.wait, t.until
	}
	return d
}

func (s *shelf) NextDue(_ context.Context, now time.Time) (time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var next time.Time
	for _, i := range s.letters {
		if i.state == deadletter.StateScheduled && i.due.After(toMillis(now)) && (next.IsZero() || i.due.Before(next)) {
			next = i.due
		}
	}
	return next, nil
}

func (s *shelf) ClaimDoubtful(_ context.Context, _ string, now time.Time, n int) ([]deadletter.Due, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = toMillis(now)
	var claimed []deadletter.Due
	taken := 0
	for _, i := range s.letters {
		if i.state != deadletter.StatePublishing || i.epoch == s.epoch || i.epoch == 0 && i.again.After(now) {
			continue
		}
		if taken++; taken > n {
			break
		}
		t := i.tries[len(i.tries)-1]
		if !t.until.After(now) { // the wait of the letter is over
			t.waiter = ""
		} else if tooLateToWait(t.waiter, i.wait, t.until, now) {
			i.epoch, i.again = 0, t.until
			continue
		}
		t.Outcome, i.epoch = deadletter.OutcomeInDoubt, s.epoch
		t.Sends++
		s.now.Claims++
		claimed = append(claimed, s.dueOf(i, t))
	}
	return claimed, nil
}

var errToken = errors.New("no such attempt")

func (s *shelf) Mark(_ context.Context, marks []deadletter.Mark, noted deadletter.Noted) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marked = max(s.marked, noted.Claims)
	for _, m := range marks {
		i := s.byID(m.Letter)
		t := i.tries[len(i.tries)-1]
		if !slices.ContainsFunc(i.tries, func(t *try) bool { return t.Token == m.Token }) {
			return fmt.Errorf("letter %d: %w", i.number, errToken)
		}
		if i.state == deadletter.StatePublishing && t.Token == m.Token && i.epoch == s.epoch {
			i.mark(t, m)
			s.lineUp(i)
		}
		s.marks = append(s.marks, m)
	}
	return nil
}

// lineUp delays a letter with its own expiration until the letters in front of it in the wait queue
// have left.
func (s *shelf) lineUp(i *item) {
	for _, other := range s.letters {
		if i.waitsIn == deadletter.WaitTTL && other.waitsIn == i.waitsIn && other.due.After(i.due) {
			i.due = other.due
		}
	}
}

func (i *item) mark(t *try, m deadletter.Mark) {
	t.Outcome, t.Detail = m.Outcome, m.Detail
	i.epoch = 0
	if m.Resend {
		i.again = toMillis(m.DueAt)
		return
	}
	i.due, i.waitsIn = toMillis(m.DueAt), m.WaitsIn
	switch {
	case m.Stays:
		i.state = deadletter.StateScheduled
	case m.Outcome == deadletter.OutcomeConfirmed:
		i.state = deadletter.StateRequeued
		if m.WaitsIn != "" {
			i.state = deadletter.StateScheduled
		}
		i.attempts, i.nacks = i.attempts+1, 0
	case m.Outcome == deadletter.OutcomeNacked:
		i.state = deadletter.StateScheduled
		i.nacks++
	case m.Outcome == deadletter.OutcomeUnsent:
		i.state = deadletter.StateScheduled
	default:
		i.state = deadletter.StateHeld
	}
	if m.Outcome == deadletter.OutcomeInDoubt {
		t.Sends = max(1, t.Sends-1)
	}
}

func (s *shelf) Waited(_ context.Context, _ string, now time.Time, _ int) ([]deadletter.Waited, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []deadletter.Waited
	for _, i := range s.letters {
		if i.state == deadletter.StateScheduled && i.waitsIn != "" && !i.due.After(toMillis(now)) {
			list = append(list, deadletter.Waited{Letter: i.id(), Rule: i.rule, Queue: i.queue, In: i.waitsIn})
		}
	}
	return list, nil
}

func (s *shelf) RecordWaitEnds(_ context.Context, list []deadletter.WaitEnd) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range list {
		i := s.byID(l.Letter)
		i.state, i.waitsIn, i.due = deadletter.StateRequeued, "", toMillis(l.DueAt)
	}
	return nil
}

func (s *shelf) Watched(context.Context, string, time.Time) ([]deadletter.Origin, error) {
	return nil, nil
}

func (s *shelf) SettleQuiet(context.Context, deadletter.Origin, time.Time, int, deadletter.QueueFacts) (int, error) {
	return 0, nil
}

func (s *shelf) EndWatch(
	context.Context, deadletter.Origin, time.Time, int, deadletter.Unseen, func(string) []string,
) (int, error) {
	return 0, nil
}

func (s *shelf) WatchOn(context.Context, deadletter.Origin, time.Time, time.Time) error { return nil }

func (s *shelf) Overdue(context.Context, string, time.Time, func(string) []string, int) (int, error) {
	return 0, nil
}

// GiveUp gives up at most n letters that have been overdue for longer than the given duration. The
// shelf is a store for tests, which knows how many letters are overdue, but not since when.
func (s *shelf) GiveUp(_ context.Context, _ string, after time.Duration, n int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n = min(n, s.overdue)
	s.overdue -= n
	s.givenUp = append(s.givenUp, after)
	return n, nil
}

func (s *shelf) Breakers(context.Context, string) ([]deadletter.Breaker, error) { return nil, nil }

func (s *shelf) SetBreaker(context.Context, deadletter.Breaker, *deadletter.Notice) error { return nil }

func (s *shelf) CloseBreaker(context.Context, deadletter.Breaker) error { return nil }

func (s *shelf) DrawNear(context.Context, time.Time) (int, error) { return 0, nil }

func (s *shelf) LastSeen(context.Context) (time.Time, error) { return time.Time{}, nil }
