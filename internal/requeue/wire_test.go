package requeue_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// wire is a broker in memory, in place of rabbitmq.Link. It records which messages arrived,
// whatever its responses were.
type wire struct {
	answer  func(p *deadletter.Publishing) answer
	latency func() time.Duration // returns the time until the responses
	ready   func() time.Duration // returns the time until the broker reports that it is ready
	takes   bool                 // true if letters can wait in the broker

	mu      sync.Mutex
	changed chan struct{} // closed when the connection changes
	down    bool
	calls   int // number of calls of Publish
	session int64
	mark    *deadletter.Progress
	sent    map[deadletter.Token]*sent
}

// answer is the response of a broker to a message. If there is no response, the field "arrives"
// says whether the message arrived anyway.
type answer struct {
	kind    deadletter.OutcomeKind
	arrives bool
}

// sent records the copies of one attempt.
type sent struct {
	arrived   int
	confirmed bool
	doubted   bool // true if a copy may have arrived
}

var details = map[deadletter.OutcomeKind]string{
	deadletter.OutcomeReturned: "the broker returned it: 312 NO_ROUTE",
	deadletter.OutcomeNacked:   "the queue refused it",
	deadletter.OutcomeRefused:  "the broker closed the channel: 406",
	deadletter.OutcomeInDoubt:  "no answer",
	deadletter.OutcomeUnsent:   "the broker is not connected",
}

func newWire() *wire {
	// Workers never continue at the same moment, so that each test always runs in the same order.
	var asked atomic.Int64
	return &wire{
		answer:  func(*deadletter.Publishing) answer { return answer{kind: deadletter.OutcomeConfirmed} },
		latency: func() time.Duration { return 0 },
		ready:   func() time.Duration { return time.Duration(asked.Add(1)) * time.Microsecond },
		changed: make(chan struct{}), sent: map[deadletter.Token]*sent{},
	}
}

// connect makes the broker available or unavailable. Messages without a response at that time are
// in doubt.
func (w *wire) connect(there bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down = !there; there {
		w.session++
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *wire) state() (down bool, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.down, w.changed
}

// Session returns the number of the connection, beginning with 1. It returns 0 while the broker is
// unavailable.
func (w *wire) Session() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return 0
	}
	return 1 + w.session
}

func (w *wire) LockStore(context.Context, int64, string) error { return nil }

func (w *wire) UnlockStore(int64) {}

func (w *wire) ReadMark(context.Context, string, bool) (*deadletter.Progress, error) {
	if w.Session() == 0 {
		return nil, errAway
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mark, nil
}

func (w *wire) WriteMark(_ context.Context, session int64, p deadletter.Progress) error {
	if w.Session() != session {
		return errAway
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mark = &p
	return nil
}

var errAway = errors.New("the broker is away")

func (w *wire) Ready(ctx context.Context) error {
	for {
		down, changed := w.state()
		if !down {
			time.Sleep(w.ready())
			return ctx.Err()
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// grace is how long a stopping program waits for responses.
const grace = 5 * time.Second

func (w *wire) Publish(ctx context.Context, _ int64, ps []deadletter.Publishing) []deadletter.Outcome {
	down, changed := w.state()
	w.mu.Lock()
	w.calls++
	call := w.calls
	w.mu.Unlock()
	answers := make([]answer, len(ps))
	for i := range ps {
		if answers[i] = w.answer(&ps[i]); down {
			answers[i] = answer{kind: deadletter.OutcomeUnsent}
		}
	}
	if !down && !w.awaitAnswers(ctx, changed) {
		// Two calls that lose their responses must not end at the same moment.
		time.Sleep(time.Duration(call) * time.Microsecond)
		for i, a := range answers {
			if a.kind != deadletter.OutcomeUnsent {
				answers[i] = answer{deadletter.OutcomeInDoubt, a.arrives || a.kind == deadletter.OutcomeConfirmed}
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	outcomes := make([]deadletter.Outcome, len(ps))
	for i, a := range answers {
		outcomes[i] = deadletter.Outcome{Token: ps[i].Token, Kind: a.kind, Detail: details[a.kind]}
		s := w.sentWith(ps[i].Token)
		switch a.kind {
		case deadletter.OutcomeConfirmed:
			s.confirmed = true
			s.arrived++
		case deadletter.OutcomeInDoubt:
			s.doubted = true
			if a.arrives {
				s.arrived++
			}
		}
	}
	return outcomes
}

// awaitAnswers waits for the broker's responses to the letters on their way. It reports whether the
// responses arrived.
func (w *wire) awaitAnswers(ctx context.Context, lost <-chan struct{}) bool {
	late, stopping := time.After(w.latency()), ctx.Done()
	var over <-chan time.Time
	for {
		select {
		case <-late:
			return true
		case <-lost:
			return false
		case <-over:
			return false
		case <-stopping:
			stopping, over = nil, time.After(grace)
		}
	}
}

func (w *wire) sentWith(token deadletter.Token) *sent {
	if w.sent[token] == nil {
		w.sent[token] = &sent{}
	}
	return w.sent[token]
}

func (w *wire) Takes(...deadletter.Wait) bool   { return w.takes }
func (w *wire) Status() deadletter.BrokerStatus { return deadletter.BrokerStatus{Connected: true} }

func (w *wire) Facts(context.Context, string) deadletter.QueueFacts { return deadletter.UnknownQueue }
