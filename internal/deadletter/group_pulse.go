package deadletter

import (
	"slices"
	"time"
)

// Pulse contains the times of the latest deaths in a group, oldest first.
type Pulse []time.Time

// maxPulse is the maximum number of times in a Pulse.
const maxPulse = 16

// Beat adds the times of deaths to a pulse, in any order. It returns the new pulse, which contains
// only the latest deaths.
func (p Pulse) Beat(deaths ...time.Time) Pulse {
	all := slices.SortedFunc(slices.Values(append(slices.Clone(p), deaths...)), time.Time.Compare)
	return all[max(0, len(all)-maxPulse):]
}

// Gap returns the median time between two deaths. If fewer than two deaths are known, it returns 0.
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

// FailingFor is how long a group counts as failing after its last death. For some groups, the time
// is longer (see FailingGaps).
const FailingFor = 5 * time.Minute

// FailingGaps is for groups in which letters die rarely. After its last death, such a group counts
// as failing for FailingGaps times the usual gap between two of its deaths. For example, if a
// letter dies once an hour, the group counts as failing for three hours.
const FailingGaps = 3
