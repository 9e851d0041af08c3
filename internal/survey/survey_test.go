package survey

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// TestALookIsRememberedAndRepeated checks how often dlo reads a vhost. It also checks two
// durations: how long a queue has had no consumer, and how long a finding has existed. If dlo
// cannot read the vhost, the earlier findings must stay.
func TestALookIsRememberedAndRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now().UTC()
		var looks []time.Duration
		var mu sync.Mutex // guards the answers of the broker
		change := func(to func()) {
			mu.Lock()
			defer mu.Unlock()
			to()
		}
		var fails error
		var gaps []topology.Gap
		var unlisted bool // the queue is not in the list
		consumers := topology.Figure{Known: true}
		s := New([]Place{{Broker: "main", VHost: "/", Look: func(context.Context) (topology.Snapshot, error) {
			mu.Lock()
			defer mu.Unlock()
			looks = append(looks, time.Since(began))
			q := topology.Queue{Name: "orders", Consumers: consumers, Ready: topology.Figure{N: 3, Known: true}}
			found := topology.Snapshot{
				Broker: "main",
				VHost:  "/",
				ReadAt: time.Now().UTC(),
				Queues: []topology.Queue{q},
				Gaps:   gaps,
			}
			if unlisted {
				found.Queues = nil
			}
			return found, fails
		}}})
		if r := s.Reports(); len(r) != 1 || r[0].Failed == "" || r[0].Broker != "main" {
			t.Errorf("before the first look: %+v", r)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		kinds := func() (list []string) {
			for _, f := range s.Reports()[0].Findings {
				list = append(list, string(f.Kind)+" "+f.Since.Sub(began).String())
			}
			return list
		}
		expect := func(after time.Duration, want ...string) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			if got := kinds(); !slices.Equal(got, want) {
				t.Errorf("after %s: %q, want %q", time.Since(began), got, want)
			}
		}
		expect(time.Second, "no_exchange 0s")
		expect(14*time.Minute, "no_exchange 0s")
		// for a moment, the broker does not report the number of consumers
		change(func() { consumers = topology.Figure{} })
		expect(30*time.Second, "no_exchange 0s")
		change(func() { consumers = topology.Figure{Known: true} })
		expect(time.Minute, "left_behind 0s", "no_exchange 0s")
		change(func() { gaps = []topology.Gap{{What: topology.PartPolicies, Why: "500"}} })
		expect(time.Minute, "left_behind 0s", "no_exchange 0s")
		if since := s.Reports()[0].UnknownSince.Sub(began); since != 15*time.Minute+30*time.Second {
			t.Errorf("a part is unknown since %s", since)
		}
		for _, what := range []string{topology.PartQueues, "queue orders"} {
			change(func() { unlisted, gaps = true, []topology.Gap{{What: what, Why: "500"}} })
			expect(time.Minute, "left_behind 0s", "no_exchange 0s")
			change(func() { unlisted, gaps = false, nil })
			expect(time.Minute, "left_behind 0s", "no_exchange 0s")
		}
		change(func() { gaps, fails = nil, errors.New("the API answered 500") })
		expect(time.Minute, "left_behind 0s", "no_exchange 0s")
		if r := s.Reports()[0]; r.Failed != "the API answered 500" || r.Queues != 1 || r.UnknownSince.IsZero() {
			t.Errorf("after a failure: %+v", r)
		}
		change(func() { fails, consumers = nil, topology.Figure{N: 1, Known: true} })
		expect(time.Minute, "no_exchange 0s")
		if r := s.Reports()[0]; r.Failed != "" || !r.UnknownSince.IsZero() {
			t.Errorf("after a success: %+v", r)
		}
		change(func() { consumers = topology.Figure{Known: true} })
		expect(14*time.Minute, "no_exchange 0s")
		change(func() { unlisted = true }) // the queue was deleted
		expect(time.Minute)
		mu.Lock()
		for i := 1; i < len(looks); i++ {
			if looks[i]-looks[i-1] != 30*time.Second {
				t.Errorf("looks at %v", looks)
			}
		}
		mu.Unlock()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// TestAChangeIsLookedAtImmediately calls LookAgain for one vhost. dlo must read this vhost
// immediately, and again only after the usual time. A call of LookAgain for another vhost must not
// make dlo read this vhost.
func TestAChangeIsLookedAtImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		s := New([]Place{{Broker: "main", VHost: "/", Look: func(context.Context) (topology.Snapshot, error) {
			looks.Add(1)
			return topology.Snapshot{}, nil
		}}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		synctest.Wait()
		s.LookAgain("main", "/")
		s.LookAgain("main", "/")
		s.LookAgain("main", "shop")
		s.LookAgain("other", "/")
		synctest.Wait()
		before := looks.Load()
		if before < 2 || before > 3 {
			t.Errorf("%d looks", before)
		}
		time.Sleep(Every + time.Second)
		synctest.Wait()
		if n := looks.Load(); n != before+1 {
			t.Errorf("%d looks after the interval", n-before)
		}
		cancel()
		<-ended
	})
}

// TestAPlanHasANewLook checks that Refresh waits until dlo has read the given vhost. If the vhost
// was read shortly before, Refresh must not read it again.
func TestAPlanHasANewLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks [2]atomic.Int64
		look := func(n int) func(context.Context) (topology.Snapshot, error) {
			return func(context.Context) (topology.Snapshot, error) {
				time.Sleep(time.Second)
				looks[n].Add(1)
				return topology.Snapshot{}, nil
			}
		}
		s := New([]Place{{Broker: "main", VHost: "/", Look: look(0)}, {Broker: "main", VHost: "shop", Look: look(1)}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		for i, want := range []int64{1, 2, 2} { // the first look, a second one, and none
			if i == 1 {
				time.Sleep(newEnough + time.Second)
			}
			s.Refresh(t.Context(), "main", "/")
			if n := looks[0].Load(); n != want {
				t.Errorf("refresh %d: %d looks, want %d", i, n, want)
			}
		}
		s.LookAgain("main", "/")
		time.Sleep(time.Second / 2) // the look has begun
		s.LookAgain("main", "/")    // it may not have seen this change
		if s.Refresh(t.Context(), "main", "/"); looks[0].Load() != 4 {
			t.Errorf("after a change during a look: %d looks, want 4", looks[0].Load())
		}
		if n := looks[1].Load(); n != 1 {
			t.Errorf("%d looks at the other vhost", n)
		}
		cancel()
		<-ended
	})
}

// TestTheIdleTimeIsConfigured checks that a queue without consumers is reported after the time that
// the configuration gives.
func TestTheIdleTimeIsConfigured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New([]Place{
			{
				Broker: "main", VHost: "/", IdleAfter: 2 * time.Minute,
				Look: func(context.Context) (topology.Snapshot, error) {
					q := topology.Queue{
						Name:      "orders",
						Consumers: topology.Figure{Known: true},
						Ready:     topology.Figure{N: 3, Known: true},
						Arguments: topology.Definition{
							"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead",
						},
					}
					return topology.Snapshot{
						Broker: "main",
						VHost:  "/",
						ReadAt: time.Now(),
						Queues: []topology.Queue{q, {Name: "dead"}},
					}, nil
				},
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		for _, want := range []int{0, 1} {
			time.Sleep(119 * time.Second)
			synctest.Wait()
			if found := s.Reports()[0].Findings; len(found) != want ||
				want == 1 && found[0].Kind != topology.LeftBehind {
				t.Errorf("%+v, want %d", found, want)
			}
		}
		cancel()
		<-ended
	})
}

// TestWithoutManagement covers a broker without a management API. dlo must report a queue that has
// had no consumer for some time, and must withdraw this finding when a consumer returns. dlo must
// make no plan for such a broker.
func TestWithoutManagement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var consumers atomic.Int64
		s := New([]Place{{Broker: "main", VHost: "/", Look: func(context.Context) (topology.Snapshot, error) {
			q := topology.Queue{
				Name:      "orders",
				Consumers: topology.Figure{N: consumers.Load(), Known: true},
				Ready:     topology.Figure{N: 3, Known: true},
			}
			return topology.Snapshot{
				Broker:  "main",
				VHost:   "/",
				ReadAt:  time.Now(),
				Queues:  []topology.Queue{q},
				Passive: true,
				Gaps:    []topology.Gap{{What: "the rest", Why: "no API"}},
			}, nil
		}}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		for wait, want := range []int{1: 0, 2: 1, 3: 0} {
			switch wait {
			case 2:
				time.Sleep(16 * time.Minute)
			case 3:
				consumers.Store(1)
				time.Sleep(time.Minute)
			}
			synctest.Wait()
			if found := s.Reports()[0].Findings; len(found) != want {
				t.Errorf("step %d: %+v", wait, found)
			}
		}
		if _, err := s.Plan(topology.Wish{}); err == nil || !strings.Contains(err.Error(), "no management URL") {
			t.Error(err)
		}
		cancel()
		<-ended
	})
}

// TestAStormBetweenTwoLooks checks that dlo finds a storm of redeliveries even if the broker
// reports a rate of zero at each look.
func TestAStormBetweenTwoLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var redelivered int64
		s := New([]Place{{Broker: "main", VHost: "/", Look: func(context.Context) (topology.Snapshot, error) {
			redelivered += 3000
			q := topology.Queue{
				Name:  "orders",
				Rates: topology.Rates{Redeliver: topology.Rate{Total: topology.Figure{N: redelivered, Known: true}}},
			}
			return topology.Snapshot{Broker: "main", VHost: "/", ReadAt: time.Now(), Queues: []topology.Queue{q}}, nil
		}}})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		time.Sleep(Every + time.Second)
		synctest.Wait()
		if found := s.Reports()[0].Findings; !slices.ContainsFunc(found, func(f topology.Finding) bool {
			return f.Kind == topology.RedeliveryStorm && strings.HasSuffix(f.Title, ", 100 times a second")
		}) {
			t.Errorf("%+v", found)
		}
		cancel()
		<-ended
	})
}

// TestPlansAtTheSameTime checks that several people may ask for a plan at the same time. The race
// detector finds the fault.
func TestPlansAtTheSameTime(t *testing.T) {
	s := New([]Place{{Broker: "main", VHost: "/", Exchange: "amq.fanout"}})
	s.read[0] = &topology.Snapshot{
		Broker: "main", VHost: "/", Queues: []topology.Queue{{Name: "orders", Durable: true}, {Name: "letters"}},
		Bindings: []topology.Binding{{Source: "amq.fanout", Destination: "letters", To: "queue"}},
		Policies: []topology.Policy{{Name: "p", Pattern: "^(?!a)o"}},
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			if plans, err := s.Plan(topology.Wish{Queues: []string{"orders"}}); err != nil || len(plans) != 1 {
				t.Error(plans, err)
			}
		})
	}
	wait.Wait()
}

// TestAFindingOfSeveralQueuesLasts checks a finding of several queues. It keeps its time if another
// queue comes before the first one. If a part of the vhost cannot be read, it keeps the queues that
// are not gone.
func TestAFindingOfSeveralQueuesLasts(t *testing.T) {
	queues := func(names ...string) (list []topology.Queue) {
		for _, name := range names {
			list = append(list, topology.Queue{Name: name, Durable: true})
		}
		return list
	}
	began, later := time.Unix(1000, 0), time.Unix(2000, 0)
	before := topology.Inspect(&topology.Snapshot{ReadAt: began, Queues: queues("b", "c", "d")}, topology.Options{})
	keepFirstTimes(before, nil, began)
	found := topology.Inspect(&topology.Snapshot{ReadAt: later, Queues: queues("a", "b", "c")}, topology.Options{})
	keepFirstTimes(found, before, later)
	if len(found) != 1 || !found[0].Since.Equal(began) || len(found[0].Queues()) != 3 {
		t.Errorf("%+v", found)
	}
	if kept := keepUnchecked(found, before, &topology.Snapshot{ReadAt: later, Queues: queues("a", "b", "c")}); len(kept) != 1 {
		t.Errorf("it is added a second time: %+v", kept)
	}
	gaps := []topology.Gap{{What: topology.PartPolicies, Why: "500"}}
	kept := keepUnchecked(nil, before, &topology.Snapshot{ReadAt: later, Queues: queues("c", "d"), Gaps: gaps})
	if len(kept) != 1 || !slices.Equal(kept[0].Queues(), []string{"c", "d"}) || !kept[0].Since.Equal(began) {
		t.Errorf("%+v", kept)
	}
}
