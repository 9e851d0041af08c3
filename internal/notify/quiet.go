package notify

import (
	"slices"
	"time"
)

// Quiet defines when notices other than pages wait.
type Quiet struct {
	From, To TimeOfDay      // spans midnight if To is not after From; equal = a whole day
	Days     []time.Weekday // days on which quiet hours begin; none = never
	Zone     *time.Location // nil = UTC
}

// Until returns the time at which the current quiet hours end, at most a week ahead. Further quiet
// hours that follow without a gap are included. A zero time means that it is not quiet.
func (q Quiet) Until(now time.Time) time.Time {
	today := dateOf(now.In(zone(q.Zone)))
	var until time.Time
	for d := today - 2; d < today+week; d++ {
		if !slices.Contains(q.Days, d.weekday()) {
			continue
		}
		begin, last := d.at(q.From, zone(q.Zone)), d
		if q.To.Hour*60+q.To.Minute <= q.From.Hour*60+q.From.Minute {
			last++
		}
		end := last.at(q.To, zone(q.Zone))
		switch {
		case until.IsZero() && !begin.After(now) && end.After(now),
			!until.IsZero() && !begin.After(until) && end.After(until):
			until = end
		}
	}
	return until
}
