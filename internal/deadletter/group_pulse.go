package deadletter

import (
	"slices"
	"time"
)

// Pulse holds the times of a group's latest deaths, oldest first.
type Pulse []time.Time

// maxPulse is the maximum number of deaths in a pulse.
const maxPulse = 16

// Beat returns the pulse with further deaths added. The deaths may be in any order.
func (p Pulse) Beat(deaths ...time.Time) Pulse {
	all := slices.SortedFunc(slices.Values(append(slices.Clone(p), deaths...)), time.Time.Compare)
	return all[max(0, len(all)-maxPulse):]
}

// Gap returns the median time between two deaths, or 0 if fewer than two are known.
func (p Pulse) Gap() time.Duration {
	if len(p) < 2 {
		return 0
	}
	gaps := make([]time.Duration, len(p)-1)
	for i := range gaps {
		gaps[i] = p[i+1].Sub(p[i])
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2]
}

// FailingFor is how long a group counts as failing after its last death, at least.
const FailingFor = 5 * time.Minute

// FailingGaps is how many of its usual gaps between deaths a group counts as failing after its last
// death.
const FailingGaps = 3
