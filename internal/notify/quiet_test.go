package notify

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestQuietHoursEnd(t *testing.T) {
	t.Parallel()
	berlin := location(t, "Europe/Berlin")
	night := Quiet{From: TimeOfDay{22, 0}, To: TimeOfDay{7, 0}, Days: everyday, Zone: berlin}
	for _, c := range []struct {
		name  string
		quiet Quiet
		now   string // present time in UTC
		until string // end of the quiet hours in UTC; "" = outside quiet hours
	}{
		{"before it", night, "2026-11-20 20:59", ""},
		{"as it begins", night, "2026-11-20 21:00", "2026-11-21 06:00"},
		{"after midnight", night, "2026-11-21 02:00", "2026-11-21 06:00"},
		{"as it ends", night, "2026-11-21 06:00", ""},
		{"over the change in spring", night, "2026-03-28 23:00", "2026-03-29 05:00"},
		{"over the change in autumn", night, "2026-10-24 23:00", "2026-10-25 06:00"},
		{"no days", Quiet{From: TimeOfDay{22, 0}, To: TimeOfDay{7, 0}}, "2026-11-21 02:00", ""},
		{
			"the night of a Friday lasts into Saturday",
			Quiet{TimeOfDay{22, 0}, TimeOfDay{7, 0}, []time.Weekday{time.Friday}, berlin},
			"2026-11-21 02:00",
			"2026-11-21 06:00",
		},
		{
			"the night before it is none",
			Quiet{TimeOfDay{22, 0}, TimeOfDay{7, 0}, []time.Weekday{time.Friday}, berlin},
			"2026-11-20 02:00",
			"",
		},
		{
			"within a day",
			Quiet{TimeOfDay{12, 0}, TimeOfDay{13, 0}, workdays, berlin},
			"2026-11-20 11:30",
			"2026-11-20 12:00",
		},
		{
			"a whole weekend",
			Quiet{TimeOfDay{0, 0}, TimeOfDay{0, 0}, []time.Weekday{time.Saturday, time.Sunday}, berlin},
			"2026-11-21 12:00",
			"2026-11-22 23:00",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var want time.Time
			if c.until != "" {
				want = utc(t, c.until)
			}
			if got := c.quiet.Until(utc(t, c.now)); !got.Equal(want) {
				t.Errorf("got %s, want %s", got.UTC(), want)
			}
		})
	}
}

func TestQuietHoursAlwaysEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c, to := drawClock(t), drawClock(t)
		q := Quiet{From: c.At, To: to.At, Days: c.Days, Zone: c.Zone}
		now := drawMoment(t, c.Zone)
		until := q.Until(now)
		if until.IsZero() {
			return
		}
		if !until.After(now) || until.Sub(now) > 10*24*time.Hour {
			t.Fatalf("it is quiet from %s until %s", now, until)
		}
		if len(c.Days) < 7 && !q.Until(until).IsZero() {
			t.Fatalf("at its end, %s, it is quiet until %s", until, q.Until(until))
		}
	})
}

// TestQuietHours checks which notices wait until the quiet hours are over. It runs in a synctest
// bubble, in which time begins at midnight UTC on Saturday, 1 January 2000.
func TestQuietHours(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scribe{}
		quiet := Quiet{From: TimeOfDay{22, 0}, To: TimeOfDay{7, 0}, Days: everyday}
		b := newBench(time.Now, quiet, map[string]Channel{"team": {Sender: s}})
		b.box.add("team", opened, soft, "soft")
		b.box.add("team", deadletter.NoticeBreaker, soft, "told")
		b.box.add("team", resolved, soft, "over")
		b.box.add("team", opened, loud, "loud")
		b.box.add("team", deadletter.NoticeDigest, deadletter.SeverityDigest, "digest")
		b.box.add("team", deadletter.NoticeEscalated, loud, "soft") // a page about the same group
		began := time.Now()
		stop := b.start(t)
		time.Sleep(6 * time.Hour)
		told, _ := s.sentMessages()
		if d := cmp.Diff([]string{"fires loud", "told digest", "updates soft"}, keysOf(told)); d != "" {
			t.Error(d)
		}
		time.Sleep(2 * time.Hour)
		stop()
		told, at := s.sentMessages()
		if d := cmp.Diff([]string{"fires soft", "told told", "resolves over"}, keysOf(told[3:])); d != "" {
			t.Error(d)
		}
		if at[3].Sub(began) < 7*time.Hour {
			t.Errorf("it was told after %s", at[3].Sub(began))
		}
		if b.box.row(1).Tries != 0 || b.outcomes(t, "team")["retried"] != 0 {
			t.Error("waiting counts as a failure")
		}
	})
}
