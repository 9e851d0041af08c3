package rules

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Waiter is the place where a letter waits for its retry.
type Waiter string

// These are the places where a letter can wait for its retry. In the store, people can list, edit,
// pause and discard a waiting letter. In the other places, the broker has a copy of the letter.
// That copy cannot be called back, and the broker sends it on automatically.
const (
	WaiterStore   Waiter = "store"
	WaiterQueue   Waiter = deadletter.WaiterQueue // one wait queue for each delay
	WaiterTTL     Waiter = "message-ttl"          // one wait queue in which each letter has its own delay
	WaiterDelayed Waiter = "delayed-exchange"     // exchange of the type x-delayed-message, which a plugin provides
)

// Waiters contains all waiters. The first is the default.
var Waiters = []Waiter{WaiterStore, WaiterQueue, WaiterTTL, WaiterDelayed}

// Broker reports whether letters wait in the broker and not in the store.
func (w Waiter) Broker() bool { return w != WaiterStore && w != "" }

// MaxDelay is the longest delay of a retry.
const MaxDelay = 365 * 24 * time.Hour

// MaxRest is the largest value that is reported for the sum of a rule's delays. A larger sum is
// reported as MaxRest.
const MaxRest = 10 * MaxDelay

// MaxWait is the longest delay of a retry that waits in the broker. The broker counts the delay in
// milliseconds as a number of 32 bits, which is enough for 49 days.
const MaxWait = 49 * 24 * time.Hour

// Retry is a back-off. It consists either of explicit delays, or of a first delay that grows.
type Retry struct {
	// explicit delays; if they are set, Attempts, First, Factor and Max are zero. JSON has all delays.
	Delays   []time.Duration `json:"delays"`
	Attempts int             `json:"-"` // number of retries if Delays is empty
	First    time.Duration   `json:"-"`
	Factor   float64         `json:"-"` // factor by which the delay grows; values below 1 count as 1
	Max      time.Duration   `json:"-"` // maximum delay; 0 = the longest delay that the waiter allows
	// from 0 to 1; a delay d becomes a random value from d*(1-Jitter) to d*(1+Jitter), but at most
	// the longest delay that the waiter allows
	Jitter float64 `json:"jitter"`
	Waiter Waiter  `json:"waiter"`
}

// Count returns the number of retries.
func (r *Retry) Count() int {
	if len(r.Delays) > 0 {
		return len(r.Delays)
	}
	return max(0, r.Attempts)
}

// longestDelay returns the longest delay that the waiter allows.
func (r *Retry) longestDelay() time.Duration {
	if r.Waiter.Broker() {
		return MaxWait
	}
	return MaxDelay
}

// Delay returns the delay before a retry, without jitter. The parameter n is the number of the
// retry, counted from 0. If n is beyond the last retry, Delay returns the delay of the last retry.
// The delay is between 0 and the longest delay that the waiter allows.
func (r *Retry) Delay(n int) time.Duration {
	n = max(0, min(n, r.Count()-1))
	if len(r.Delays) > 0 {
		return atMost(r.Delays[n], r.longestDelay())
	}
	most := r.longestDelay()
	if r.Max > 0 {
		most = min(r.Max, most)
	}
	first := atMost(r.First, most)
	if first == 0 {
		return 0 // the factor makes no difference
	}
	d := float64(first) * math.Pow(max(1, r.Factor), float64(n))
	if !(d < float64(most)) { // this is also true if d is NaN
		return most
	}
	return max(first, time.Duration(d))
}

func atMost(d, most time.Duration) time.Duration { return max(0, min(d, most)) }

// Band returns the shortest and the longest delay before retry n, counted from 0, including jitter.
// Both are between 0 and the longest delay that the waiter allows.
func (r *Retry) Band(n int) (low, high time.Duration) {
	d := r.Delay(n)
	by := atMost(time.Duration(float64(d)*max(0, min(r.Jitter, 1))), d)
	return d - by, min(d+by, r.longestDelay())
}

// Draw returns the random delay of a letter before retry n, counted from 0. The same seed, letter
// and retry always result in the same delay.
func (r *Retry) Draw(n int, seed uint64, serial int64) time.Duration {
	low, high := r.Band(n)
	if high <= low {
		return low
	}
	return low + time.Duration(rand.New(rand.NewPCG(seed^uint64(serial), uint64(n))).Int64N(int64(high-low)+1))
}

// Rest returns the maximum sum of all delays from retry n on, including jitter. It is between 0 and
// MaxRest.
func (r *Retry) Rest(n int) time.Duration {
	rest := time.Duration(0)
	for n = max(0, n); n < r.Count() && rest < MaxRest; n++ {
		_, high := r.Band(n)
		rest += high
	}
	return min(rest, MaxRest)
}

// Waits returns how long letters wait in the broker under the rules of this set. The key is a
// waiter, which is a way to let letters wait in the broker. The value contains the delays of all
// rules with this waiter, without jitter.
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

// Longest returns the longest delay of all rules in the set, including jitter. If a rule lists its
// delays explicitly, Longest compares all of them. If the delays of a rule grow, it looks only at
// the last one, which is the longest.
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
