package requeue

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// bucket is a limit for the rate of the automatic retries of one lane, so that overdue letters do
// not leave in one burst.
type bucket struct {
	tokens float64
	at     time.Time
}

// burst is the largest number of letters that may be sent at once, as a fraction of the letters
// that may be sent in one second.
const burst = 0.2

// lane is a set of letters that share one rate. In each queue, all rules without a rate of their
// own share one lane, in which the field "rule" is empty. Each rule with its own rate has its own
// lane. While a breaker lets the rate rise, all letters to which this breaker applies also share a
// lane.
type lane struct {
	queue, rule string
	group       deadletter.GroupID
}

// rate returns how many automatic retries per second a lane may send. If there is no limit, it
// returns +Inf.
func (d *Dispatcher) rate(queue, rule string) float64 {
	rate := d.o.Rate
	if own := d.o.Rules.Set().Of(rule).Rate; rule != "" && own != nil {
		rate = *own
	} else if i := slices.IndexFunc(
		d.o.Rates, func(r rules.Rate) bool { return rules.Patterns{r.Queue}.Fit(queue) },
	); i >= 0 {
		rate = d.o.Rates[i].PerSecond
	}
	if rate <= 0 {
		return math.Inf(1)
	}
	return rate
}

// allow returns how many automatic retries a lane may send now. The result "probe" is true if a
// breaker holds back the queue and permits these letters only to test it.
func (d *Dispatcher) allow(queue, rule string, now time.Time) (n int, probe bool) {
	n, bound := d.breakers.allow(queue, 0, now)
	if n >= 0 {
		return n, n > 0
	}
	return min(
		d.fillBucket(lane{queue: queue, rule: rule}, d.rate(queue, rule), now),
		d.fillBucket(lane{queue: queue, rule: ramping}, bound, now),
	), false
}

// shares returns how many letters of each group the breakers of a queue allow now. Groups that are
// not in the result have no limit.
func (d *Dispatcher) shares(queue string, now time.Time) []deadletter.GroupShare {
	var shares []deadletter.GroupShare
	for _, group := range d.breakers.guardedGroups(queue) {
		n, bound := d.breakers.allow(queue, group, now)
		share := deadletter.GroupShare{Group: group, N: n, Probe: n > 0}
		if n < 0 {
			share.N = d.fillBucket(lane{queue, ramping, group}, bound, now)
		}
		shares = append(shares, share)
	}
	return shares
}

// ramping is used instead of the name of a rule in a lane, while a breaker lets the rate of its
// queue rise slowly. During this time, all letters of the queue are in one lane, whatever their
// rules are. If the breaker belongs to a group, all letters of the group are in one lane.
const ramping = "\x00"

// fillBucket adds the tokens for the time since the last call to the bucket of a lane. It returns
// how many letters the bucket allows now.
func (d *Dispatcher) fillBucket(l lane, rate float64, now time.Time) int {
	if math.IsInf(rate, 1) {
		delete(d.rates, l)
		return math.MaxInt
	}
	most := max(1, rate*burst)
	b := d.rates[l]
	if b == nil {
		b = &bucket{tokens: most, at: now}
		d.rates[l] = b
	}
	if passed := now.Sub(b.at).Seconds(); passed > 0 { // if the clock was set back, no tokens are added
		b.tokens += passed * rate
	}
	b.tokens, b.at = min(most, b.tokens), now
	return int(b.tokens)
}

// spendTokens must be called for each letter that is sent. Several rate limits may apply to a
// letter, for example that of its queue and that of a breaker. spendTokens takes one token from the
// bucket of each.
func (d *Dispatcher) spendTokens(queue, rule string, group deadletter.GroupID) {
	passed := []lane{{queue: queue, rule: rule}, {queue: queue, rule: ramping}}
	if group != 0 {
		passed = append(passed, lane{queue, ramping, group})
	}
	for _, l := range passed {
		if b := d.rates[l]; b != nil {
			b.tokens--
		}
	}
}

// highestRate returns the highest rate of all lanes of a queue, in letters per second.
func (d *Dispatcher) highestRate(queue string) float64 {
	rate := d.rate(queue, "")
	for _, rule := range d.o.Rules.Set().Paced() {
		rate = max(rate, d.rate(queue, rule))
	}
	return rate
}

// nacking contains the queues that reject every letter. For each of them, it records the time of
// the first rejection.
type nacking struct {
	mu    sync.Mutex
	since map[string]time.Time
}

func (n *nacking) firstSeen(queue string, now time.Time) time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.since[queue].IsZero() {
		n.since[queue] = now
	}
	return n.since[queue]
}

func (n *nacking) forget(queue string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.since, queue)
}

// depths caches the number of ready messages in each queue for a few seconds, because every sent
// letter needs this number. It also remembers the form of each queue. No client and no policy can
// change the form, so a queue whose form changed was deleted and declared again.
type depths struct {
	facts func(ctx context.Context, queue string) deadletter.QueueFacts
	mu    sync.Mutex
	seen  map[string]depth
}

type depth struct {
	ready    int // number of ready messages; -1 = unknown
	at       time.Time
	form     string    // the last known form; "" = none is known
	replaced time.Time // time of the first look at this form, if there was another; otherwise zero
}

const depthAge = 5 * time.Second

// readyIn returns how many messages were ready in a queue at most a few seconds ago. If the number
// is unknown, it returns nil. It requests the number in the background, so that publishing never
// waits. It may therefore return nil for the first letters of a burst.
func (d *depths) readyIn(queue string, now time.Time) *int {
	d.mu.Lock()
	defer d.mu.Unlock()
	known, ok := d.seen[queue]
	if !ok || now.Sub(known.at).Abs() > depthAge {
		d.seen[queue] = depth{-1, now, known.form, known.replaced}
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), depthAge)
			defer cancel()
			d.look(ctx, queue, now)
		}()
	}
	if known.ready < 0 || !ok {
		return nil
	}
	ready := known.ready
	return &ready
}

// look asks the broker about a queue, and remembers the answer. The result "replaced" is the time
// of the first look that found the queue in its present form, if an earlier look found another
// form. Otherwise it is zero.
func (d *depths) look(ctx context.Context, queue string, now time.Time) (f deadletter.QueueFacts, replaced time.Time) {
	f = d.facts(ctx, queue)
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.seen[queue]
	if known.form != "" && f.Form != "" && f.Form != known.form {
		known.replaced = now
	}
	known.ready, known.at, known.form = f.Ready, now, cmp.Or(f.Form, known.form)
	d.seen[queue] = known
	return f, known.replaced
}
