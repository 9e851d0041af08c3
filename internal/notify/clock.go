package notify

import (
	"slices"
	"time"
)

// TimeOfDay is a wall-clock time.
type TimeOfDay struct{ Hour, Minute int }

// Clock determines when a digest is due: at a time of day, on certain days, in a time zone. It does
// not know which digests were sent, because the store records the local day of each digest.
type Clock struct {
	At   TimeOfDay
	Days []time.Weekday // none = never
	Zone *time.Location // nil = UTC
}

const week = 8 // days to check: includes the same weekday a week ago, at a later hour

// Last returns the latest moment, up to now, at which a digest was due. The local day of this
// moment, as 2006-01-02, names the digest. A day of "" means that none was due. Each day has one
// moment. If the clocks skip it, the moment is the first one after the gap. If they show it twice,
// it is the first of the two.
func (c Clock) Last(now time.Time) (day string, at time.Time) {
	today := dateOf(now.In(zone(c.Zone))) + 1 // clocks put back over midnight show the previous day again
	for d := today; d > today-week-2; d-- {
		if t := c.on(d); !t.IsZero() && !t.After(now) {
			return d.String(), t
		}
	}
	return "", time.Time{}
}

// Next returns the first moment after now at which a digest is due, and its day.
func (c Clock) Next(now time.Time) (day string, at time.Time) {
	today := dateOf(now.In(zone(c.Zone))) - 1 // the moment of a skipped day comes when that day would have been over
	for d := today; d < today+week+2; d++ {
		if t := c.on(d); t.After(now) {
			return d.String(), t
		}
	}
	return "", time.Time{}
}

// Window returns the period that the currently due digest covers. It ends at the last digest moment
// and begins at the digest moment before that. With Monday to Friday, Monday's digest reaches back
// to Friday.
func (c Clock) Window(now time.Time) (from, to time.Time) {
	_, to = c.Last(now)
	if to.IsZero() {
		return to, to
	}
	_, from = c.Last(to.Add(-time.Nanosecond))
	return from.In(zone(c.Zone)), to.In(zone(c.Zone))
}

// on returns the digest moment of a day, or zero.
func (c Clock) on(d date) time.Time {
	if !slices.Contains(c.Days, d.weekday()) {
		return time.Time{}
	}
	return d.at(c.At, zone(c.Zone))
}

func zone(z *time.Location) *time.Location {
	if z == nil {
		return time.UTC
	}
	return z
}

// date is a calendar day, counted from 1 January 1970.
type date int

func dateOf(t time.Time) date {
	y, m, d := t.Date()
	return date(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400)
}

func (d date) midnight() time.Time   { return time.Unix(int64(d)*86400, 0).UTC() }
func (d date) weekday() time.Weekday { return d.midnight().Weekday() }
func (d date) String() string        { return d.midnight().Format(time.DateOnly) }

// at returns the first moment at which clocks in z show this day and time. If the clocks were put
// forward over that time, at returns the end of the gap.
func (d date) at(tod TimeOfDay, z *time.Location) time.Time {
	wall := d.midnight().Add(time.Duration(tod.Hour)*time.Hour + time.Duration(tod.Minute)*time.Minute)
	t := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), 0, 0, z)
	start, end := t.ZoneBounds()
	switch shown := asUTC(t); {
	case shown.After(wall): // skipped; t is after the gap
		return start
	case shown.Before(wall): // skipped; t is before the gap
		return end
	}
	if start.IsZero() {
		return t
	}
	_, offset := start.Add(-time.Second).Zone()
	if earlier := wall.Add(-time.Duration(offset) * time.Second).In(z); earlier.Before(start) && asUTC(earlier).Equal(wall) {
		return earlier // clocks were put back and show it again at t
	}
	return t
}

// asUTC returns the wall-clock time of t as if it were UTC.
func asUTC(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.Add(time.Duration(offset) * time.Second).UTC()
}
