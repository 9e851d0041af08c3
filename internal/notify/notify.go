// Package notify notifies people: it sends pages, notices and digests from the outbox to their
// channels, at least once each. There is one file per channel. The package does not decide which
// causes there are or who is notified. It reads no letters, because the content of notices was
// masked before they were written.
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

// Sender sends messages to one channel. A nil error means that the receiver has confirmed the
// message. After an error, the message is sent again, unless the error is ErrPermanent. A
// LaterError determines the time of the next attempt. Errors contain no secrets: no addresses
// beyond the host, no credentials, no bodies. Send is called by one goroutine at a time and returns
// when ctx ends.
type Sender interface {
	Send(ctx context.Context, m Message) error
}

// Channel is a sender with its preferred settings. Each sender in this package provides its own.
type Channel struct {
	Sender   Sender
	Together bool          // more than three notices due at the same time become one message
	Every    time.Duration // interval between messages; 0 = one second
	Burst    int           // messages that may be sent without waiting; 0 = 5
}

// Store is the outbox.
type Store interface {
	// Due returns at most n deliveries for a channel that are due now, oldest first. If several
	// deliveries have the same key, it returns only the first that is neither sent nor failed, so
	// that notices of a key are sent in order. However, a page does not wait for earlier deliveries
	// that wait for the end of quiet hours.
	Due(ctx context.Context, channel string, n int) ([]deadletter.Delivery, error)
	// Delivered records the results of delivery attempts: either all of them or none. A RetryAt
	// without a Detail is not a failure, but means that the delivery waits for the end of quiet
	// hours.
	Delivered(ctx context.Context, ds []deadletter.Delivered) error
}

// Options are the parts of a Notifier. Every zero value works.
type Options struct {
	Now        func() time.Time // nil = time.Now
	Jitter     func() float64   // at least 0 and below 1; nil = random
	Log        *slog.Logger     // nil = discarded
	Registerer prometheus.Registerer
	Crash      func(point string) // called at the named points; nil in production
}

// Settings are the options that a reload can change.
type Settings struct {
	Office   Office
	Quiet    Quiet
	Channels map[string]Channel          // by name in the configuration
	Scopes   map[string]deadletter.Scope // scopes of channels that are notified only about some queues
}

// Notifier sends the deliveries in the outbox to their channels. Its methods are safe for
// concurrent use.
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

// Problem is the reason why a channel's last attempt failed.
type Problem struct {
	Channel string
	Text    string    // without secrets
	Since   time.Time // first failure since the last success
}

// New returns a notifier without channels. Replace sets them.
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

// Replace changes the office, the quiet hours and the set of channels, even while the notifier is
// running. A message that is being sent is finished with the old settings. Later messages use the
// new settings. A channel that is resting after failures starts immediately. Deliveries for a
// removed channel stay in the outbox. To end them, pass Gone under that channel's name.
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

// Wake signals that something may be due.
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

// Run sends due deliveries until ctx ends. It returns nil once the last message in progress is
// recorded. Each channel has its own goroutine, so a channel that does not respond does not delay
// the others.
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

// idle creates workers for channels that have none.
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

// Problems returns the channels whose last attempt failed, sorted by name.
func (n *Notifier) Problems() []Problem {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make([]Problem, 0, len(n.problems))
	for _, name := range slices.Sorted(maps.Keys(n.problems)) {
		out = append(out, n.problems[name])
	}
	return out
}

// problem stores the result of a channel's attempt; "" = success. It reports whether the result is
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
