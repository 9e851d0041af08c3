package requeue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// watch lets the given time pass in steps of a second. In each step, the dispatcher checks its
// requeued letters.
func (s *station) watch(d time.Duration) {
	s.t.Helper()
	for end := s.at.Add(d); s.at.Before(end); s.at = s.at.Add(time.Second) {
		if err := s.d.EndWatches(s.t.Context()); err != nil {
			s.t.Fatal(err)
		}
	}
}

// requeueOne sends a letter, lets its watch window pass, and returns the id of the letter.
func (s *station) requeueOne() deadletter.ID {
	s.t.Helper()
	s.storeWaiting(1, 0, time.Second)
	s.run(time.Second)
	s.at = s.at.Add(time.Minute)
	return s.broker.ids[len(s.broker.ids)-1]
}

func (s *station) letter(id deadletter.ID) deadletter.Letter {
	s.t.Helper()
	l, err := s.store.Letter(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

var (
	gone     = deadletter.QueueFacts{Known: true, Consumers: -1, Ready: -1, Unacked: -1, TTL: -1}
	consumed = deadletter.QueueFacts{Known: true, Exists: true, Consumers: 1}
)

// TestTheEndOfAWatch checks what becomes of letters that did not come back while dlo watched them.
// dlo looks at the queue of such a letter twice. From these two results, it must conclude whether
// the letter is settled or must be held.
func TestTheEndOfAWatch(t *testing.T) {
	t.Parallel()
	exists := func(change func(f *deadletter.QueueFacts)) deadletter.QueueFacts {
		f := deadletter.QueueFacts{Known: true, Exists: true}
		change(&f)
		return f
	}
	silent := deadletter.UnknownQueue
	silent.Silent = true
	for _, c := range []struct {
		name        string
		first, then deadletter.QueueFacts
		want        deadletter.State
		why         string // reason for which the letter is held
		unverified  bool
	}{
		{name: "its queue is consumed", first: consumed, then: consumed, want: deadletter.StateQuiet},
		{
			name: "nobody can ask", first: deadletter.UnknownQueue, then: deadletter.UnknownQueue,
			want: deadletter.StateQuiet, unverified: true,
		},
		{
			name: "its queue is gone", first: gone, then: gone, want: deadletter.StateHeld,
			why: "queue sms is gone, with everything in it, and it is unknown whether this letter was handled before; requeue it only if a second arrival does no harm",
		},
		{name: "its queue seemed gone for a moment", first: gone, then: consumed, want: deadletter.StateQuiet},
		{
			name:  "its queue is a stream",
			first: exists(func(f *deadletter.QueueFacts) { f.Stream, f.Ready, f.Consumers = true, 200, 1 }),
			then:  exists(func(f *deadletter.QueueFacts) { f.Stream, f.Ready, f.Consumers = true, 300, 0 }),
			want:  deadletter.StateHeld,
			why:   "queue sms is a stream, and reading takes nothing out of a stream, so dlo cannot see whether this letter was handled; requeue it only if a second arrival does no harm",
		},
		{
			name: "it may have expired", first: exists(func(f *deadletter.QueueFacts) { f.TTL = 5 * time.Second }),
			then: exists(func(f *deadletter.QueueFacts) { f.TTL = 5 * time.Second }),
			want: deadletter.StateHeld,
			why:  "messages in queue sms expire after 5s, and the queue is empty and has no consumer, so it is unknown whether this letter was handled or has expired; requeue it only if a second arrival does no harm",
		},
		{
			name: "somebody took it out who is gone", first: exists(func(*deadletter.QueueFacts) {}),
			then: exists(func(*deadletter.QueueFacts) {}), want: deadletter.StateQuiet, unverified: true,
		},
		{
			name:  "its queue was declared again and shows no figures yet",
			first: exists(func(f *deadletter.QueueFacts) { f.Consumers, f.Ready, f.Unacked, f.TTL = -1, -1, -1, 0 }),
			then:  gone,
			want:  deadletter.StateHeld,
			why:   "queue sms is gone, with everything in it, and it is unknown whether this letter was handled before; requeue it only if a second arrival does no harm",
		},
		{
			name:  "its queue never shows figures",
			first: exists(func(f *deadletter.QueueFacts) { f.Consumers, f.Ready, f.Unacked, f.TTL = -1, -1, -1, 0 }),
			then:  exists(func(f *deadletter.QueueFacts) { f.Consumers, f.Ready, f.Unacked, f.TTL = -1, -1, -1, 0 }),
			want:  deadletter.StateQuiet, unverified: true,
		},
		{
			name: "the management API did not answer for a moment", first: silent, then: gone,
			want: deadletter.StateHeld,
			why:  "queue sms is gone, with everything in it, and it is unknown whether this letter was handled before; requeue it only if a second arrival does no harm",
		},
		{
			name: "the management API does not answer", first: silent, then: silent, want: deadletter.StateQuiet,
			unverified: true,
		},
		{
			name: "it waits for a consumer", first: exists(func(f *deadletter.QueueFacts) { f.Ready = 1 }),
			then: exists(func(f *deadletter.QueueFacts) { f.Ready = 1 }), want: deadletter.StateRequeued,
		},
		{
			name:  "who took it has not said what became of it",
			first: exists(func(f *deadletter.QueueFacts) { f.Unacked = 1 }),
			then:  exists(func(f *deadletter.QueueFacts) { f.Unacked = 1 }), want: deadletter.StateRequeued,
		},
		{
			name: "it may expire, for all that is known", first: exists(func(f *deadletter.QueueFacts) { f.TTL = -1 }),
			then: exists(func(f *deadletter.QueueFacts) { f.TTL = -1 }), want: deadletter.StateRequeued,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStation(t)
			id := s.requeueOne()
			s.broker.setFacts(c.first, false)
			s.watch(2 * time.Second)
			if l := s.letter(
				id,
			); c.first == c.then && c.want == deadletter.StateHeld && l.State != deadletter.StateRequeued {
				t.Fatalf("%s after one look: %s", l.State, l.Why)
			}
			s.broker.setFacts(c.then, false)
			s.watch(time.Minute)
			l := s.letter(id)
			if l.State != c.want || l.Unverified != c.unverified || c.why != "" && l.Why != c.why {
				t.Errorf(
					"%s, unverified %t: %q; want %s, %t: %q", l.State, l.Unverified, l.Why, c.want, c.unverified, c.why,
				)
			}
		})
	}
}

// TestAQueueThatIsDeclaredAgain checks letters in a queue that is deleted and declared again with
// other properties, for example as exclusive. The letters that were in the queue before must be
// held. Letters that dlo sends to the new queue must be settled as usual.
func TestAQueueThatIsDeclaredAgain(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	durable, exclusive := consumed, consumed
	durable.Form, exclusive.Form = "durable", "exclusive"
	for _, c := range []struct {
		name        string
		first, then deadletter.QueueFacts // when the letter is sent, and at the end of its watch
		want        deadletter.State
		why         string
	}{
		{name: "the queue stays", first: durable, then: durable, want: deadletter.StateQuiet},
		{
			name: "it is another queue", first: durable, then: exclusive, want: deadletter.StateHeld,
			why: "queue sms was deleted, with everything in it, and declared again with other properties, " +
				"and it is unknown whether this letter was handled before; requeue it only if a second arrival does no harm",
		},
		{name: "the new queue stays", first: exclusive, then: exclusive, want: deadletter.StateQuiet},
		{
			name: "the properties are unknown at first", first: deadletter.UnknownQueue, then: exclusive,
			want: deadletter.StateQuiet,
		},
	} {
		s.broker.setFacts(c.first, false)
		id := s.requeueOne()
		s.broker.setFacts(c.then, false)
		s.watch(2 * time.Second)
		if l := s.letter(id); l.State != c.want || l.Unverified || c.why != "" && l.Why != c.why {
			t.Errorf("%s: %s, unverified %t: %q; want %s: %q", c.name, l.State, l.Unverified, l.Why, c.want, c.why)
		}
	}
}

// TestABrokerThatIsAwayShowsNoQueue checks a starting broker that does not show the queue of a
// letter yet. The letter must not be held.
func TestABrokerThatIsAwayShowsNoQueue(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	id := s.requeueOne()
	s.broker.setFacts(gone, true)
	s.watch(time.Minute)
	if l := s.letter(id); l.State != deadletter.StateRequeued {
		t.Errorf("%s: %s", l.State, l.Why)
	}
	s.broker.setFacts(consumed, false)
	s.watch(time.Minute)
	if l := s.letter(id); l.State != deadletter.StateQuiet || l.Unverified {
		t.Errorf("%s, unverified %t", l.State, l.Unverified)
	}
}

// TestALookIsOfWhatWasInTheQueueThen covers a letter that is sent to a queue after dlo has asked
// the broker about the queue. What dlo learned earlier must have no effect on this letter.
func TestALookIsOfWhatWasInTheQueueThen(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	first := s.requeueOne()
	s.broker.setFacts(gone, false)
	s.watch(time.Second) // one look at the queue
	second := s.requeueOne()
	if err := s.d.EndWatches(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a, b := s.letter(first), s.letter(
		second,
	); a.State != deadletter.StateHeld || b.State != deadletter.StateRequeued {
		t.Errorf("the first is %s, the second %s", a.State, b.State)
	}
	s.watch(lookAgain + 2*time.Second)
	if l := s.letter(second); l.State != deadletter.StateHeld {
		t.Errorf("the second is %s", l.State)
	}
}

const lookAgain = 10 * time.Second // shortest time between two looks that confirm each other

// TestAQueueThatIsGoneIsTold checks the letters of a deleted queue. All of them must be held,
// people must get a notice about their group, and each letter can be sent again.
func TestAQueueThatIsGoneIsTold(t *testing.T) {
	t.Parallel()
	const letters = 1100 // more letters than one transaction handles
	s := newStation(t)
	s.storeWaiting(letters, 0, 0)
	s.run(40 * time.Second)
	s.at = s.at.Add(time.Minute)
	s.broker.setFacts(gone, false)
	s.watch(15 * time.Second)
	held := map[deadletter.State]int{}
	for _, id := range s.broker.ids {
		held[s.letter(id).State]++
	}
	if held[deadletter.StateHeld] != letters {
		t.Errorf("%v", held)
	}
	g, err := s.store.Group(t.Context(), s.letter(s.broker.ids[0]).Group)
	if err != nil || g.Needs() != letters {
		t.Errorf("%+v, %v", g, err)
	}
	history, err := s.store.History(t.Context(), s.broker.ids[0])
	if err != nil || !strings.Contains(fmt.Sprint(history), "queue sms is gone") {
		t.Errorf("%v, %v", history, err)
	}
}
