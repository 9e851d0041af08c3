package requeue

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Breaker configures when automatic retries stop, so that a dependency that is down does not use up
// the attempts of letters. A breaker looks at the last Of letters that were sent within Window and
// have a known outcome. Retries stop when CameBack per cent of these letters came back. A letter
// counts once, however often it was sent.
//
// Retries stop for one group of a queue. Once mostGroups groups of a queue have stopped, they stop
// for the whole queue. The group or queue then rests, and after that Probe letters are sent as a
// probe. If most of the probe comes back, the group or queue rests for twice as long. Otherwise its
// letters are sent at a rising rate.
type Breaker struct {
	CameBack float64 // per cent; 0 = never
	Of       int     // letters
	Window   time.Duration
	Probe    int
	GiveUp   time.Duration // a letter that is held back dies this long after a notice about it; 0 = never
}

const (
	restFirst  = time.Minute      // rest before the first probe; no rest is longer than Window
	probeQuiet = 30 * time.Second // minimum time without a return after which a probe is quiet; the maximum is the watch window
	rampFirst  = 1.0              // letters per second at first, after a probe that stayed quiet
	rampSteps  = 60               // doublings of the rate in one window: every 10 s in a window of 10 minutes
	rampMost   = 1000.0           // letters per second at which a queue without a rate has recovered
	rampOf     = 10               // number of letters whose outcome decides while the rate rises
	mostTries  = 20_000           // maximum number of letters of a circuit with an open outcome; the oldest are forgotten
	mostGroups = 5                // number of tripped groups of a queue from which the whole queue counts as failing
)

// breakers holds the breakers of one broker. The states of the breakers are recorded. The counts
// are not, so a new process starts counting again.
type breakers struct {
	o      Breaker
	broker string
	vhost  string
	watch  time.Duration

	mu       sync.Mutex
	circuits map[string]map[deadletter.GroupID]*circuit // by queue; group 0 = the whole queue
	where    map[deadletter.ID]spot
	changes  []change // not recorded yet
}

// circuit is the breaker of one group of a queue, or of the whole queue. State "" means closed.
type circuit struct {
	deadletter.Breaker
	tries   []try
	base    int // number of tries[0]
	newest  int // number of the newest letter that came back; -1 = none
	slowest time.Duration
	probes  map[deadletter.ID]bool // letters of the running probe, and whether they came back
}

type try struct {
	id   deadletter.ID
	at   time.Time
	back bool
	void bool // the letter did not reach the queue, or the same letter was sent again
}

// spot locates the newest entry of a letter among the counted letters.
type spot struct {
	circuit *circuit
	number  int
}

// change is a change to record.
type change struct {
	breaker deadletter.Breaker // State "" = closed
	notice  *deadletter.Notice
}

func newBreakers(o Breaker, broker, vhost string, watch time.Duration) *breakers {
	return &breakers{o: o, broker: broker, vhost: vhost, watch: watch, circuits: map[string]map[deadletter.GroupID]*circuit{}, where: map[deadletter.ID]spot{}}
}

func (b *breakers) circuit(queue string, group deadletter.GroupID) *circuit {
	if b.circuits[queue] == nil {
		b.circuits[queue] = map[deadletter.GroupID]*circuit{}
	}
	c := b.circuits[queue][group]
	if c == nil {
		c = &circuit{newest: -1}
		c.Origin, c.Group = deadletter.Origin{Broker: b.broker, VHost: b.vhost, Queue: queue}, group
		b.circuits[queue][group] = c
	}
	return c
}

// forget removes a circuit. The circuit then counts as closed, with no letters counted.
func (b *breakers) forget(c *circuit) {
	for _, t := range c.tries {
		if b.where[t.id].circuit == c {
			delete(b.where, t.id)
		}
	}
	delete(b.circuits[c.Origin.Queue], c.Group)
	if len(b.circuits[c.Origin.Queue]) == 0 {
		delete(b.circuits, c.Origin.Queue)
	}
}

// guarded returns the groups of a queue whose breakers are not closed, in order. If the breaker of
// the whole queue is not closed, it decides for all groups, and guarded returns none.
func (b *breakers) guarded(queue string) []deadletter.GroupID {
	b.mu.Lock()
	defer b.mu.Unlock()
	var groups []deadletter.GroupID
	for group, c := range b.circuits[queue] {
		switch {
		case c.State == "" || b.o.CameBack <= 0:
		case group == 0:
			return nil
		default:
			groups = append(groups, group)
		}
	}
	slices.Sort(groups)
	return groups
}

// allow returns the limits for a group, or for the whole queue. The result probe is the number of
// letters that may be sent as a probe. It is 0 if no letters may be sent, and -1 if only the rate
// limits them. The rate may be infinite.
func (b *breakers) allow(queue string, group deadletter.GroupID, now time.Time) (probe int, rate float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.circuits[queue][group]
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

// ramp returns the current rate of a recovering circuit.
func (b *breakers) ramp(c *circuit, now time.Time) float64 {
	return rampFirst * math.Pow(2, max(0, rampSteps*float64(now.Sub(c.Since))/float64(b.o.Window)))
}

// sent counts a letter that is about to be sent. The parameter at is the time when the letter
// reaches its queue: either now, or when it leaves its wait queue.
func (b *breakers) sent(queue string, group deadletter.GroupID, id deadletter.ID, probe bool, now, at time.Time) {
	if b.o.CameBack <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if whole := b.circuits[queue][0]; whole != nil && whole.State != "" {
		group = 0
	}
	c := b.circuit(queue, group)
	for len(c.tries) >= mostTries {
		b.drop(c)
	}
	b.trim(c, now)
	if s, ok := b.where[id]; ok && s.circuit == c {
		c.tries[s.number-c.base].void = true
	}
	b.where[id] = spot{c, c.base + len(c.tries)}
	c.tries = append(c.tries, try{id: id, at: at})
	switch {
	case !probe, c.State == deadletter.GuardTripped && now.Before(c.Until): // the breaker tripped just now
	case c.State == deadletter.GuardTripped, c.State == deadletter.GuardProbing:
		if c.State != deadletter.GuardProbing {
			c.State, c.Since, c.Until, c.probes = deadletter.GuardProbing, now, time.Time{}, map[deadletter.ID]bool{}
			c.Why = "a few letters were sent and are being watched"
			b.changes = append(b.changes, change{breaker: c.Breaker})
		}
		c.probes[id] = false
	}
}

// trim forgets the letters that were sent too long ago to be significant.
func (b *breakers) trim(c *circuit, now time.Time) {
	for len(c.tries) > 0 && now.Sub(c.tries[0].at) > b.o.Window {
		b.drop(c)
	}
}

// drop forgets the letter that was sent earliest.
func (b *breakers) drop(c *circuit) {
	if s := b.where[c.tries[0].id]; s.circuit == c && s.number == c.base {
		delete(b.where, c.tries[0].id)
	}
	c.tries = c.tries[1:]
	c.base++
}

// void removes a letter that did not reach its queue from the count.
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
	return s.circuit, &s.circuit.tries[s.number-s.circuit.base]
}

// back counts letters that came back. It trips a breaker if too many of its letters came back: see
// judge.
func (b *breakers) back(ids []deadletter.ID, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		c, t := b.find(id)
		if t == nil || t.back {
			continue
		}
		t.back = true
		c.newest = max(c.newest, b.where[id].number)
		c.slowest = max(c.slowest, now.Sub(t.at))
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

// judge trips a breaker if CameBack per cent of the last letters came back. The parameter of is
// their number. The last of them is the newest letter that came back. A queue is first in, first
// out, so letters sent before that letter have most likely reached a worker as well.
func (b *breakers) judge(c *circuit, of int, now time.Time) {
	sent, back := 0, 0
	for n := c.newest - c.base; n >= 0 && sent < of; n-- {
		t := c.tries[n]
		if t.at.Before(c.Since) { // sent before the breaker tripped
			break
		}
		if t.void || t.at.After(now) { // the letter waits in the broker
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
		b.trip(c, fmt.Sprintf("%d of the last %d letters came back", back, of), now)
	}
}

func (b *breakers) trip(c *circuit, why string, now time.Time) {
	var notice *deadletter.Notice
	if c.State == "" {
		c.Wait = min(restFirst, b.o.Window)
		queue := deadletter.Visible(c.Origin.Queue)
		key, what, it := fmt.Sprintf("breaker %s %s", b.broker, queue), "queue "+queue, "it"
		if c.Group != 0 {
			key, what, it = key+" "+c.Group.String(), fmt.Sprintf("group %s of %s", c.Group, what), "the group"
		}
		notice = &deadletter.Notice{
			Kind: deadletter.NoticeBreaker, Key: key, Severity: deadletter.SeverityNotify,
			Text: fmt.Sprintf("retries of %s are held back: %s; dlo probes %s with %d letters until the probes stay quiet", what, why, it, b.o.Probe),
		}
	} else {
		c.Wait = min(2*c.Wait, b.o.Window)
	}
	c.State, c.Why, c.Since, c.Until, c.probes = deadletter.GuardTripped, why, now, now.Add(c.Wait), nil
	b.changes = append(b.changes, change{breaker: c.Breaker, notice: notice})
	b.tripQueue(c.Origin.Queue, now)
}

// tripQueue trips the breaker of a whole queue when mostGroups of its groups have tripped, because
// then the queue itself fails. The breakers of its groups are closed, so that there is one report
// for the queue.
func (b *breakers) tripQueue(queue string, now time.Time) {
	var open []*circuit
	tripped := 0
	for group, c := range b.circuits[queue] {
		if group == 0 || c.State == "" {
			continue
		}
		open = append(open, c)
		if c.State != deadletter.GuardRamping {
			tripped++
		}
	}
	if tripped < mostGroups {
		return
	}
	slices.SortFunc(open, func(a, b *circuit) int { return cmp.Compare(a.Group, b.Group) })
	for _, c := range open {
		b.close(c, "because so many of its groups tripped, the whole queue is held back")
	}
	b.trip(b.circuit(queue, 0), fmt.Sprintf("almost all letters of %d of its groups came back", tripped), now)
}

// quiet returns the time for which letters of a queue have to stay away to count as consumed.
func (b *breakers) quiet(c *circuit) time.Duration { return min(max(probeQuiet, 2*c.slowest), b.watch) }

// recovered reports whether enough letters have stayed away for long enough. Only letters sent
// since the rate began to rise count. It also returns true if there were no letters to send during
// a whole window.
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

// probed decides what a probe means, once its outcome is known.
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

// tick ends probes that stayed quiet, and ends the rise of rates that have reached the full rate.
// It returns the changes to record. The function full returns the full rate of a queue.
func (b *breakers) tick(now time.Time, full func(queue string) float64) []change {
	b.mu.Lock()
	defer b.mu.Unlock()
	for queue, circuits := range b.circuits {
		for _, c := range circuits {
			b.tend(c, now, full(queue))
		}
	}
	changes := b.changes
	b.changes = nil
	return changes
}

// tend is like tick, but for one circuit. The parameter full is the full rate of its queue.
func (b *breakers) tend(c *circuit, now time.Time, full float64) {
	if c.Since.After(now) { // the clock was set back
		c.Since = now
	}
	switch c.State {
	case "":
		if b.trim(c, now); len(c.tries) == 0 {
			b.forget(c)
		}
	case deadletter.GuardProbing:
		b.probed(c, now)
	case deadletter.GuardTripped: // limits the rest, whatever the clock does
		if latest := now.Add(b.o.Window); c.Until.After(latest) {
			c.Until = latest
		}
	case deadletter.GuardRamping:
		if b.ramp(c, now) >= min(full, rampMost) && b.recovered(c, now) {
			b.close(c, "its letters leave at their full rate again")
		}
	}
}

// close closes a breaker, so that all letters can be sent again.
func (b *breakers) close(c *circuit, why string) {
	c.State, c.Why = "", why
	b.changes = append(b.changes, change{breaker: c.Breaker})
	b.forget(c)
}

// restoreChanges puts back changes that could not be recorded.
func (b *breakers) restoreChanges(changes []change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changes = append(changes, b.changes...)
}

// adopt takes over the recorded states at startup, and after a person has resumed retries. It does
// nothing while changes wait to be recorded. A breaker that no longer holds back any letters is
// closed when its probe is due.
func (b *breakers) adopt(recorded []deadletter.Breaker, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.changes) > 0 {
		return
	}
	seen := map[*circuit]bool{}
	for _, r := range recorded {
		c := b.circuit(r.Origin.Queue, r.Group)
		seen[c] = true
		switch {
		case c.State == "" && r.State == deadletter.GuardProbing: // probe of another process: its outcome is unknown
			c.Breaker = r
			c.State, c.Until = deadletter.GuardTripped, r.Since.Add(r.Wait)
		case c.State == "", r.State == deadletter.GuardRamping && c.State != deadletter.GuardRamping:
			c.Breaker, c.probes = r, nil
		}
		if r.Waits == 0 && c.State == deadletter.GuardTripped && !now.Before(c.Until) {
			b.close(c, "none of its letters waits for a retry any more")
		}
	}
	for _, circuits := range b.circuits {
		for _, c := range circuits {
			if c.State != "" && !seen[c] {
				b.forget(c)
			}
		}
	}
}
