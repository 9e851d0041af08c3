package notify

import (
	"slices"
	"time"
)

// Quiet defines the quiet hours. During these hours, notices wait, except those with the severity
// "page".
type Quiet struct {
	// times at which quiet hours begin and end; if To is not after From, they end on the next day,
	// and if both are equal, they last a whole day
	From, To TimeOfDay
	Days     []time.Weekday // days on which quiet hours begin; empty = never
	Zone     *time.Location // nil = UTC
}

// Until returns the time at which the present quiet hours end. If other quiet hours follow without
// a gap, it returns the end of those. It looks at most a week ahead. Outside quiet hours, it
// returns the zero time.
func (q Quiet) Until(now time.Time) time.Time {
	today := dateOf(now.In(zone(q.Zone)))
	var until time.Time
	for d := today - 2; d < today+week; d++ {
		if !slices.Contains(q.Days, d.weekday()) {
			continue
		}
		begin, last := d.timeOf(q.From, zone(q.Zone)), d
		if q.To.Hour*60+q.To.Minute <= q.From.Hour*60+q.From.Minute {
			last++
		}
		end := last.timeOf(q.To, zone(q.Zone))
		switch {
		case until.IsZero() && !begin.After(now) && end.After(now),
			!until.IsZero() && !begin.After(until) && end.After(until):
			until = end
		}
	}
	return until
}
