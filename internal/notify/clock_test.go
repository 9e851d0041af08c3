package notify

import (
	"slices"
	"testing"
	"time"
	_ "time/tzdata"

	"pgregory.net/rapid"
)

var (
	workdays = []time.Weekday{time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday}
	everyday = append([]time.Weekday{time.Saturday, time.Sunday}, workdays...)
)

func location(t interface{ Fatal(...any) }, name string) *time.Location {
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func utc(t testing.TB, s string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02 15:04", s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestTheNewestDigestThatWasDue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, zone string
		at         TimeOfDay
		days       []time.Weekday
		now, due   string // in UTC
	}{
		{"a morning", "Europe/Berlin", TimeOfDay{8, 30}, workdays, "2026-11-20 09:00", "2026-11-20 07:30"},
		{"at the minute", "Europe/Berlin", TimeOfDay{8, 30}, workdays, "2026-11-20 07:30", "2026-11-20 07:30"},
		{"a minute before", "Europe/Berlin", TimeOfDay{8, 30}, workdays, "2026-11-20 07:29", "2026-11-19 07:30"},
		{
			"a Sunday belongs to Friday",
			"Europe/Berlin",
			TimeOfDay{8, 30},
			workdays,
			"2026-11-22 12:00",
			"2026-11-20 07:30",
		},
		{"a day of the west", "America/New_York", TimeOfDay{23, 0}, everyday, "2026-11-21 04:30", "2026-11-21 04:00"},
		{
			"once a week, hours before it",
			"Europe/Berlin",
			TimeOfDay{8, 30},
			[]time.Weekday{time.Friday},
			"2026-11-20 07:00",
			"2026-11-13 07:30",
		},
		{"summer", "Europe/Berlin", TimeOfDay{8, 30}, everyday, "2026-07-01 12:00", "2026-07-01 06:30"},
		{
			"spring, a time that is skipped",
			"Europe/Berlin",
			TimeOfDay{2, 30},
			everyday,
			"2026-03-29 01:00",
			"2026-03-29 01:00",
		},
		{
			"spring, just before the gap",
			"Europe/Berlin",
			TimeOfDay{2, 30},
			everyday,
			"2026-03-29 00:59",
			"2026-03-28 01:30",
		},
		{
			"autumn, a time that is shown twice: the first",
			"Europe/Berlin",
			TimeOfDay{2, 30},
			everyday,
			"2026-10-25 00:30",
			"2026-10-25 00:30",
		},
		{
			"autumn, not again an hour later",
			"Europe/Berlin",
			TimeOfDay{2, 30},
			everyday,
			"2026-10-25 01:30",
			"2026-10-25 00:30",
		},
		{"New York in spring", "America/New_York", TimeOfDay{2, 15}, everyday, "2026-03-08 07:00", "2026-03-08 07:00"},
		{"New York in autumn", "America/New_York", TimeOfDay{1, 15}, everyday, "2026-11-01 06:20", "2026-11-01 05:15"},
		{
			"half an hour of Lord Howe, skipped",
			"Australia/Lord_Howe",
			TimeOfDay{2, 10},
			everyday,
			"2026-10-03 15:30",
			"2026-10-03 15:30",
		},
		{
			"half an hour of Lord Howe, twice",
			"Australia/Lord_Howe",
			TimeOfDay{1, 45},
			everyday,
			"2026-04-04 15:20",
			"2026-04-04 14:45",
		},
		{
			"midnight that did not exist in São Paulo",
			"America/Sao_Paulo",
			TimeOfDay{0, 0},
			everyday,
			"2018-11-04 03:00",
			"2018-11-04 03:00",
		},
		{"no days", "Europe/Berlin", TimeOfDay{8, 30}, nil, "2026-11-20 09:00", "0001-01-01 00:00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clock := Clock{At: c.at, Days: c.days, Zone: location(t, c.zone)}
			day, due := clock.Last(utc(t, c.now))
			want := utc(t, c.due)
			wantDay := ""
			if !want.IsZero() {
				wantDay = want.In(clock.Zone).Format(time.DateOnly)
			}
			if day != wantDay || !due.Equal(want) {
				t.Errorf("got %s at %s, want %s at %s", day, due.UTC(), wantDay, c.due)
			}
		})
	}
	samoa := Clock{At: TimeOfDay{8, 30}, Days: everyday, Zone: location(t, "Pacific/Apia")}
	if day, due := samoa.Last(utc(t, "2011-12-30 10:00")); day != "2011-12-30" || !due.Equal(utc(t, "2011-12-30 10:00")) {
		t.Errorf("a whole day that Samoa left out: %s at %s", day, due)
	}
}

func TestAWindowReachesBackToTheDigestBefore(t *testing.T) {
	t.Parallel()
	clock := Clock{At: TimeOfDay{8, 30}, Days: workdays, Zone: location(t, "Europe/Berlin")}
	for _, c := range []struct{ name, now, from, to string }{
		{"Tuesday", "2026-11-17 08:00", "2026-11-16 07:30", "2026-11-17 07:30"},
		{"Monday", "2026-11-16 08:00", "2026-11-13 07:30", "2026-11-16 07:30"},
		{"over the change of the clocks", "2026-10-26 08:00", "2026-10-23 06:30", "2026-10-26 07:30"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			from, to := clock.Window(utc(t, c.now))
			if !from.Equal(utc(t, c.from)) || !to.Equal(utc(t, c.to)) {
				t.Errorf("got %s to %s, want %s to %s", from.UTC(), to.UTC(), c.from, c.to)
			}
		})
	}
	if from, to := (Clock{}).Window(time.Now()); !from.IsZero() || !to.IsZero() {
		t.Errorf("a clock without days has the window %s to %s", from, to)
	}
}

var zones = []string{
	"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "America/St_Johns",
	"Asia/Kolkata", "Asia/Tehran", "Africa/Casablanca", "Pacific/Apia", "Antarctica/Troll",
}

// searchTime returns the first moment of the given day at which clocks show the given time. It
// finds this moment by going through all minutes. If a clock change skips that time, it returns the
// first moment at which clocks show a later one.
func searchTime(d date, tod TimeOfDay, z *time.Location) time.Time {
	wall := d.midnight().Add(time.Duration(tod.Hour)*time.Hour + time.Duration(tod.Minute)*time.Minute)
	for t := wall.Add(-26 * time.Hour); ; t = t.Add(time.Minute) {
		if !asUTC(t.In(z)).Before(wall) {
			return t
		}
	}
}

func drawClock(t *rapid.T) Clock {
	return Clock{
		At:   TimeOfDay{rapid.IntRange(0, 23).Draw(t, "hour"), rapid.IntRange(0, 59).Draw(t, "minute")},
		Days: rapid.SliceOfNDistinct(rapid.SampledFrom(everyday), 1, 7, rapid.ID).Draw(t, "days"),
		Zone: location(t, rapid.SampledFrom(zones).Draw(t, "zone")),
	}
}

// drawMoment returns a random moment. It first draws any moment. If the clocks of the time zone
// change later, it replaces this moment, in half of the cases, by one within two days of the
// change.
func drawMoment(t *rapid.T, z *time.Location) time.Time {
	at := time.Unix(rapid.Int64Range(10*365*86400, 67*365*86400).Draw(t, "at"), 0).In(z)
	if _, end := at.ZoneBounds(); !end.IsZero() && rapid.Bool().Draw(t, "near a change") {
		at = end.Add(time.Duration(rapid.IntRange(-48*60, 48*60).Draw(t, "minutes from it")) * time.Minute)
	}
	return at
}

func TestEachDayHasOneDigestWhateverTheClocksDo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawClock(t)
		now := drawMoment(t, c.Zone)
		day, at := c.Last(now)
		if at.After(now) {
			t.Fatalf("the last one, %s, is after now", at)
		}
		d := dateOf(at.In(c.Zone))
		for ; d.String() != day; d-- { // for a skipped day, this is the day before
			if d < dateOf(at)-3 {
				t.Fatalf("%s at %s is no day near", day, at)
			}
		}
		if want := searchTime(d, c.At, c.Zone); !at.Equal(want) {
			t.Fatalf("%s is due at %s, want %s", day, at, want)
		}
		if !slices.Contains(c.Days, d.weekday()) {
			t.Fatalf("%s is a %s", day, d.weekday())
		}
		if again, same := c.Last(at); again != day || !same.Equal(at) {
			t.Fatalf("at its own moment %s is %s", day, again)
		}
		before, earlier := c.Last(at.Add(-time.Nanosecond))
		if before >= day || !earlier.Before(at) {
			t.Fatalf("before %s there is %s", day, before)
		}
		next, then := c.Next(now)
		if next <= day || !then.After(now) {
			t.Fatalf("after %s comes %s at %s", day, next, then)
		}
		if last, _ := c.Last(then); last < next {
			t.Fatalf("at its moment %s is not the last but %s", next, last)
		}
		if last, _ := c.Last(then.Add(-time.Nanosecond)); last != day {
			t.Fatalf("between %s and %s there is %s", day, next, last)
		}
		from, to := c.Window(now)
		if !from.Equal(earlier) || !to.Equal(at) {
			t.Fatalf("the window is %s to %s", from, to)
		}
	})
}

// TestRestartsAndClockJumpsSendNoDigestTwice checks that dlo sends one digest per day. In the test,
// dlo checks only every few minutes, is restarted, and has a clock that jumps. It records the day
// of each digest.
func TestRestartsAndClockJumpsSendNoDigestTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := drawClock(t)
		now := drawMoment(t, c.Zone)
		newest, _ := c.Last(now)
		var sent []string
		for range 200 {
			now = now.Add(time.Duration(rapid.IntRange(-90, 240).Draw(t, "step")) * time.Minute)
			if day, _ := c.Last(now); day > newest {
				newest, sent = day, append(sent, day)
			}
		}
		if unique := slices.Compact(slices.Sorted(slices.Values(sent))); len(unique) != len(sent) {
			t.Fatalf("sent %v", sent)
		}
	})
}
