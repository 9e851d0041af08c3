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

// Breaker configures when automatic retries stop. This keeps a dependency that is down from using
// up the attempts of letters. A breaker looks at the last Of letters that were sent within Window
// and whose outcome is known. If CameBack per cent of these letters came back, retries stop. A
// letter counts once, however often it was sent.
//
// Retries stop for one group of a queue. If mostGroups groups of the queue have stopped, retries
// stop for the whole queue. The group or the queue then rests. After the rest, Probe letters are
// sent as a probe. If most of the probe comes back, the group or the queue rests for twice as long.
// Otherwise its letters are sent at a rising rate.
type Breaker struct {
	CameBack float64 // per cent of the last Of letters; 0 = retries never stop
	Of       int     // number of letters that are looked at
	Window   time.Duration
	Probe    int
	// a letter that is still held back dies this long after the time at which its retries should
	// have ended; 0 = never
	GiveUp time.Duration
}

const (
	restFirst = time.Minute // rest before the first probe; no rest is longer than Window
	// minimum time without a return after which a probe is quiet; the watch window is the maximum
	probeQuiet = 30 * time.Second
	rampFirst  = 1.0 // letters per second at the beginning of the rise, after a probe that stayed quiet
	// number of times that the rate doubles in one window: every 10 s in a window of 10 minutes
	rampSteps  = 60
	rampMost   = 1000.0 // letters per second at which a queue without a rate of its own has recovered
	rampOf     = 10     // number of letters that decide while the rate rises
	mostTries  = 20_000 // maximum number of letters that a circuit counts; the oldest are forgotten
	mostGroups = 5      // number of tripped groups at which the whole queue counts as failing
)

// breakers contains the breakers of one broker. Their states are recorded in the store. Their
// counts are not recorded, so a new process starts to count again.
type breakers struct {
	o      Breaker
	broker string
	vhost  string
	watch  time.Duration

	mu       sync.Mutex
	circuits map[string]map[deadletter.GroupID]*circuit // by queue, then by group; group 0 = the whole queue
	where    map[deadletter.ID]spot
	changes  []change // changes that are not recorded yet
}

// circuit is the breaker of one group of a queue, or of the whole queue. If State is "", the
// breaker is closed, so it holds back no letter.
type circuit struct {
	deadletter.Breaker
	tries   []try
	base    int // number of the first letter in the field "tries"
	newest  int // number of the newest letter that came back; -1 = no letter came back
	slowest time.Duration
	probes  map[deadletter.ID]bool // letters of the running probe; true = the letter came back
}

type try struct {
	id   deadletter.ID
	at   time.Time
	back bool
	void bool // not counted, because the letter did not reach the queue or was sent again
}

// spot says where a sent letter is counted: in which circuit, and under which number in the
// circuit's list of sent letters. If a letter was sent more than once, its spot is that of the last
// send.
type spot struct {
	circuit *circuit
	number  int
}

// change describes how a breaker changed. The store must record it.
type change struct {
	breaker deadletter.Breaker // if State is "", the breaker is closed
	notice  *deadletter.Notice
}

func newBreakers(o Breaker, broker, vhost string, watch time.Duration) *breakers {
	return &breakers{
		o:        o,
		broker:   broker,
		vhost:    vhost,
		watch:    watch,
		circuits: map[string]map[deadletter.GroupID]*circuit{},
		where:    map[deadletter.ID]spot{},
	}
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

// forget removes a circuit and the letters that it counted. Its breaker then counts as closed.
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

// guardedGroups returns the groups of a queue whose breakers are not closed, in ascending order. If
// the breaker of the whole queue is not closed, guardedGroups returns none, because that breaker
// decides for all groups.
func (b *breakers) guardedGroups(queue string) []deadletter.GroupID {
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

// allow returns the limits of one group, or of the whole queue if "group" is 0. A tripped breaker
// sends only a few letters as a probe. The result "probe" is the number of letters that may be sent
// for this. If it is 0, no letter may be sent. If it is -1, there is no probe, and "rate" is the
// only limit. The result "rate" is in letters per second and may be infinite.
func (b *breakers) allow(queue string, group deadletter.GroupID, now time.Time) (probe int, rate float64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.circuits[queue][group]
	switch {
	case c == nil || c.State == "" || b.o.CameBack <= 0:
		return -1, math.Inf(1)
	case c.State == deadletter.GuardRamping:
		return -1, b.rampRate(c, now)
	case c.State == deadletter.GuardTripped && !now.Before(c.Until):
		return b.o.Probe, 0
	}
	return 0, 0
}

// rampRate returns the current rate of a circuit whose rate rises, in letters per second.
func (b *breakers) rampRate(c *circuit, now time.Time) float64 {
	return rampFirst * math.Pow(2, max(0, rampSteps*float64(now.Sub(c.Since))/float64(b.o.Window)))
}

// countSent counts a letter that is about to be sent. The parameter "arrival" is the time when the
// letter reaches its queue. For a letter that waits in the broker first, this is the end of its
// wait. For any other letter, it is the present time.
func (b *breakers) countSent(
	queue string, group deadletter.GroupID, id deadletter.ID, probe bool, now, arrival time.Time,
) {
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
		b.dropOldest(c)
	}
	b.trim(c, now)
	if s, ok := b.where[id]; ok && s.circuit == c {
		c.tries[s.number-c.base].void = true
	}
	b.where[id] = spot{c, c.base + len(c.tries)}
	c.tries = append(c.tries, try{id: id, at: arrival})
	switch {
	case !probe, c.State == deadletter.GuardTripped && now.Before(c.Until):
		// not a probe, or the breaker has just tripped again
	case c.State == deadletter.GuardTripped, c.State == deadletter.GuardProbing:
		if c.State != deadletter.GuardProbing {
			c.State, c.Since, c.Until, c.probes = deadletter.GuardProbing, now, time.Time{}, map[deadletter.ID]bool{}
			c.Why = "a few letters were sent and are being watched"
			b.changes = append(b.changes, change{breaker: c.Breaker})
		}
		c.probes[id] = false
	}
}

// trim drops the sent letters that are too old to count. These are the letters that were sent
// longer ago than the setting Window.
func (b *breakers) trim(c *circuit, now time.Time) {
	for len(c.tries) > 0 && now.Sub(c.tries[0].at) > b.o.Window {
		b.dropOldest(c)
	}
}

// dropOldest forgets the letter that was sent first.
func (b *breakers) dropOldest(c *circuit) {
	if s := b.where[c.tries[0].id]; s.circuit == c && s.number == c.base {
		delete(b.where, c.tries[0].id)
	}
	c.tries = c.tries[1:]
	c.base++
}

// uncount removes a letter from the count, because the letter did not reach its queue.
func (b *breakers) uncount(id deadletter.ID) {
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

// countReturned counts letters that came back. If too many of the letters that a breaker last
// counted came back, countReturned trips this breaker (see judge).
func (b *breakers) countReturned(ids []deadletter.ID, now time.Time) {
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
			b.judgeProbe(c, now)
		}
	}
}

// judge trips a breaker if too many of the letters that were last sent came back. The option
// CameBack is the percentage at which the breaker trips. The parameter "last" is the number of
// letters to look at.
//
// judge begins with the newest letter that came back, and continues with the letters that were sent
// before it. Because a queue is first in, first out, these letters have most likely reached a
// worker too.
func (b *breakers) judge(c *circuit, last int, now time.Time) {
	sent, back := 0, 0
	for n := c.newest - c.base; n >= 0 && sent < last; n-- {
		t := c.tries[n]
		if t.at.Before(c.Since) { // the letter was sent before the breaker tripped
			break
		}
		if t.void || t.at.After(now) { // the letter does not count, or still waits in the broker
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
	if sent >= last && float64(back)*100 >= b.o.CameBack*float64(last) {
		b.trip(c, fmt.Sprintf("%d of the last %d letters came back", back, last), now)
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
			Text: fmt.Sprintf(
				"retries of %s are held back: %s; dlo probes %s with %d letters until the probes stay quiet", what, why,
				it, b.o.Probe,
			),
		}
	} else {
		c.Wait = min(2*c.Wait, b.o.Window)
	}
	c.State, c.Why, c.Since, c.Until, c.probes = deadletter.GuardTripped, why, now, now.Add(c.Wait), nil
	b.changes = append(b.changes, change{breaker: c.Breaker, notice: notice})
	b.tripQueue(c.Origin.Queue, now)
}

// tripQueue trips the breaker of a whole queue if at least mostGroups of its groups have tripped.
// In that case, something is wrong with the queue as a whole, and not with single groups. tripQueue
// closes the breakers of the groups, so that people get one report for the queue.
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

// quietTime returns how long dlo waits for a sent letter to come back. If the letter has not come
// back by then, dlo assumes that a worker has accepted it, and counts it as consumed.
func (b *breakers) quietTime(c *circuit) time.Duration {
	return min(max(probeQuiet, 2*c.slowest), b.watch)
}

// While a breaker lets a rate rise, recovered reports whether it has risen for long enough. It
// looks at the first rampOf letters that reached the queue since the rate began to rise. It returns
// true if the last of these letters reached the queue long enough ago to count as consumed (see
// quietTime). If there are no such letters, it returns true after a whole window.
//
// recovered does not check whether these letters came back, because judge trips the breaker if too
// many of them did.
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
	return now.Sub(last) >= b.quietTime(c)
}

// judgeProbe decides whether the probe of a breaker succeeded. A probe consists of a few letters
// that are sent to test the queue. If most of them came back, the breaker holds back letters again.
// Otherwise, it lets the rate rise once enough time has passed.
func (b *breakers) judgeProbe(c *circuit, now time.Time) {
	back := 0
	for _, came := range c.probes {
		if came {
			back++
		}
	}
	quiet := b.quietTime(c)
	switch {
	case 2*back > len(c.probes) || len(c.probes) == 0:
		b.trip(c, fmt.Sprintf("%d of %d probes came back", back, len(c.probes)), now)
	case now.Sub(c.Since) >= quiet:
		c.State, c.Why, c.Since, c.probes = deadletter.GuardRamping, fmt.Sprintf(
			"%d of %d probes stayed quiet for %s", len(c.probes)-back, len(c.probes), quiet.Round(time.Millisecond),
		), now, nil
		b.changes = append(b.changes, change{breaker: c.Breaker})
	}
}

// tick updates all breakers as time passes, and returns the changes that must be recorded.
//
// A breaker may have sent a probe: a few letters that test its queue. If these letters have not
// come back for long enough, tick ends the probe. A breaker may also be raising the rate of its
// queue step by step. When this rate has risen to the full rate, and for long enough, tick closes
// the breaker. The function "fullRate" returns the full rate of a queue, in letters per second.
func (b *breakers) tick(now time.Time, fullRate func(queue string) float64) []change {
	b.mu.Lock()
	defer b.mu.Unlock()
	for queue, circuits := range b.circuits {
		for _, c := range circuits {
			b.tend(c, now, fullRate(queue))
		}
	}
	changes := b.changes
	b.changes = nil
	return changes
}

// tend updates one circuit as time passes; tick calls it for every circuit. The parameter
// "fullRate" is the full rate of the circuit's queue, in letters per second.
func (b *breakers) tend(c *circuit, now time.Time, fullRate float64) {
	if c.Since.After(now) { // the clock was set back
		c.Since = now
	}
	switch c.State {
	case "":
		if b.trim(c, now); len(c.tries) == 0 {
			b.forget(c)
		}
	case deadletter.GuardProbing:
		b.judgeProbe(c, now)
	case deadletter.GuardTripped: // limits the rest, even if the clock is set back
		if latest := now.Add(b.o.Window); c.Until.After(latest) {
			c.Until = latest
		}
	case deadletter.GuardRamping:
		if b.rampRate(c, now) >= min(fullRate, rampMost) && b.recovered(c, now) {
			b.close(c, "its letters leave at their full rate again")
		}
	}
}

// close closes a breaker, so that it no longer holds back letters.
func (b *breakers) close(c *circuit, why string) {
	c.State, c.Why = "", why
	b.changes = append(b.changes, change{breaker: c.Breaker})
	b.forget(c)
}

// restoreChanges keeps changes that the store could not record, so that the next tick returns them
// again.
func (b *breakers) restoreChanges(changes []change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changes = append(changes, b.changes...)
}

// adopt replaces breakers in memory with their states in the store. It is called when dlo starts,
// and again later, because a person may have resumed retries. It does nothing while changes in
// memory are not stored yet. If a breaker holds back no letter any more, adopt closes it when its
// probe is due.
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
		case c.State == "" && r.State == deadletter.GuardProbing:
			// this probe belongs to another process, so its outcome is unknown
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
