package rules

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDelays(t *testing.T) {
	t.Parallel()
	explicit := Retry{Delays: []time.Duration{time.Minute, time.Second, 400 * 24 * time.Hour}}
	growing := Retry{Attempts: 5, First: 10 * time.Second, Factor: 3, Max: 4 * time.Minute}
	for _, c := range []struct {
		name  string
		retry Retry
		want  []time.Duration
	}{
		{"explicit, and none above a year", explicit, []time.Duration{time.Minute, time.Second, MaxDelay, MaxDelay}},
		{
			"growing up to its max",
			growing,
			[]time.Duration{
				10 * time.Second, 30 * time.Second, 90 * time.Second, 4 * time.Minute, 4 * time.Minute, 4 * time.Minute,
			},
		},
		{
			"without a factor it does not grow",
			Retry{Attempts: 2, First: time.Hour},
			[]time.Duration{time.Hour, time.Hour},
		},
		{"at once stays at once", Retry{Attempts: 1e6, Factor: 1e300}, []time.Duration{0, 0}},
		{"beyond all numbers", Retry{Attempts: 1e6, First: 1, Factor: 1e300}, []time.Duration{1, MaxDelay, MaxDelay}},
		{"no retry", Retry{}, []time.Duration{0}},
		{
			"in the broker none above 49 days",
			Retry{Delays: []time.Duration{time.Minute, MaxDelay}, Waiter: WaiterQueue},
			[]time.Duration{time.Minute, MaxWait},
		},
		{
			"in the broker it grows up to 49 days",
			Retry{Attempts: 3, First: 24 * time.Hour, Factor: 40, Max: MaxDelay, Waiter: WaiterTTL},
			[]time.Duration{24 * time.Hour, 40 * 24 * time.Hour, MaxWait},
		},
	} {
		for n, want := range c.want {
			if got := c.retry.Delay(n); got != want {
				t.Errorf("%s: %s before retry %d, want %s", c.name, got, n, want)
			}
		}
	}
}

func anyRetry(t *rapid.T) Retry {
	delay := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Range(0, int64(MaxDelay)).Draw(t, "delay"))
	})
	r := Retry{
		Jitter: rapid.Float64Range(0, 1).Draw(t, "jitter"),
		Waiter: rapid.SampledFrom(append(Waiters, "")).Draw(t, "waiter"),
	}
	if rapid.Bool().Draw(t, "explicit") {
		r.Delays = rapid.SliceOfN(delay, 1, 8).Draw(t, "delays")
		return r
	}
	r.Attempts, r.First, r.Max = rapid.IntRange(0, 1e6).Draw(
		t, "attempts",
	), delay.Draw(t, "first"), delay.Draw(t, "max")
	r.Factor = rapid.OneOf(
		rapid.Just(1.0), rapid.Float64Range(1.001, 10), rapid.Float64Range(1, 1e300), rapid.Just(math.Inf(1)),
		rapid.Just(math.NaN()),
	).Draw(t, "factor")
	return r
}

// TestEveryBackOff checks random back-offs. Each retry has a band, which is the shortest and the
// longest delay that jitter allows. Every delay must be in its band. Every band must be within a
// year, or within 49 days if letters wait in the broker. Without jitter, growing delays must never
// become shorter. The same seed, letter and retry must result in the same delay. No delay may be
// longer than Longest.
func TestEveryBackOff(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := anyRetry(t)
		set := Set{Default: Rule{Retry: &r}, Rules: []Rule{{}}}
		seed, serial := rapid.Uint64().Draw(t, "seed"), rapid.Int64().Draw(t, "serial")
		n := rapid.IntRange(0, max(1, r.Count())-1).Draw(t, "retry")
		low, high := r.Band(n)
		plain, drawn := r.Delay(n), r.Draw(n, seed, serial)
		switch {
		case r.Waiter != "" && r.Waiter != WaiterStore && high > MaxWait:
			t.Fatalf("%s behind %s", high, r.Waiter)
		case low < 0 || low > plain || plain > high || high > MaxDelay:
			t.Fatalf("band from %s to %s around %s", low, high, plain)
		case drawn < low || drawn > high:
			t.Fatalf("%s is not from %s to %s", drawn, low, high)
		case drawn != r.Draw(n, seed, serial):
			t.Fatal("another delay for the same seed, letter and retry")
		case len(r.Delays) == 0 && r.Delay(n+1) < plain:
			t.Fatalf("%s after %s", r.Delay(n+1), plain)
		case r.Max > 0 && plain > r.Max:
			t.Fatalf("%s is above max %s", plain, r.Max)
		case r.Count() > 0 && drawn > set.Longest():
			t.Fatalf("%s is longer than %s", drawn, set.Longest())
		}
	})
}

func TestTheBandOfAWaiter(t *testing.T) {
	t.Parallel()
	const first = 40 * 24 * time.Hour
	for waiter, want := range map[Waiter]time.Duration{
		"": 2 * first, WaiterStore: 2 * first, WaiterQueue: MaxWait, WaiterTTL: MaxWait, WaiterDelayed: MaxWait,
	} {
		r := Retry{Delays: []time.Duration{first}, Jitter: 1, Waiter: waiter}
		if low, high := r.Band(0); low != 0 || high != want {
			t.Errorf("%q: %s to %s, want %s", waiter, low, high, want)
		}
	}
}

func TestLettersAreSpreadOverTheBand(t *testing.T) {
	t.Parallel()
	r := Retry{Delays: []time.Duration{time.Minute, time.Minute}, Jitter: 0.5}
	var parts [6]int
	const letters = 6000
	for serial := range int64(letters) {
		d := r.Draw(1, 42, serial)
		parts[min(5, (d-30*time.Second)/(10*time.Second))]++
		if d == r.Draw(0, 42, serial) && d == r.Draw(1, 43, serial) {
			t.Errorf("letter %d: %s whatever the seed and the retry", serial, d)
		}
	}
	for i, n := range parts {
		if n < letters/6*8/10 || n > letters/6*12/10 {
			t.Errorf("%d of %d letters in part %d of 6", n, letters, i)
		}
	}
}

func TestLongest(t *testing.T) {
	t.Parallel()
	set := Set{
		Default: Rule{Retry: &Retry{Delays: []time.Duration{time.Hour, time.Second}}},
		Rules: []Rule{
			{},
			{Retry: &Retry{}},
			{
				Retry: &Retry{
					Attempts: math.MaxInt, First: time.Second, Factor: 1.0000001, Max: 2 * time.Hour, Jitter: 0.5,
				},
			},
		},
	}
	if got := set.Longest(); got != 3*time.Hour {
		t.Error(got)
	}
	if got := (&Set{}).Longest(); got != 0 {
		t.Error(got)
	}
}

// TestRest checks the maximum sum of the remaining delays of a back-off.
func TestRest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		retry Retry
		n     int
		want  time.Duration
	}{
		{Retry{}, 0, 0},
		{Retry{Delays: []time.Duration{time.Second, time.Minute}}, 0, 61 * time.Second},
		{Retry{Delays: []time.Duration{time.Second, time.Minute}}, 1, time.Minute},
		{Retry{Delays: []time.Duration{time.Second, time.Minute}}, 2, 0},
		{Retry{Attempts: 3, First: 10 * time.Second, Factor: 3, Max: time.Minute, Jitter: 0.5}, 0, 150 * time.Second},
		{Retry{Attempts: 10_000, First: MaxDelay}, 0, MaxRest},
	} {
		if got := c.retry.Rest(c.n); got != c.want {
			t.Errorf("%+v from retry %d: %s, want %s", c.retry, c.n, got, c.want)
		}
	}
}
