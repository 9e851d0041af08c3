// Package notify tells people: pages, notices and digests leave the outbox for their channels here,
// at least once each; one file a channel. It decides neither what is a cause nor who hears of it,
// and reads no letters: what a notice says was masked before it was written.
package notify

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/prometheus/client_golang/prometheus"
)

// Sender says a message to one channel. A nil error is the receiver's word that it has it. An error
// is tried again, after an LaterError when that says, unless it is ErrPermanent. Errors hold no
// secrets: no addresses beyond the host, no credentials, no bodies. Send is called by one goroutine
// at a time, and comes back when ctx ends.
type Sender interface {
	Send(ctx context.Context, m Message) error
}

// Channel is a sender and how it wants to be used; each sender here knows its own.
type Channel struct {
	Sender   Sender
	Together bool          // more than three notices that are due at once become one message
	Every    time.Duration // one message in so long, 0 = a second
	Burst    int           // messages that may go at once, 0 = 5
}

// Store is the outbox.
type Store interface {
	// Due returns at most n deliveries of a channel that are due now, oldest first. Of those that
	// have one key it gives only the first that is neither sent nor failed, so that a key is told
	// in order; but one of severity page does not wait for earlier ones that wait for the end of
	// quiet hours.
	Due(ctx context.Context, channel string, n int) ([]deadletter.Delivery, error)
	// Delivered records how tries ended, all or none. A RetryAt without a Detail is no failure: the
	// delivery waits for the end of quiet hours.
	Delivered(ctx context.Context, ds []deadletter.Delivered) error
}

// Options are the parts of a Notifier; every zero value is usable.
type Options struct {
	Now        func() time.Time // time.Now when nil
	Jitter     func() float64   // at least 0, below 1; random when nil
	Log        *slog.Logger     // discarded when nil
	Registerer prometheus.Registerer
	Crash      func(point string) // called at the named points; nil in the product
}

// Settings are what a reload changes.
type Settings struct {
	Office   Office
	Quiet    Quiet
	Channels map[string]Channel // by their names in the configuration
}

// Notifier carries the outbox to its channels. Its methods are safe for concurrent use.
type Notifier struct {
	o     Options
	store Store
	sent  *prometheus.CounterVec

	mu       sync.Mutex
	settings Settings
	version  int // of settings
	workers  map[string]*worker
	problems map[string]Problem
	changed  chan struct{}
}

// Problem is why the last try of a channel did not get through.
type Problem struct {
	Channel string
	Text    string    // without secrets
	Since   time.Time // of the first failure since something got through
}

// New returns a notifier without channels; Replace gives it some.
func New(store Store, o Options) *Notifier {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Crash == nil {
		o.Crash = func(string) {}
	}
	return &Notifier{o: o, store: store, sent: newCounter(o.Registerer), workers: map[string]*worker{}, problems: map[string]Problem{}, changed: make(chan struct{}, 1)}
}

// Replace changes office, quiet hours and the set of channels, also while the notifier runs: what
// is being sent is finished as it was begun, and what follows goes by the new settings, at once
// where a channel rested after failures. What is due to a channel that is no longer there stays in
// the outbox; give Gone for its name to end that.
func (n *Notifier) Replace(s Settings) {
	s.Channels = maps.Clone(s.Channels)
	for name := range s.Channels {
		n.expect(name)
	}
	n.mu.Lock()
	n.settings = s
	n.version++
	maps.DeleteFunc(n.problems, func(name string, _ Problem) bool { _, ok := s.Channels[name]; return !ok })
	n.mu.Unlock()
	select {
	case n.changed <- struct{}{}:
	default:
	}
	n.Wake()
}

// Wake says that there may be something due.
func (n *Notifier) Wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range n.workers {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// Run sends what is due until ctx ends, and returns nil when the last message on its way is
// recorded. Each channel has a goroutine of its own: one that does not answer holds up no other.
func (n *Notifier) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	for ctx.Err() == nil {
		for _, w := range n.idle() {
			running.Go(func() { w.run(ctx) })
		}
		select {
		case <-n.changed:
		case <-ctx.Done():
		}
	}
	return nil
}

// idle makes workers for the channels that have none.
func (n *Notifier) idle() []*worker {
	n.mu.Lock()
	defer n.mu.Unlock()
	var made []*worker
	for name := range n.settings.Channels {
		if n.workers[name] == nil {
			n.workers[name] = newWorker(n, name)
			made = append(made, n.workers[name])
		}
	}
	return made
}

// Problems lists the channels whose last try failed, by name.
func (n *Notifier) Problems() []Problem {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([]Problem, 0, len(n.problems))
	for _, name := range slices.Sorted(maps.Keys(n.problems)) {
		out = append(out, n.problems[name])
	}
	return out
}

// problem keeps what a try of a channel came to; "" = it got through. It returns whether that is
// news.
func (n *Notifier) problem(channel, text string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	was, had := n.problems[channel]
	if _, there := n.settings.Channels[channel]; text == "" || !there {
		delete(n.problems, channel)
		return had && text == ""
	}
	p := Problem{Channel: channel, Text: text, Since: n.o.Now()}
	if had {
		p.Since = was.Since
	}
	n.problems[channel] = p
	return was.Text != text
}
