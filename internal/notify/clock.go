package notify

import (
	"slices"
	"time"
)

// TimeOfDay is a time of day in hours and minutes, without a date and a time zone.
type TimeOfDay struct{ Hour, Minute int }

// Clock determines when a digest is due: at a time of day, on certain weekdays, in a time zone. It
// does not know which digests were sent, because the store records the local day of each digest.
type Clock struct {
	At   TimeOfDay
	Days []time.Weekday // empty = never
	Zone *time.Location // nil = UTC
}

const week = 8 // number of days that are searched; they include the same weekday a week ago

// Last returns the latest moment at which a digest was due, not later than now. It also returns the
// local day of this moment in the form 2006-01-02, which is the name of the digest. If no digest
// was due yet, the day is "". Each day has one such moment. If a clock change skips the time of
// day, the moment is the end of the gap. If clocks show the time of day twice, the moment is the
// first of the two.
func (c Clock) Last(now time.Time) (day string, at time.Time) {
	// after clocks were set back over midnight, they show the previous day again
	today := dateOf(now.In(zone(c.Zone))) + 1
	for d := today; d > today-week-2; d-- {
		if t := c.digestTime(d); !t.IsZero() && !t.After(now) {
			return d.String(), t
		}
	}
	return "", time.Time{}
}

// Next returns the next moment at which a digest is due. It also returns the day that identifies
// this digest.
func (c Clock) Next(now time.Time) (day string, at time.Time) {
	// if a clock change skips a whole day, its moment comes when that day would have ended
	today := dateOf(now.In(zone(c.Zone))) - 1
	for d := today; d < today+week+2; d++ {
		if t := c.digestTime(d); t.After(now) {
			return d.String(), t
		}
	}
	return "", time.Time{}
}

// Window returns the period of the digest that was due last. The period ends when that digest was
// due, and it begins when the previous digest was due. If digests are due from Monday to Friday,
// Monday's digest begins on Friday.
func (c Clock) Window(now time.Time) (from, to time.Time) {
	_, to = c.Last(now)
	if to.IsZero() {
		return to, to
	}
	_, from = c.Last(to.Add(-time.Nanosecond))
	return from.In(zone(c.Zone)), to.In(zone(c.Zone))
}

// digestTime returns the moment at which the digest of a day is due. If no digest is due on that
// day, it returns the zero time.
func (c Clock) digestTime(d date) time.Time {
	if !slices.Contains(c.Days, d.weekday()) {
		return time.Time{}
	}
	return d.timeOf(c.At, zone(c.Zone))
}

func zone(z *time.Location) *time.Location {
	if z == nil {
		return time.UTC
	}
	return z
}

// date is a calendar day, as the number of days since 1 January 1970.
type date int

func dateOf(t time.Time) date {
	y, m, d := t.Date()
	return date(time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / 86400)
}

func (d date) midnight() time.Time   { return time.Unix(int64(d)*86400, 0).UTC() }
func (d date) weekday() time.Weekday { return d.midnight().Weekday() }
func (d date) String() string        { return d.midnight().Format(time.DateOnly) }

// timeOf returns the first moment at which clocks in the zone z show a time on this day. If a clock
// change skips that time, it returns the end of the gap.
func (d date) timeOf(tod TimeOfDay, z *time.Location) time.Time {
	wall := d.midnight().Add(time.Duration(tod.Hour)*time.Hour + time.Duration(tod.Minute)*time.Minute)
	t := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), 0, 0, z)
	start, end := t.ZoneBounds()
	switch shown := asUTC(t); {
	case shown.After(wall): // the time is skipped, and t is after the gap
		return start
	case shown.Before(wall): // the time is skipped, and t is before the gap
		return end
	}
	if start.IsZero() {
		return t
	}
	_, offset := start.Add(-time.Second).Zone()
	if earlier := wall.Add(
		-time.Duration(offset) * time.Second,
	).In(z); earlier.Before(start) && asUTC(earlier).Equal(wall) {
		return earlier // clocks were set back, so they show this time again at t
	}
	return t
}

// asUTC returns the time in UTC that has the same date and time of day as t has in its own zone.
func asUTC(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.Add(time.Duration(offset) * time.Second).UTC()
}
