package notify_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/notify"
)

// days contains the digests in a store, by day.
type days struct {
	list []string
	last string
	fail error
	from map[string]time.Time

	size, counted int           // number of groups in a digest, and how often they were counted
	slow          time.Duration // duration of a count
}

func (s *days) DigestSize(context.Context, time.Time, time.Time) (int, error) {
	time.Sleep(s.slow)
	s.counted++
	return s.size, s.fail
}

func (s *days) Digest(_ context.Context, from, to time.Time, _ int) (deadletter.Digest, error) {
	return deadletter.Digest{From: from, To: to}, nil
}

func (s *days) SendDigest(_ context.Context, day, _ string, d deadletter.Digest, channels []string) (bool, error) {
	if s.fail != nil {
		return false, s.fail
	}
	if _, ok := s.from[day]; ok {
		return false, nil
	}
	s.from[day], s.last = d.From, day
	if len(channels) > 0 {
		s.list = append(s.list, day)
	}
	return true, nil
}

func (s *days) LastDigest(context.Context) (string, deadletter.Digest, error) {
	if s.last == "" {
		return "", deadletter.Digest{}, deadletter.ErrNotFound
	}
	return s.last, deadletter.Digest{}, nil
}

func zoneOf(t *testing.T, name string) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// TestSizeOfADigest checks that the number of groups in a digest is not counted too often. If
// counting took one second, the result must be used for the next 20 seconds. If counting failed,
// the next call must count again.
func TestSizeOfADigest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &days{size: 3, slow: time.Second, fail: errors.New("busy")}
		d := notify.NewDigester(s, notify.Schedule{}, nil, slog.New(slog.DiscardHandler), func() {})
		if _, err := d.Size(t.Context()); err == nil {
			t.Error("no error")
		}
		want := func(size, counted int) {
			t.Helper()
			if n, err := d.Size(t.Context()); err != nil || n != size || s.counted != counted {
				t.Errorf("%d groups (%v), counted %d times; want %d, %d", n, err, s.counted, size, counted)
			}
		}
		s.fail = nil
		want(3, 2)
		s.size = 4
		time.Sleep(18 * time.Second)
		want(3, 2)
		time.Sleep(2 * time.Second)
		want(4, 3)
	})
}

// TestOneDigestADay checks that each day has one digest at its local time. The test includes both
// clock changes, three time zones, and a restart at every step.
func TestOneDigestADay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		zone     string
		at       notify.TimeOfDay
		from, to string // first and last day around a clock change
	}{
		{"Europe/Berlin", notify.TimeOfDay{Hour: 2, Minute: 30}, "2026-03-27", "2026-03-31"},
		{"Europe/Berlin", notify.TimeOfDay{Hour: 2, Minute: 30}, "2026-10-23", "2026-10-27"},
		{"America/New_York", notify.TimeOfDay{Hour: 2, Minute: 15}, "2026-03-06", "2026-03-10"},
		{"America/New_York", notify.TimeOfDay{Hour: 1, Minute: 45}, "2026-10-30", "2026-11-03"},
		{"Australia/Lord_Howe", notify.TimeOfDay{Hour: 2, Minute: 10}, "2026-10-02", "2026-10-06"},
		{"Australia/Lord_Howe", notify.TimeOfDay{Hour: 1, Minute: 40}, "2026-04-03", "2026-04-07"},
	} {
		zone := zoneOf(t, c.zone)
		first, _ := time.ParseInLocation(time.DateOnly, c.from, zone)
		last, _ := time.ParseInLocation(time.DateOnly, c.to, zone)
		s := &days{from: map[string]time.Time{}}
		schedule := notify.Schedule{
			Clock:    notify.Clock{At: c.at, Zone: zone, Days: []time.Weekday{0, 1, 2, 3, 4, 5, 6}},
			Channels: []string{"team"},
		}
		now := first.Add(-12 * time.Hour) // the digest of the day before is stored but sent to nobody
		for ; now.Before(last); now = now.Add(30 * time.Second) {
			at := now
			// this is a restart at every step
			d := notify.NewDigester(
				s, schedule, func() time.Time { return at }, slog.New(slog.DiscardHandler), func() {},
			)
			before := len(s.list)
			if err := d.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
			if len(s.list) > before {
				if local := at.In(zone); local.Format(time.DateOnly) != s.list[before] || local.Hour() > c.at.Hour+1 {
					t.Errorf("%s: that of %s at %s", c.zone, s.list[before], local)
				}
			}
		}
		var want []string
		for d := first; d.Before(last); d = d.AddDate(0, 0, 1) {
			want = append(want, d.Format(time.DateOnly))
		}
		if !slices.Equal(s.list, want) {
			t.Errorf("%s: %v, want %v", c.zone, s.list, want)
		}
	}
}

// TestDigestsWhenClocksJump checks that no day has two digests if the clock jumps. A jump of one
// year must lead to one digest and not to many.
func TestDigestsWhenClocksJump(t *testing.T) {
	t.Parallel()
	s := &days{from: map[string]time.Time{}}
	now := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	d := notify.NewDigester(s, notify.Schedule{
		Clock: notify.Clock{
			At:   notify.TimeOfDay{Hour: 8, Minute: 30},
			Zone: time.UTC,
			Days: []time.Weekday{1, 2, 3, 4, 5},
		},
		Channels: []string{"team"},
	},
		func() time.Time { return now }, slog.New(slog.DiscardHandler), func() {})
	step := func(to time.Time) {
		t.Helper()
		if now = to; d.Step(t.Context()) != nil {
			t.Fatal("step")
		}
	}
	step(now)
	step(now.Add(31 * time.Minute))   // Friday, after the digest
	step(now.Add(-20 * time.Minute))  // Friday, before the digest
	step(now.Add(25 * time.Minute))   // Friday, after the digest again
	step(now.AddDate(1, 0, 0))        // Saturday, a year later
	step(now.AddDate(-1, 0, 0))       // Friday of the first year again
	step(now.Add(3 * 24 * time.Hour)) // Monday
	s.fail = errors.New("disk full")
	now = now.Add(24 * time.Hour)
	if err := d.Step(t.Context()); err == nil {
		t.Error("a digest that could not be written is not missed")
	}
	s.fail = nil
	step(now) // Tuesday, later than the digest
	if want := []string{"2026-11-20", "2027-11-19", "2026-11-23", "2026-11-24"}; !slices.Equal(s.list, want) {
		t.Errorf("%v, want %v", s.list, want)
	}
	if from := s.from["2026-11-23"]; !from.Equal(time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC)) {
		t.Errorf("that of Monday begins %s", from)
	}
}

// TestTheFirstDigestIsThatAfterTheStart covers a store that dlo uses for the first time. The first
// digest that is sent must be the first one that becomes due after the start.
func TestTheFirstDigestIsThatAfterTheStart(t *testing.T) {
	t.Parallel()
	s := &days{from: map[string]time.Time{}}
	now := time.Date(2026, 11, 20, 14, 0, 0, 0, time.UTC)
	woken := 0
	schedule := notify.Schedule{
		Clock: notify.Clock{
			At:   notify.TimeOfDay{Hour: 8, Minute: 30},
			Zone: time.UTC,
			Days: []time.Weekday{1, 2, 3, 4, 5},
		},
		Channels: []string{"team"},
	}
	d := notify.NewDigester(
		s, schedule, func() time.Time { return now }, slog.New(slog.DiscardHandler), func() { woken++ },
	)
	if err := d.Step(t.Context()); err != nil || len(s.list) != 0 || woken != 0 {
		t.Error(s.list, woken, err)
	}
	if at, channels := d.Next(); !at.Equal(time.Date(2026, 11, 23, 8, 30, 0, 0, time.UTC)) || len(channels) != 1 {
		t.Error(at, channels)
	}
	if digest, err := d.Now(t.Context()); err != nil ||
		!digest.From.Equal(time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC)) || !digest.To.Equal(now) {
		t.Error(digest, err)
	}
	if channels, err := d.Send(t.Context(), deadletter.Local); err != nil || len(channels) != 1 || woken != 1 {
		t.Error(channels, woken, err)
	}
	d.Replace(notify.Schedule{})
	if _, err := d.Send(t.Context(), deadletter.Local); !errors.Is(err, deadletter.ErrConflict) {
		t.Error(err)
	}
	if at, _ := d.Next(); !at.IsZero() || d.Step(t.Context()) != nil {
		t.Error("without days there is one all the same")
	}
}
