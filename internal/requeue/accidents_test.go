package requeue_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// accidents returns a function that reports whether an accident happens at a point. Each point in
// the list causes one accident, at its first opportunity. A point that is listed twice causes two.
func accidents(points ...string) func(point string) bool {
	left := slices.Clone(points)
	return func(point string) bool {
		i := slices.Index(left, point)
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
		return true
	}
}

// dice is a random source that several goroutines may use.
type dice struct {
	mu     sync.Mutex
	random *rand.Rand
}

func newDice(seed uint64) *dice { return &dice{random: rand.New(rand.NewPCG(seed, 0))} }

func (d *dice) intBelow(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.IntN(n)
}

func (d *dice) durationUpTo(most time.Duration) time.Duration {
	return time.Duration(d.intBelow(int(most)))
}

// luck returns a function that reports at random whether an accident happens. At most the given
// number of accidents happens.
func (d *dice) luck(most int) func(point string) bool {
	return func(string) bool {
		if most == 0 || d.intBelow(40) > 0 {
			return false
		}
		most--
		return true
	}
}
