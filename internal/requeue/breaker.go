package requeue

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Breaker says when the automatic retries of a queue stop by themselves, so that a dependency that is down does not burn their attempts: of the last Of whose end is known, CameBack per
// cent came back, all sent within Window. Then the queue rests, is probed with Probe letters, rests for twice as long when most of them come back, and otherwise gets its letters ever faster.
type Breaker struct {
	CameBack float64 // per cent; 0 = never
	Of       int
	Window   time.Duration
	Probe    int
}

const (
	restFirst  = time.Minute      // before the first probe; at most Window, as the later ones
	probeQuiet = 30 * time.Second // a probe that did not come back for so long stays quiet: at least, and at most the watch window
	rampFirst  = 1.0              // letters per second after a probe that stayed quiet
	rampSteps  = 60               // the rate doubles so many times in a window: every 10 s in one of 10 minutes
	rampMost   = 1000.0           // letters per second at which a queue without a rate has recovered
	rampOf     = 10               // letters whose end decides while the rate rises
	mostTries  = 20_000           // letters of a queue whose end is waited for; the oldest are forgotten
)

// breakers are the breakers of the queues of one broker. What they are in is recorded; what they count is not, so a new process counts anew.
type breakers struct {
	o      Breaker
	broker string
	vhost  string
	watch  time.Duration

	mu       sync.Mutex
	circuits map[string]*circuit // by queue
	where    map[deadletter.ID]spot
	changes  []change // not recorded yet
}

// circuit is the breaker of one queue; State "" = closed.
type circuit struct {
	deadletter.Breaker
	tries   []try
	base    int // number of tries[0]
	newest  int // number of the newest that came back; -1 = none
	slowest time.Duration
	probes  map[deadletter.ID]bool // those of the running probe, and whether they came back
}

type try struct {
	id   deadletter.ID
	at   time.Time
	back bool
	void bool // it did not reach the queue
}

// spot is where a letter that was sent last is counted.
type spot struct {
	queue  string
	number int
}

// change is what is to be recorded.
type change struct {
	breaker deadletter.Breaker // State "" = closed
	notice  *deadletter.Notice
}

func newBreakers(o Breaker, broker, vhost string, watch time.Duration) *breakers {
	return &breakers{o: o, broker: broker, vhost: vhost, watch: watch, circuits: map[string]*circuit{}, where: map[deadletter.ID]spot{}}
}

func (b *breakers) circuit(queue string) *circuit {
	c := b.circuits[queue]
	if c == nil {
		c = &circuit{newest: -1}
		c.Origin = deadletter.Origin{Broker: b.broker, VHost: b.vhost, Queue: queue}
		b.circuits[queue] = c
	}
	return c
}

// allow returns how many letters may be sent to a queue as a probe, 0 for none at all, or -1 and the rate that it is bounded to, which may be infinite.
func (b *breakers) allow(queue string, now time.Time) (probe int, rate float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.circuits[queue]
	switch {
	case c == nil || c.State == "" || b.o.CameBack <= 0:
		return -1, math.Inf(1)
	case c.State == deadletter.GuardRamping:
		return -1, b.ramp(c, now)
	case c.State == deadletter.GuardTripped && !now.Before(c.Until):
		return b.o.Probe, 0
	}
	return 0, 0
}

// ramp is the rate of a queue that recovers.
func (b *breakers) ramp(c *circuit, now time.Time) float64 {
	return rampFirst * math.Pow(2, max(0, rampSteps*float64(now.Sub(c.Since))/float64(b.o.Window)))
}

// sent counts a letter that is about to be sent, and gets to its queue at a time: now, or when it leaves its wait queue.
func (b *breakers) sent(queue string, id deadletter.ID, probe bool, now, at time.Time) {
	if b.o.CameBack <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.circuit(queue)
	for len(c.tries) > 0 && (len(c.tries) >= mostTries || now.Sub(c.tries[0].at) > b.o.Window) {
		if s := b.where[c.tries[0].id]; s.queue == queue && s.number == c.base {
			delete(b.where, c.tries[0].id)
		}
		c.tries = c.tries[1:]
		c.base++
	}
	b.where[id] = spot{queue, c.base + len(c.tries)}
	c.tries = append(c.tries, try{id: id, at: at})
	if probe {
		if c.State != deadletter.GuardProbing {
			c.State, c.Since, c.Until, c.probes = deadletter.GuardProbing, now, time.Time{}, map[deadletter.ID]bool{}
			c.Why = "a few letters were sent, and what becomes of them decides"
			b.changes = append(b.changes, change{breaker: c.Breaker})
		}
		c.probes[id] = false
	}
}

// void takes back a letter that did not reach its queue.
func (b *breakers) void(id deadletter.ID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, t := b.find(id)
	if t == nil {
		return
	}
	t.void = true
	delete(b.where, id)
	delete(c.probes, id)
}

func (b *breakers) find(id deadletter.ID) (*circuit, *try) {
	s, ok := b.where[id]
	if !ok {
		return nil, nil
	}
	c := b.circuits[s.queue]
	if n := s.number - c.base; n >= 0 && n < len(c.tries) {
		return c, &c.tries[n]
	}
	return nil, nil
}

// back counts letters that came back, and trips where almost all do.
func (b *breakers) back(ids []deadletter.ID, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		c, t := b.find(id)
		if t == nil {
			continue
		}
		t.back = true
		c.newest = max(c.newest, b.where[id].number)
		c.slowest = max(c.slowest, now.Sub(t.at))
		delete(b.where, id)
		if _, ok := c.probes[id]; ok {
			c.probes[id] = true
		}
		switch c.State {
		case "":
			b.judge(c, b.o.Of, now)
		case deadletter.GuardRamping:
			b.judge(c, min(b.o.Of, rampOf), now)
		case deadletter.GuardProbing:
			b.probed(c, now)
		}
	}
}

// judge trips a breaker when of the last letters before the newest that came back almost all came back. A queue is first in, first out: what was sent before that one has most likely met its
// worker as well.
func (b *breakers) judge(c *circuit, of int, now time.Time) {
	sent, back := 0, 0
	for n := c.newest - c.base; n >= 0 && sent < of; n-- {
		t := c.tries[n]
		if t.at.Before(c.Since) { // before it tripped
			break
		}
		if t.void || t.at.After(now) { // it waits in the broker
			continue
		}
		if now.Sub(t.at) > b.o.Window {
			break
		}
		sent++
		if t.back {
			back++
		}
	}
	if sent >= of && float64(back)*100 >= b.o.CameBack*float64(of) {
		b.trip(c, fmt.Sprintf("%d of the last %d came back", back, of), now)
	}
}

func (b *breakers) trip(c *circuit, why string, now time.Time) {
	queue := deadletter.Visible(c.Origin.Queue)
	var notice *deadletter.Notice
	if c.State == "" {
		c.Wait = min(restFirst, b.o.Window)
		notice = &deadletter.Notice{
			Kind: deadletter.NoticeBreaker, Key: fmt.Sprintf("breaker %s %s", b.broker, queue), Severity: deadletter.SeverityNotify,
			Text: fmt.Sprintf("retries of queue %s are held back: %s; it is probed with %d letters until they stay away", queue, why, b.o.Probe),
		}
	} else {
		c.Wait = min(2*c.Wait, b.o.Window)
	}
	c.State, c.Why, c.Since, c.Until, c.probes = deadletter.GuardTripped, why, now, now.Add(c.Wait), nil
	b.changes = append(b.changes, change{breaker: c.Breaker, notice: notice})
}

// quiet is how long letters of a queue have to stay away to count as taken.
func (b *breakers) quiet(c *circuit) time.Duration { return min(max(probeQuiet, 2*c.slowest), b.watch) }

// recovered says that enough letters were sent since the rate began to rise, and stayed away for long enough; or that there were none to send for a whole window.
func (b *breakers) recovered(c *circuit, now time.Time) bool {
	n, last := 0, c.Since
	for _, t := range c.tries {
		if !t.void && !t.at.Before(c.Since) && !t.at.After(now) && n < rampOf {
			n, last = n+1, t.at
		}
	}
	if n == 0 {
		return now.Sub(c.Since) >= b.o.Window
	}
	return now.Sub(last) >= b.quiet(c)
}

// probed decides a probe once its end is known.
func (b *breakers) probed(c *circuit, now time.Time) {
	back := 0
	for _, came := range c.probes {
		if came {
			back++
		}
	}
	quiet := b.quiet(c)
	switch {
	case 2*back > len(c.probes) || len(c.probes) == 0:
		b.trip(c, fmt.Sprintf("%d of %d probes came back", back, len(c.probes)), now)
	case now.Sub(c.Since) >= quiet:
		c.State, c.Why, c.Since, c.probes = deadletter.GuardRamping, fmt.Sprintf("%d of %d probes stayed quiet for %s", len(c.probes)-back, len(c.probes), quiet.Round(time.Millisecond)), now, nil
		b.changes = append(b.changes, change{breaker: c.Breaker})
	}
}

// tick ends probes that stayed quiet, and ramps at their height; full is the rate of a queue. It returns what is to be recorded.
func (b *breakers) tick(now time.Time, full func(queue string) float64) []change {
	b.mu.Lock()
	defer b.mu.Unlock()
	for queue, c := range b.circuits {
		if c.Since.After(now) { // the clock was set back
			c.Since = now
		}
		switch c.State {
		case deadletter.GuardProbing:
			b.probed(c, now)
		case deadletter.GuardTripped: // whatever the clock does
			if latest := now.Add(b.o.Window); c.Until.After(latest) {
				c.Until = latest
			}
		case deadletter.GuardRamping:
			if rate := full(queue); b.ramp(c, now) >= min(rate, rampMost) && b.recovered(c, now) {
				c.State, c.Why, c.Since = "", "its letters leave at their full rate again", now
				b.changes = append(b.changes, change{breaker: c.Breaker})
			}
		}
	}
	changes := b.changes
	b.changes = nil
	return changes
}

// again gives back changes that could not be recorded.
func (b *breakers) again(changes []change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changes = append(changes, b.changes...)
}

// adopt takes over what is recorded: at a start, and where a person resumed the retries of a queue. Nothing may be waiting to be recorded.
func (b *breakers) adopt(recorded []deadletter.Breaker) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.changes) > 0 {
		return
	}
	seen := map[string]bool{}
	for _, r := range recorded {
		seen[r.Origin.Queue] = true
		c := b.circuit(r.Origin.Queue)
		switch {
		case c.State == "" && r.State == deadletter.GuardProbing: // of another process: what became of its probe is not known
			c.Breaker = r
			c.State, c.Until = deadletter.GuardTripped, r.Since.Add(r.Wait)
		case c.State == "", r.State == deadletter.GuardRamping && c.State != deadletter.GuardRamping:
			c.Breaker, c.probes = r, nil
		}
	}
	for queue, c := range b.circuits {
		if !seen[queue] {
			c.State = ""
		}
	}
}
