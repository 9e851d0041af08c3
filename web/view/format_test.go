package view

import (
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

func TestNumbers(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{
		0: "0", 7: "7", 999: "999", 1000: "1,000", 1341: "1,341", 1234567: "1,234,567", -1341: "-1,341",
	} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %q", n, got)
		}
	}
	for n, want := range map[int]string{
		0: "0", 940: "940", 999: "999", 1000: "1k", 4120: "4.1k", 9999: "9.9k", 10_000: "10k", 312_400: "312k",
		1_234_567: "1.2M", 2_000_000_000: "2G",
	} {
		if got := Compact(n); got != want {
			t.Errorf("Compact(%d) = %q", n, got)
		}
	}
	for n, want := range map[int]string{
		0: "0 B", 340: "340 B", 1023: "1023 B", 1024: "1.0 KiB", 1229: "1.2 KiB", 16 << 20: "16 MiB",
		1<<20 - 1: "1.0 MiB", 5 << 30: "5.0 GiB",
	} {
		if got := Size(n); got != want {
			t.Errorf("Size(%d) = %q", n, got)
		}
	}
	if got := AtLeast(10_000, false); got != "10,000+" {
		t.Error(got)
	}
	if LetterCount(1) != "1 letter" || LetterCount(0) != "0 letters" || LetterCount(1341) != "1,341 letters" {
		t.Error(LetterCount(1), LetterCount(0), LetterCount(1341))
	}
	for _, c := range []struct {
		part, whole int
		want        string
	}{
		{0, 0, "0%"},
		{0, 9, "0%"},
		{1, 100_000, "0.1%"},
		{812, 1341, "60.6%"},
		{165, 166, "99.4%"},
		{1999, 2000, "99.9%"},
		{99_999, 100_000, "99.9%"},
		{5, 5, "100%"},
	} {
		if got := Percent(c.part, c.whole); got != c.want {
			t.Errorf("Percent(%d, %d) = %q, want %q", c.part, c.whole, got, c.want)
		}
	}
}

func TestTimes(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "just now", 900 * time.Millisecond: "just now", 42 * time.Second: "42 s ago", 119 * time.Second: "1 min ago",
		3 * time.Hour: "3 h ago", 47 * time.Hour: "47 h ago", 72 * time.Hour: "3 d ago",
		100 * 24 * time.Hour: "2026-08-12", -8500 * time.Millisecond: "in 8 s", -100 * time.Millisecond: "now",
		-3 * time.Hour: "in 3 h", -100 * 24 * time.Hour: "2027-02-28",
	} {
		if got := Ago(now, now.Add(-d)); got != want {
			t.Errorf("Ago(%s) = %q, want %q", d, got, want)
		}
	}
	for d, want := range map[time.Duration]string{
		3 * time.Millisecond: "3 ms", 200 * time.Millisecond: "0.2 s", 10500 * time.Millisecond: "10.5 s",
		59999 * time.Millisecond: "59.9 s", 2 * time.Second: "2 s", 104 * time.Second: "1 min 44 s", time.Hour: "1 h",
		2*time.Hour + 5*time.Minute: "2 h 5 min", 76 * time.Hour: "3 d 4 h", -time.Second: "-1 s",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%s) = %q, want %q", d, got, want)
		}
	}
	berlin := time.FixedZone("CET", 3600)
	at := time.Date(2026, 11, 20, 7, 52, 14, 208e6, berlin)
	for got, want := range map[string]string{
		Clock(now, at): "06:52:14.208", Clock(now, at.AddDate(0, 0, -1)): "11-19 06:52:14",
		Clock(now, at.AddDate(-1, 0, 0)): "2025-11-20", Clock(now, time.Time{}): "unknown",
		UTC(at): "2026-11-20 06:52:14 UTC", UTC(time.Time{}): "", Stamp(at): "2026-11-20T06:52:14.208Z",
		Stamp(time.Time{}): "", Ago(now, time.Time{}): "unknown",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestForeignTextIsOneVisibleLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain": "plain", "a\nb\tc": `a\nb\tc`, "\u202eabc": `\u202eabc`, "\x1b[31m": `\x1b[31m`,
		"0123456789012": "012345678…",
	} {
		if got := line(in, 12); got != want {
			t.Errorf("line(%q) = %q, want %q", in, got, want)
		}
	}
	huge := make([]byte, 1<<20)
	if got := line(string(huge), 50); len(got) > 50 {
		t.Errorf("%d bytes", len(got))
	}
	if prefix, last := typeParts(
		"acme.notify.v1.EmailRequested",
	); prefix != "acme.notify.v1." || last != "EmailRequested" {
		t.Error(prefix, last)
	}
	if prefix, last := typeParts("Lonely"); prefix != "" || last != "Lonely" {
		t.Error(prefix, last)
	}
}

func TestEveryStateHasAFace(t *testing.T) {
	t.Parallel()
	words := map[string]bool{}
	for _, s := range deadletter.States {
		m := stateMark(s)
		if m.Icon == "info" || words[m.Word] {
			t.Errorf("state %s: %+v", s, m)
		}
		words[m.Word] = true
	}
	for _, r := range []deadletter.Result{
		deadletter.ResultPending, deadletter.ResultReleased, deadletter.ResultConfirmed, deadletter.ResultCameBack,
		deadletter.ResultFailed, deadletter.ResultChanged, deadletter.ResultSkipped, deadletter.ResultCancelled,
	} {
		if resultMark(r).Icon == "info" {
			t.Errorf("result %s has no mark", r)
		}
	}
}

func TestTheCountToTypeIsRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"1341": true, "1,341": true, " 1 341 ": true, "1.341": true, "134": false, "": false, "-1341": false,
		"1341x": false,
	} {
		if got := TypedCount(text, 1341); got != want {
			t.Errorf("TypedCount(%q) = %v", text, got)
		}
	}
	if MustType(deadletter.VerbDiscard, 100) || !MustType(deadletter.VerbDiscard, 101) ||
		MustType(deadletter.VerbRequeue, 5000) {
		t.Error("only a discard of more than 100 asks for its count")
	}
}

func TestTheMistakeIsMarked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		query               string
		pos                 int
		before, wrong, rest string
	}{
		{"state:daed queue:sms", 6, "state:", "daed", " queue:sms"},
		{"state:", 6, "state:", " ", ""},
		{"x", -5, "", "x", ""},
		{"x", 99, "x", " ", ""},
		{"a\x1bb c", 0, "", `a\x1bb`, " c"},
	} {
		before, wrong, rest := splitAtMistake(&query.Error{Pos: c.pos}, c.query)
		if before != c.before || wrong != c.wrong || rest != c.rest {
			t.Errorf("%q at %d: %q %q %q", c.query, c.pos, before, wrong, rest)
		}
	}
}

// TestMomentsAreToldByTheClockAfterAnHour checks that When shows times within an hour relative to
// now. It must show times further away as clock times or dates.
func TestMomentsAreToldByTheClockAfterAnHour(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-4 * time.Minute: "4 min ago", -59 * time.Minute: "59 min ago", 30 * time.Minute: "in 30 min",
		-time.Hour: "at 08:14 UTC", 2 * time.Hour: "at 11:14 UTC", -24 * time.Hour: "on Thu at 09:14 UTC",
		-20 * 24 * time.Hour: "on 2026-10-31",
	} {
		if got := When(now, now.Add(d)); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
	if got := When(now, time.Time{}); got != "unknown" {
		t.Errorf("no time: %q", got)
	}
}

func TestTheAxisEndsNowAndNamesItsDays(t *testing.T) {
	t.Parallel()
	h := deadletter.Histogram{From: now.Add(-24 * time.Hour), To: now, Step: 15 * time.Minute}
	for i := range 96 {
		h.Bars = append(h.Bars, deadletter.Bar{At: h.From.Add(time.Duration(i) * h.Step)})
	}
	var all []string
	for _, tick := range ticks(h, frame{34, 14, 726, 160}) {
		all = append(all, tick.Text)
	}
	if got, want := strings.Join(
		all, ", ",
	), "19 Nov 09:14, 12:44, 16:14, 19:44, 23:14, 20 Nov 02:44, 06:14"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestADeployStandsWhereItsBarBegins checks that the bars, the times and the deploys of a chart
// have the same scale. In the test, the first bar covers some time before the range of the chart,
// and the last bar covers some time after it.
func TestADeployStandsWhereItsBarBegins(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 11, 20, 16, 10, 0, 0, time.UTC)
	h := deadletter.Histogram{From: from, To: from.Add(time.Hour), Step: 15 * time.Minute}
	for i := range 5 {
		h.Bars = append(h.Bars, deadletter.Bar{At: from.Add(time.Duration(15*i-10) * time.Minute)})
	}
	f := frame{34, 14, 500, 160}
	got := marks(h, []deadletter.Deploy{{At: h.Bars[3].At, Service: "s", Version: "1"}}, f)
	if len(got) != 1 || got[0].X != "334" || ticks(h, f)[3].X != "334" {
		t.Errorf("deploys %+v, times %+v", got, ticks(h, f))
	}
}

// TestLabelsOfDeploysDoNotOverlap checks the versions in a chart: beside their lines, inside the
// chart, and left out where there is no room.
func TestLabelsOfDeploysDoNotOverlap(t *testing.T) {
	t.Parallel()
	h := deadletter.Histogram{From: now.Add(-time.Hour), To: now, Step: time.Minute}
	for i := range 60 {
		h.Bars = append(h.Bars, deadletter.Bar{At: h.From.Add(time.Duration(i) * h.Step)})
	}
	at := func(minute int, version string) deadletter.Deploy {
		return deadletter.Deploy{At: h.From.Add(time.Duration(minute) * time.Minute), Service: "s", Version: version}
	}
	var got []string
	for _, m := range marks(h, []deadletter.Deploy{
		at(59, "2.0.1"), at(58, "2.0.0"), at(30, "1.5.0"), at(29, "1.4.10"), at(0, ""),
	}, frame{0, 14, 600, 160}) {
		got = append(got, m.X+" "+m.LabelX+" "+m.Anchor+" "+m.Label)
	}
	want := "590 587 end 2.0.1, 580   , 300 303 start 1.5.0, 290 287 end 1.4.10, 0 3 start s"
	if got := strings.Join(got, ", "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
