package deadletter

import (
	"slices"
	"time"
)

// Pulse is when letters of a group died, the newest, oldest first.
type Pulse []time.Time

// maxPulse is how many deaths a pulse remembers.
const maxPulse = 16

// Beat is the pulse after further deaths, in any order.
func (p Pulse) Beat(deaths ...time.Time) Pulse {
	all := slices.SortedFunc(slices.Values(append(slices.Clone(p), deaths...)), time.Time.Compare)
	return all[max(0, len(all)-maxPulse):]
}

// Gap is the median time between two deaths; 0 where fewer than two are known.
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

// FailingFor is how long after its last death a group counts as failing, at least.
const FailingFor = 5 * time.Minute

// FailingGaps is how many of its usual gaps a group counts as failing after its last death.
const FailingGaps = 3
