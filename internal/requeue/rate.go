package requeue

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// bucket paces the automatic retries of one queue, so that overdue letters are spread and do not leave in one burst.
type bucket struct {
	tokens float64
	at     time.Time
}

// burst is the share of a second's letters that may leave at once.
const burst = 0.2

// allowed returns how many automatic retries may leave for a queue now.
func (d *Dispatcher) allowed(queue string, now time.Time) int {
	if d.o.Rate <= 0 {
		return math.MaxInt
	}
	most := max(1, d.o.Rate*burst)
	b := d.rates[queue]
	if b == nil {
		b = &bucket{tokens: most, at: now}
		d.rates[queue] = b
	}
	if passed := now.Sub(b.at).Seconds(); passed > 0 { // a clock that goes back gives nothing
		b.tokens = min(most, b.tokens+passed*d.o.Rate)
	}
	b.at = now
	return int(b.tokens)
}

func (d *Dispatcher) spend(queue string) {
	if b := d.rates[queue]; b != nil {
		b.tokens--
	}
}

// depths remembers for a few seconds how deep queues were: it is asked for every letter that is sent.
type depths struct {
	facts func(ctx context.Context, queue string) deadletter.QueueFacts
	mu    sync.Mutex
	seen  map[string]depth
}

type depth struct {
	ready int // -1 = unknown
	at    time.Time
}

const depthAge = 5 * time.Second

// of returns how many messages were ready in a queue within the last seconds; nil when nobody can say. The question is asked beside the publishing path, which never waits for it: the
// first letters of a burst may have no depth.
func (d *depths) of(queue string, now time.Time) *int {
	d.mu.Lock()
	defer d.mu.Unlock()
	known, ok := d.seen[queue]
	if !ok || now.Sub(known.at).Abs() > depthAge {
		d.seen[queue] = depth{ready: -1, at: now}
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), depthAge)
			defer cancel()
			ready := d.facts(ctx, queue).Ready
			d.mu.Lock()
			defer d.mu.Unlock()
			d.seen[queue] = depth{ready: ready, at: now}
		}()
	}
	if known.ready < 0 || !ok {
		return nil
	}
	ready := known.ready
	return &ready
}
