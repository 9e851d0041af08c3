// Package notify sends notices and digests from the outbox to people, through the channels of the
// configuration. Each is sent at least once. There is one file per kind of channel. The package
// does not decide which failures are reported, or to whom. It reads no letters, because a notice
// already contains its text. This text was masked before the notice was written.
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

// Sender sends messages to one channel. If the error is nil, the receiver has confirmed the
// message, and "answer" says in a few words how. After an error, the message is sent again, unless
// the error is ErrPermanent. A LaterError contains the time until the next attempt. Answers and
// errors contain no secrets. They contain no credentials and no bodies, and they show only the host
// of an address. Send is called by one goroutine at a time, and it returns when ctx ends.
type Sender interface {
	Send(ctx context.Context, m Message) (answer string, err error)
}

// Channel is a sender with the settings that suit it. Each kind of sender in this package returns
// its own Channel.
type Channel struct {
	Sender   Sender
	Together bool          // if more than three notices are due at the same time, they become one message
	Every    time.Duration // minimum time between messages; 0 = one second
	Burst    int           // number of messages that can be sent without waiting; 0 = 5
}

// Store is the outbox of the store.
type Store interface {
	// Due returns up to n deliveries of a channel that are due now, oldest first. Deliveries with
	// the same key must be sent in order. Therefore Due returns for each key only the first
	// delivery that is neither sent nor failed. There is one exception: a notice with the severity
	// "page" does not wait for deliveries that wait for the end of quiet hours.
	Due(ctx context.Context, channel string, n int) ([]deadletter.Delivery, error)
	// Delivered records the results of delivery attempts. It records either all of them or none. A
	// result with a RetryAt but without a Detail is not a failure. It means that the delivery waits
	// for the end of quiet hours.
	Delivered(ctx context.Context, ds []deadletter.Delivered) error
}

// Options contains what a Notifier needs. The zero value of each field is valid.
type Options struct {
	Now        func() time.Time // clock; nil = time.Now
	Jitter     func() float64   // returns a number from 0 to 1, but not 1; nil = random
	Log        *slog.Logger     // nil = the log is discarded
	Registerer prometheus.Registerer
	// reports whether nothing may be sent now; nil = it always may
	Silent func() bool
	Record func(ctx context.Context, a deadletter.Act) error // writes the audit; only Test needs it
	// called at the named points, where tests can simulate a crash; nil in production
	Crash func(point string)
}

// Settings contains the settings that a reload can change.
type Settings struct {
	Office   Office
	Quiet    Quiet
	Channels map[string]Channel          // channels by their names in the configuration
	Scopes   map[string]deadletter.Scope // scopes of the channels that get only notices about some queues
}

// Notifier sends the deliveries in the outbox. Its methods are safe for concurrent use.
type Notifier struct {
	o     Options
	store Store
	sent  *prometheus.CounterVec

	mu       sync.Mutex
	settings Settings
	version  int // number that changes whenever the settings change
	workers  map[string]*worker
	problems map[string]Problem
	tested   map[string]deadletter.Channel // the last test of each channel
	changed  chan struct{}
}

// Problem says why the last attempt of a channel failed.
type Problem struct {
	Channel string
	Text    string    // contains no secrets
	Since   time.Time // time of the first failure after the last success
}

// New returns a notifier that has no channels yet. Replace sets the channels.
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
	if o.Silent == nil {
		o.Silent = func() bool { return false }
	}
	if o.Crash == nil {
		o.Crash = func(string) {}
	}
	return &Notifier{
		o:        o,
		store:    store,
		sent:     newCounter(o.Registerer),
		workers:  map[string]*worker{},
		problems: map[string]Problem{},
		tested:   map[string]deadletter.Channel{},
		changed:  make(chan struct{}, 1),
	}
}

// Replace puts other settings into use, even while the notifier is running. A message that is being
// sent is still sent with the old settings. A channel that rests after failures starts again
// immediately. Deliveries to a removed channel stay in the outbox. To end them, the caller passes
// Gone under the name of that channel.
func (n *Notifier) Replace(s Settings) {
	s.Channels = maps.Clone(s.Channels)
	for name := range s.Channels {
		n.createCounters(name)
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

// Wake tells the notifier that a delivery may be due.
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

// Run sends due deliveries until ctx ends. It returns nil when the last message has been sent and
// recorded. Each channel has its own goroutine, so a channel that does not respond does not delay
// the others.
func (n *Notifier) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	for ctx.Err() == nil {
		for _, w := range n.newWorkers() {
			running.Go(func() { w.run(ctx) })
		}
		select {
		case <-n.changed:
		case <-ctx.Done():
		}
	}
	return nil
}

// newWorkers creates a worker for each channel that has none. It returns the new workers.
func (n *Notifier) newWorkers() []*worker {
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

// setProblem stores the error text of the last attempt of a channel; "" = success. It reports
// whether this differs from the attempt before.
func (n *Notifier) setProblem(channel, text string) bool {
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
