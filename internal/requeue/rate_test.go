package requeue

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// TestLanes checks lanes, which are sets of letters that share one rate. If a lane had no limit for
// some time and then gets one, it must not send a backlog. While a breaker lets the rate of a queue
// rise, all lanes of the queue must share this rate. The default rule may have its own rate.
func TestLanes(t *testing.T) {
	t.Parallel()
	five, fast := 5.0, 200.0
	book := rules.NewBook(&rules.Set{
		Rules:   []rules.Rule{{Name: "fast", Rate: &fast}, {Name: "plain"}},
		Default: rules.Rule{Name: rules.DefaultName, Rate: &five, Retry: &rules.Retry{}},
	})
	d := New(nil, &silent{}, Options{
		Rate:    50,
		Rates:   []rules.Rate{{Queue: "slow-*", PerSecond: 0.5}},
		Rules:   book,
		Breaker: Breaker{Window: time.Minute},
	})
	for _, c := range []struct {
		queue, rule string
		want        float64
	}{
		{"sms", "", 50},
		{"sms", "fast", 200},
		{"sms", rules.DefaultName, 5},
		{"slow-sms", "", 0.5},
		{"slow-sms", "fast", 200},
	} {
		if got := d.rate(c.queue, c.rule); got != c.want {
			t.Errorf("%s, rule %q: %g a second, want %g", c.queue, c.rule, got, c.want)
		}
	}
	if got := d.highestRate("slow-sms"); got != 200 {
		t.Errorf("the highest rate is %g", got)
	}
	now := time.Now()
	l := lane{queue: "sms"}
	if n := d.fillBucket(l, 10, now); n != 2 {
		t.Errorf("%d letters at once", n)
	}
	d.fillBucket(l, math.Inf(1), now)
	for range 1000 {
		d.spendTokens("sms", "", 0)
	}
	if n := d.fillBucket(l, 10, now.Add(time.Second)); n != 2 {
		t.Errorf("%d letters after a time without a limit", n)
	}
	d.fillBucket(lane{queue: "sms", rule: ramping}, 1, now)
	d.spendTokens("sms", "fast", 0)
	if n := d.fillBucket(lane{queue: "sms", rule: ramping}, 1, now); n != 0 {
		t.Errorf("%d letters of another lane while the rate of the queue rises", n)
	}
}

// silent is a broker that gives no information.
type silent struct{}

func (*silent) Ready(ctx context.Context) error { return ctx.Err() }
func (*silent) Publish(context.Context, int64, []deadletter.Publishing) []deadletter.Outcome {
	return nil
}

func (*silent) Takes(...deadletter.Wait) bool   { return false }
func (*silent) Status() deadletter.BrokerStatus { return deadletter.BrokerStatus{Connected: true} }

func (*silent) Session() int64                                                       { return 0 }
func (*silent) LockStore(context.Context, int64, string) error                       { return nil }
func (*silent) UnlockStore(int64)                                                    {}
func (*silent) ReadMark(context.Context, string, bool) (*deadletter.Progress, error) { return nil, nil }
func (*silent) WriteMark(context.Context, int64, deadletter.Progress) error          { return nil }

func (*silent) Facts(context.Context, string) deadletter.QueueFacts { return deadletter.UnknownQueue }
