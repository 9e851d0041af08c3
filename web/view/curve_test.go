package view

import (
	"strings"
	"testing"
	"time"
)

func TestTheCurveInWords(t *testing.T) {
	t.Parallel()
	year := 365 * 24 * time.Hour
	for want, p := range map[string]RetryPlan{
		"After 10 s, 1 min 50 s and 18 min 30 s, each with 10% jitter; then dead.": samplePlan(
			.1, 10*time.Second, 100*time.Second, 1000*time.Second,
		),
		"After 0.5 s, with 100% jitter; then dead.": samplePlan(
			1, 50*time.Millisecond*10,
		),
		"After 10 s; then dead.": samplePlan(
			0, 10*time.Second,
		),
		"No retry: dead at once.": samplePlan(
			0,
		),
		"After 0 ms and 0 ms; then dead.": samplePlan(
			0, 0, 0,
		),
		"After 365 d, 2 years and 3 years, and so on; retry 1,000 after 1,000 years; then dead.": {
			Curve: NewCurve(1000, 0, func(int) (a, b, c time.Duration) { return year, year, year }),
		},
		"After 1 min, 3 min and 7 min, and so on; retry 1,000 after 248 d 2 h, each with 20% jitter; then dead.": sampleThousand(),
	} {
		if got := p.Curve.words("dead"); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

// TestTheCurveDrawsWhatCanBeSeen checks that all points of the curve are inside the frame, and that
// the first and the last retry are drawn. The number of points and the size of the page must stay
// small for any number of retries.
func TestTheCurveDrawsWhatCanBeSeen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Curve{
		"thousand": sampleThousand().Curve, "two": samplePlan(1, time.Second, time.Hour).Curve,
		"at once": samplePlan(0, 0, 0, 0).Curve,
		"even": NewCurve(
			1000, .1, func(int) (a, b, c time.Duration) { return 9 * time.Second, 10 * time.Second, 11 * time.Second },
		),
		"long": NewCurve(1000, 0, func(int) (a, b, c time.Duration) { d := 365 * 24 * time.Hour; return d, d, d }),
	} {
		a := c.axis()
		dots, _, _, _ := c.dots()
		if len(dots) == 0 || len(dots) > 40 || dots[len(dots)-1].Label == "" ||
			!strings.HasPrefix(dots[len(dots)-1].Label, Count(c.Count)+": ") ||
			len(dots) > 1 && !strings.HasPrefix(dots[0].Label, "1: ") {
			t.Errorf("%s: %d points %+v", name, len(dots), dots)
		}
		for _, p := range c.points {
			for _, at := range []float64{p.low, p.at, p.high} {
				if x := a.x(at); !(x >= curveLeft && x <= curveRight) {
					t.Errorf("%s: retry %d is drawn at %v", name, p.n, x)
				}
			}
		}
		page := render(t, retryCurve(c, "dead"))
		if len(page) > 8000 || strings.Contains(page, "NaN") || strings.Contains(page, "Inf") ||
			strings.Contains(page, `d="M-`) {
			t.Errorf("%s: %d bytes: %.3000s", name, len(page), page)
		}
	}
}

func TestRetriesInWords(t *testing.T) {
	t.Parallel()
	plain := samplePlan(0, 10*time.Second, 100*time.Second)
	for want, r := range map[string]Rule{
		"10 s, 1 min 40 s":                          {OwnRetry: true, Retry: plain},
		"same as default (rejected letters only)":   {Retry: plain},
		"discards at once":                          {Retry: plain, Discard: true},
		"no retry":                                  {OwnRetry: true},
		"1 min × 2, 1,000 times, at most 6 h, ±20%": {OwnRetry: true, Retry: sampleThousand()},
		"1 s, 1 s, 1 s, 1 s, 1 s, 1 s, 2 more, ±10%": {
			OwnRetry: true, Retry: samplePlan(.1, slicesRepeat(time.Second, 8)...),
		},
	} {
		if got := r.retries(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
