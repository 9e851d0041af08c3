package rules

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Waiter is where a letter waits for its retry.
type Waiter string

// The waiters. In the store a letter can be listed, edited, paused and discarded while it waits;
// behind the others the broker has a copy that nothing calls back, and sends it on by itself.
const (
	WaiterStore   Waiter = "store"
	WaiterQueue   Waiter = deadletter.WaiterQueue // a queue for each delay
	WaiterTTL     Waiter = "message-ttl"          // one queue, in which each letter has a delay of its own
	WaiterDelayed Waiter = "delayed-exchange"     // an exchange of type x-delayed-message, which is a plugin
)

// Waiters lists all waiters, the default first.
var Waiters = []Waiter{WaiterStore, WaiterQueue, WaiterTTL, WaiterDelayed}

// Broker says whether the broker has the letters while they wait.
func (w Waiter) Broker() bool { return w != WaiterStore && w != "" }

// MaxDelay is the longest delay.
const MaxDelay = 365 * 24 * time.Hour

// MaxRest bounds what is said of all delays of a rule together.
const MaxRest = 10 * MaxDelay

// MaxWait is the longest delay behind a waiter of the broker, which counts milliseconds in 32 bits.
const MaxWait = 49 * 24 * time.Hour

// Retry is a back-off: either explicit delays, or a first one that grows.
type Retry struct {
	Delays   []time.Duration // explicit; then the next four are zero
	Attempts int             // 0 = no retry, unless there are delays
	First    time.Duration
	Factor   float64       // at least 1; less is taken for 1
	Max      time.Duration // 0 = the longest that the waiter allows
	Jitter   float64       // 0 to 1: a delay d becomes one from d*(1-Jitter) to d*(1+Jitter), and no more than the longest that the waiter allows
	Waiter   Waiter
}

// Count returns how many retries there are.
func (r *Retry) Count() int {
	if len(r.Delays) > 0 {
		return len(r.Delays)
	}
	return max(0, r.Attempts)
}

// longestDelay is the longest that its waiter allows.
func (r *Retry) longestDelay() time.Duration {
	if r.Waiter.Broker() {
		return MaxWait
	}
	return MaxDelay
}

// Delay returns the delay before retry n, counted from 0, without jitter: 0 to the longest that the
// waiter allows. Behind the last retry it is that of the last.
func (r *Retry) Delay(n int) time.Duration {
	n = max(0, min(n, r.Count()-1))
	if len(r.Delays) > 0 {
		return within(r.Delays[n], r.longestDelay())
	}
	most := r.longestDelay()
	if r.Max > 0 {
		most = min(r.Max, most)
	}
	first := within(r.First, most)
	if first == 0 {
		return 0 // however much it grows
	}
	d := float64(first) * math.Pow(max(1, r.Factor), float64(n))
	if !(d < float64(most)) { // also when it is not a number any more
		return most
	}
	return max(first, time.Duration(d))
}

func within(d, most time.Duration) time.Duration { return max(0, min(d, most)) }

// Band returns the shortest and the longest delay before retry n, jitter included: 0 to the longest
// that the waiter allows.
func (r *Retry) Band(n int) (low, high time.Duration) {
	d := r.Delay(n)
	by := within(time.Duration(float64(d)*max(0, min(r.Jitter, 1))), d)
	return d - by, min(d+by, r.longestDelay())
}

// Draw returns the delay before retry n of a letter: the same one for the same seed, letter and
// retry.
func (r *Retry) Draw(n int, seed uint64, serial int64) time.Duration {
	low, high := r.Band(n)
	if high <= low {
		return low
	}
	return low + time.Duration(rand.New(rand.NewPCG(seed^uint64(serial), uint64(n))).Int64N(int64(high-low)+1))
}

// Rest returns how long the delays before retry n and all that follow are together at most, jitter
// included: 0 to MaxRest.
func (r *Retry) Rest(n int) time.Duration {
	rest := time.Duration(0)
	for n = max(0, n); n < r.Count() && rest < MaxRest; n++ {
		_, high := r.Band(n)
		rest += high
	}
	return min(rest, MaxRest)
}

// Waits returns the waiters of the broker that the rules of a set name, each with the delays that
// letters have behind it, jitter left out.
func (s *Set) Waits() map[Waiter][]time.Duration {
	waits := map[Waiter]map[time.Duration]bool{}
	add := func(r *Retry) {
		if r == nil || !r.Waiter.Broker() {
			return
		}
		if waits[r.Waiter] == nil {
			waits[r.Waiter] = map[time.Duration]bool{}
		}
		for n := range r.Count() {
			waits[r.Waiter][r.Delay(n)] = true
		}
	}
	add(s.Default.Retry)
	for i := range s.Rules {
		add(s.Rules[i].Retry)
	}
	list := map[Waiter][]time.Duration{}
	for w, delays := range waits {
		list[w] = slices.Sorted(maps.Keys(delays))
	}
	return list
}

// Longest returns the longest delay that the rules of a set know, jitter included. It looks at each
// explicit delay, and of those that grow at the last.
func (s *Set) Longest() time.Duration {
	longest := s.Default.Retry.longest()
	for i := range s.Rules {
		longest = max(longest, s.Rules[i].Retry.longest())
	}
	return longest
}

func (r *Retry) longest() time.Duration {
	if r == nil || r.Count() == 0 {
		return 0
	}
	_, longest := r.Band(r.Count() - 1)
	for n := range r.Delays {
		_, high := r.Band(n)
		longest = max(longest, high)
	}
	return longest
}
