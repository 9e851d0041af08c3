// Package classify reads letters after they are stored. It decodes their bodies within a memory
// budget, and writes the masked summary and error that lists show. It finds out where and why the
// letters died, and applies the rules to decide what happens to them. If reading a letter kills the
// process, the letter is read alone the next time. After deadletter.MaxCrashes crashes, it is no
// longer read, and counts as "undecodable (crash)".
package classify

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/prometheus/client_golang/prometheus"
)

// Store is the part of the store that the classifier needs.
type Store interface {
	NextReceived(ctx context.Context, n int, except ...deadletter.ID) ([]deadletter.Letter, error)
	NewestReceived(ctx context.Context, n int, except ...deadletter.ID) ([]deadletter.Letter, error)
	// Reading stores the id of the letter that is being read, or "" if no letter is being read.
	Reading(id deadletter.ID) error
	Classify(ctx context.Context, verdicts []deadletter.Classified) error
	// Priors returns the share of each type among the earlier letters of a queue and routing key.
	Priors(ctx context.Context, o deadletter.Origin) (map[string]float64, error)
	// OnlyType returns the type that all of the newest letters of a queue had. It returns "" if they
	// had several types.
	OnlyType(ctx context.Context, o deadletter.Origin) (string, error)
	// Annotations returns the annotations that consumers recently sent about the deaths of the given
	// letters. The most certain ones come first, then the newest.
	Annotations(ctx context.Context, letters []deadletter.Letter) (map[deadletter.ID][]deadletter.Annotation, error)
}

// Options are the settings of a Classifier.
type Options struct {
	Decoder func() *payload.Decoder // returns a decoder with the current types
	// returns the types that people picked for groups, by group key; nil = none
	Picks   func() map[[32]byte]string
	Mask    func(name, text string) (string, bool) // masks the value of a header; nil = nothing is masked
	Rules   *rules.Book
	Targets *rules.Targets
	Now     func() time.Time
	Log     *slog.Logger
	Crash   func(point string) // called at named points, for tests; nil in production
	Busy    func() bool        // reports whether letters are waiting to be stored; nil = never
	Done    func()             // called after each commit; wakes the dispatcher
	Metrics *Metrics

	// the headers that the configuration maps to the parts of a failure
	FailureHeaders deadletter.FailureHeaders

	// Given returns the origin queue that the configuration assigns to letters from an inbox. If Given
	// is nil, no inbox has such an origin.
	Given func(broker, vhost, inbox string) string
	// Onward asks the broker what it knows about the queue in which a letter expired. The parameter
	// o names this queue. The parameter "route" says how the letter then reached dlo. If Onward is
	// nil, the broker cannot be asked.
	Onward func(ctx context.Context, o deadletter.Origin, route deadletter.Route) deadletter.Onward

	// reports whether the mark of a letter shows that dlo made it for a trial; nil = there are no
	// trials
	Made  func(l *deadletter.Letter) bool
	Tried func(l *deadletter.Letter) // called for each trial letter that has arrived

	// returns the first name that a broker had, which is part of the keys of its groups; nil = the
	// current name
	FirstName func(broker string) string
}

// Metrics counts verdicts, and measures the time that reading the bodies took.
type Metrics struct {
	readings *prometheus.CounterVec
	seconds  *prometheus.CounterVec
	received *prometheus.CounterVec
	dead     *prometheus.CounterVec
	back     *prometheus.CounterVec
	queues   deadletter.Labels
	reasons  deadletter.Labels
}

// NewMetrics creates and registers the classifier's metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		readings: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "dlo_readings_total",
			Help: "Bodies that were read for a verdict, by how they were read.",
		}, []string{"reading"}),
		seconds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "dlo_reading_seconds_total",
			Help: "Seconds that reading bodies for a verdict took, including the comparison with types, by how they were read.",
		}, []string{"reading"}),
		received: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "dlo_received_total",
			Help: "Deaths that reached dlo and were classified, by broker, queue they died in and reason; a letter that comes back counts again.",
		}, []string{"broker", "queue", "reason"}),
		dead: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "dlo_dead_total",
			Help: "Letters that came to need a person, by the queue they died in and severity: page, notify, digest.",
		}, []string{"queue", "severity"}),
		back: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "dlo_came_back_total",
			Help: "Letters that died again after dlo had sent them back, by the queue they died in.",
		}, []string{"queue"}),
	}
	r.MustRegister(m.readings, m.seconds, m.received, m.dead, m.back)
	return m
}

// Classifier decides what happens to received letters.
type Classifier struct {
	loop
	store  Store
	o      Options
	newest bool         // the last step of a flood took the newest letters
	hand   sync.RWMutex // held while a letter is read; held exclusively for a letter whose reading may have killed dlo
	// each step holds it shared, from reading a body to recording the result; a change of the known
	// types holds it exclusively
	types sync.RWMutex
}

// Types returns a lock. While it is held, the known types do not change.
func (c *Classifier) Types() sync.Locker { return c.types.RLocker() }

// New returns a Classifier. Call Run to start it.
func New(store Store, o Options) *Classifier {
	if o.Crash == nil {
		o.Crash = func(string) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Busy == nil {
		o.Busy = func() bool { return false }
	}
	if o.FirstName == nil {
		o.FirstName = func(broker string) string { return broker }
	}
	if o.Made == nil {
		o.Made = func(*deadletter.Letter) bool { return false }
	}
	if o.Tried == nil {
		o.Tried = func(*deadletter.Letter) {}
	}
	if o.Given == nil {
		o.Given = func(string, string, string) string { return "" }
	}
	if o.Picks == nil {
		o.Picks = func() map[[32]byte]string { return nil }
	}
	// During a flood, storing letters comes first. A stored letter is safe, and its verdict can wait.
	work := loop{
		wake:  make(chan struct{}, 1),
		busy:  o.Busy,
		yield: 70 * time.Millisecond, // a small step takes at most 30 ms, so 1,000 letters a second get verdicts
		fail:  func(err error) { o.Log.Error("deciding on received letters failed", "err", err) },
	}
	return &Classifier{loop: work, store: store, o: o}
}

// Run classifies letters until ctx ends. It decides about the next letters while the verdicts of
// the last step are stored.
func (c *Classifier) Run(ctx context.Context) error {
	var last *decided
	stored := make(chan error, 1)
	c.run(ctx, func(ctx context.Context) (more bool, err error) {
		next, err := c.decide(ctx, last)
		if last != nil {
			err, last, more = errors.Join(err, <-stored), nil, true
		}
		if next == nil {
			return more, err
		}
		if err != nil {
			c.types.RUnlock()
			return more, err
		}
		last = next
		go func() { stored <- c.record(ctx, next) }()
		return true, nil
	})
	if last != nil {
		if err := <-stored; err != nil {
			c.fail(err)
		}
	}
	return nil
}

// Step classifies one batch and returns how many letters it had.
func (c *Classifier) Step(ctx context.Context) (int, error) {
	d, err := c.decide(ctx, nil)
	if err != nil || d == nil {
		return 0, err
	}
	return len(d.letters), c.record(ctx, d)
}

// decided is a batch of letters with their verdicts, which are not stored yet.
type decided struct {
	letters  []deadletter.Letter
	verdicts []deadletter.Classified
}

// decide decides about the next letters, except those of the batch "last". If there are none, or if
// ctx is done, it returns nil. Otherwise, c.types stays locked for reading.
func (c *Classifier) decide(ctx context.Context, last *decided) (d *decided, err error) {
	c.types.RLock()
	defer func() {
		if d == nil {
			c.types.RUnlock()
		}
	}()
	letters, err := c.next(ctx, last)
	if err != nil || len(letters) == 0 {
		return nil, err
	}
	c.o.Crash("classify: begun")
	known := c.loadKnown(ctx)
	known.reports = c.loadReports(ctx, letters)
	verdicts := make([]deadletter.Classified, 0, len(letters))
	for i := range letters {
		if ctx.Err() != nil {
			return nil, nil
		}
		if err := c.inHand(
			&letters[i], c.store.Reading, func() { verdicts = append(verdicts, c.verdict(&letters[i], known)) },
		); err != nil {
			return nil, err
		}
	}
	c.o.Crash("classify: decided")
	return &decided{letters, verdicts}, nil
}

// record stores verdicts, and unlocks c.types.
func (c *Classifier) record(ctx context.Context, d *decided) error {
	defer c.types.RUnlock()
	if err := c.store.Classify(context.WithoutCancel(ctx), d.verdicts); err != nil {
		return err
	}
	c.o.Crash("classify: recorded")
	for i := range d.verdicts {
		if d.verdicts[i].Tried {
			c.o.Tried(&d.letters[i])
		}
	}
	if c.o.Done != nil {
		c.o.Done()
	}
	if m := c.o.Metrics; m != nil {
		for i, v := range d.verdicts {
			// the letter died on another dlo's broker, or it belongs to a trial
			if d.letters[i].Imported != "" || v.Tried {
				continue
			}
			if d.letters[i].Attempts > 0 {
				m.back.WithLabelValues(m.queues.Of(v.Origin.Queue)).Inc()
			}
			m.received.WithLabelValues(v.Origin.Broker, m.queues.Of(v.Origin.Queue), m.reasons.Of(v.Reason)).Inc()
			if v.To == deadletter.ClassifiedDead {
				m.dead.WithLabelValues(m.queues.Of(v.Origin.Queue), string(v.Severity)).Inc()
			}
		}
	}
	return nil
}

// next returns the letters of the next step, without those of the batch "last". During a flood, the
// steps are small, and every second step takes the newest letters, so that people soon see a cause
// that is new.
func (c *Classifier) next(ctx context.Context, last *decided) ([]deadletter.Letter, error) {
	var except []deadletter.ID
	if last != nil {
		for i := range last.letters {
			except = append(except, last.letters[i].ID)
		}
	}
	if !c.busy() {
		return c.store.NextReceived(ctx, batch, except...)
	}
	if c.newest = !c.newest; c.newest {
		return c.store.NewestReceived(ctx, small, except...)
	}
	return c.store.NextReceived(ctx, small, except...)
}

// verdict decides what happens to one letter.
func (c *Classifier) verdict(l *deadletter.Letter, known *known) deadletter.Classified {
	v := deadletter.Classified{Letter: l.ID, GroupVersion: GroupVersion, Imported: l.Imported != ""}
	bad := unwrap(l, &v)
	f := c.failure(l)
	question := c.place(l, &f, &v, known)
	question = cmp.Or(bad, question)
	v.Tried = deadletter.Tries(v.Origin.Queue) && l.Imported == "" && c.o.Made(l)

	if l.Undecodable() {
		v.Why = "undecodable (crash): dlo died three times while it was being read; it is shown as bytes only"
		v.Reading = deadletter.ReadCrashed
		v.To, v.Severity, v.Rule = deadletter.ClassifiedDead, c.o.Rules.Set().Default.Severity, rules.DefaultName
		if c.o.Targets.Observed(v.Origin) {
			v.Severity, v.Rule = deadletter.SeverityDigest, deadletter.ObservedRule
		}
		v.Type = c.frameworkType(l, &f)
		applyEarlierDecision(l, &v)
		return c.withGroup(l, v, cause{})
	}
	if known.reports != nil && known.reports.annotate(l, &v) {
		f = c.failure(l)
	}
	d := c.read(l, f, &v, known, func(doc *payload.Document) rules.Decision {
		if v.Tried {
			return c.o.Rules.Set().DecideTrial(c.facts(l, &v, doc))
		}
		d := c.o.Rules.Set().Decide(c.facts(l, &v, doc))
		if c.o.Targets.Observed(v.Origin) {
			return rules.Observed(d)
		}
		return d
	})
	recordUnexplained(l, &v)
	properties, _ := l.Current()
	if clean, _ := deadletter.Sanitise(properties); deadletter.Publishable(clean) != nil {
		v.Unpublishable = "unpublishable: " + deadletter.Publishable(clean).Error()
	}
	if bad != "" {
		v.Unpublishable = bad
	}
	v.Rule, v.Severity, v.Why, v.Channels = d.Rule, d.Severity, d.Why, d.Notify
	v.To = d.Outcome.OfReceived()
	if d.Outcome == deadletter.RuleRetry {
		v.DueAt, v.ToldBy = c.o.Now().Add(d.Delay), c.o.Now().Add(d.Rest+deadletter.ToldAfter)
		if v.Tried {
			v.ToldBy = time.Time{} // nobody is notified
		}
		if d.Waiter.Broker() {
			v.Waiter, v.Wait = string(d.Waiter), d.Delay
		}
	}
	if !applyEarlierDecision(l, &v) && v.Rule != deadletter.ObservedRule {
		c.guard(l, &v, d.Outcome, question)
	}
	return v
}

// facts returns the facts about a letter that rules can match.
func (c *Classifier) facts(l *deadletter.Letter, v *deadletter.Classified, doc *payload.Document) rules.Facts {
	serial, _, _ := l.ID.Split()
	return rules.Facts{
		Broker:   v.Origin.Broker,
		VHost:    v.Origin.VHost,
		Queue:    v.Origin.Queue,
		Exchange: v.Origin.Exchange,
		Key:      v.Origin.RoutingKey,
		Reason:   v.Reason,
		Type:     v.Type,
		Unread:   doc.Type == "",
		Error:    v.Error,
		Attempts: l.Attempts,
		Reset:    l.Reset,
		Age:      c.o.Now().Sub(l.ReceivedAt),
		Serial:   serial,
		Header:   func(name string) (string, bool) { return c.header(l.Arrived.Headers, name) },
		Field:    doc.ValuesAt,
	}
}
