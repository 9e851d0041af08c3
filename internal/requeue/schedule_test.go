package requeue_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/storetest"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/requeue"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/internal/store"
)

// broker accepts every message. It records when each message was sent and for which letter.
type broker struct {
	now   func() time.Time
	mu    sync.Mutex
	facts deadletter.QueueFacts // the facts that it reports about every queue
	away  bool
	sent  []time.Time
	ids   []deadletter.ID
	under []deadletter.Token

	session int64 // number of connections after the first
	mark    *deadletter.Progress
	lock    error // the reply to a request for the lock of the store
	noMarks error // if not nil, marks cannot be read or written
	asked   int   // how often the mark was read
}

func (b *broker) Ready(ctx context.Context) error { return ctx.Err() }

func (b *broker) Publish(_ context.Context, _ int64, ps []deadletter.Publishing) []deadletter.Outcome {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []deadletter.Outcome
	for _, p := range ps {
		b.sent = append(b.sent, b.now())
		id, _ := p.Properties.Headers[deadletter.HeaderID].(string)
		b.ids, b.under = append(b.ids, deadletter.ID(id)), append(b.under, p.Token)
		out = append(out, deadletter.Outcome{Token: p.Token, Kind: deadletter.OutcomeConfirmed})
	}
	return out
}

func (b *broker) Session() int64 { return 1 + b.session }

func (b *broker) LockStore(context.Context, int64, string) error { return b.lock }

func (b *broker) UnlockStore(int64) { b.session++ }

func (b *broker) ReadMark(context.Context, string, bool) (*deadletter.Progress, error) {
	b.asked++
	return b.mark, b.noMarks
}

func (b *broker) WriteMark(_ context.Context, _ int64, p deadletter.Progress) error {
	if b.noMarks == nil {
		b.mark = &p
	}
	return b.noMarks
}

func (b *broker) Takes(...deadletter.Wait) bool { return false }

// setFacts sets the facts that the broker reports about every queue. If "away" is true, the broker
// is unavailable.
func (b *broker) setFacts(facts deadletter.QueueFacts, away bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.facts, b.away = facts, away
}

func (b *broker) Status() deadletter.BrokerStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	return deadletter.BrokerStatus{Connected: !b.away}
}

func (b *broker) Facts(context.Context, string) deadletter.QueueFacts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.facts
}

// station is a dispatcher with a real store. The test controls its clock.
type station struct {
	t      *testing.T
	at     time.Time
	store  *store.Store
	broker *broker
	d      *requeue.Dispatcher
}

const rate = 50

func newStation(t *testing.T) *station {
	t.Helper()
	s := &station{t: t, at: time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}
	var err error
	if s.store, err = store.Open(t.Context(), storetest.File(t), store.Options{Now: s.now}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.store.Close() })
	s.broker = &broker{now: s.now, facts: deadletter.UnknownQueue}
	s.start()
	return s
}

func (s *station) now() time.Time { return s.at }

// start starts a new dispatcher on the same store.
func (s *station) start() {
	targets := &rules.Targets{}
	targets.Add("main", "/", []string{"*"}, []string{"dlo.letters"})
	s.d = requeue.New(s.store, s.broker, requeue.Options{
		Broker:   "main",
		VHost:    "/",
		InFlight: 256,
		Rate:     rate,
		Watch:    time.Minute,
		InDoubt:  requeue.Republish,
		MaxBody:  1 << 20,
		Targets:  targets,
		Now:      s.now,
		Nack:     requeue.Nack{First: time.Second, Max: time.Minute, NoticeAfter: 20, NoticeAge: time.Hour},
		Rules: rules.NewBook(&rules.Set{
			Default: rules.Rule{
				Name: rules.DefaultName, Retry: &rules.Retry{Delays: []time.Duration{10 * time.Minute}},
			},
		}),
		Log: slog.New(slog.DiscardHandler),
	})
}

// storeWaiting stores n letters that become due one after the other. The parameter "begin" is the
// time until the first letter becomes due. The parameter "step" is the time between two letters.
func (s *station) storeWaiting(n int, begin, step time.Duration) {
	s.t.Helper()
	ctx := s.t.Context()
	for from := 0; from < n; from += 500 {
		w := deadletter.Window{
			Session: 1, Number: int64(from + 1), Broker: "main", VHost: "/", Inbox: "dlo.letters", Horizon: time.Minute,
			HorizonRows: 1000, Uncertain: deadletter.UncertainHold,
		}
		for i := from; i < min(n, from+500); i++ {
			a := deadletter.Arrival{
				Exchange:   "dlo.dlx",
				RoutingKey: "k",
				Tag:        uint64(i + 1),
				Body:       fmt.Appendf(nil, "letter %d", i),
				Properties: deadletter.Properties{MessageID: fmt.Sprint(i), Headers: deadletter.Table{}},
			}
			print, err := a.Print()
			if err != nil {
				s.t.Fatal(err)
			}
			a.Fingerprint = print
			w.Arrivals = append(w.Arrivals, a)
		}
		receipt, err := s.store.Receive(ctx, w)
		if err != nil {
			s.t.Fatal(err)
		}
		if err := s.store.SettleWindow(ctx, receipt.Window); err != nil {
			s.t.Fatal(err)
		}
	}
	for i := 0; i < n; {
		letters, err := s.store.NextReceived(ctx, 500)
		if err != nil || len(letters) == 0 {
			s.t.Fatal(len(letters), err)
		}
		var verdicts []deadletter.Classified
		for _, l := range letters {
			verdicts = append(verdicts, deadletter.Classified{
				Letter:   l.ID,
				To:       deadletter.ClassifiedRetry,
				Origin:   deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms"},
				Rule:     rules.DefaultName,
				DueAt:    s.at.Add(begin + time.Duration(i)*step),
				GroupKey: [32]byte{1},
			})
			i++
		}
		if err := s.store.Classify(ctx, verdicts); err != nil {
			s.t.Fatal(err)
		}
	}
}

// run lets the given time pass in steps of 100 ms. In each step, the dispatcher sends all letters
// that it may send.
func (s *station) run(d time.Duration) {
	s.t.Helper()
	for end := s.at.Add(d); s.at.Before(end); s.at = s.at.Add(100 * time.Millisecond) {
		for {
			n, err := s.d.Step(s.t.Context())
			if err != nil {
				s.t.Fatal(err)
			}
			if n == 0 {
				break
			}
		}
	}
}

// checkSpread checks the times at which letters were sent. Within one second, at most as many
// letters may be sent as the rate and the burst allow.
func (s *station) checkSpread() {
	s.t.Helper()
	from := 0
	for i, at := range s.broker.sent {
		for at.Sub(s.broker.sent[from]) >= time.Second {
			from++
		}
		if n := i - from + 1; n > rate*5/4 {
			s.t.Fatalf("%d letters within a second, at %s", n, at)
		}
	}
}

// TestOverdueLettersAreSpread checks that overdue letters leave at the rate of their queue after a
// long downtime. They must leave in the order in which they were due, and not in one burst.
func TestOverdueLettersAreSpread(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	s.storeWaiting(1000, 0, time.Second)
	s.at = s.at.Add(30 * 24 * time.Hour)
	s.start()
	s.run(25 * time.Second)
	if n := len(s.broker.sent); n != 1000 {
		t.Errorf("%d of 1000 letters in 25 s at %d a second", n, rate)
	}
	s.checkSpread()
}

// TestAClockThatIsSetDoesNoHarm sets the clock forward by a year, so that all letters become due.
// The letters must still leave at the rate of their queue. The test then sets the clock back by an
// hour. No letter may wait longer than the longest back-off.
func TestAClockThatIsSetDoesNoHarm(t *testing.T) {
	t.Parallel()
	t.Run("forward", func(t *testing.T) {
		s := newStation(t)
		s.storeWaiting(500, time.Minute, time.Minute)
		s.run(time.Second)
		if len(s.broker.sent) > 0 {
			t.Fatal("letters left early")
		}
		s.at = s.at.AddDate(1, 0, 0)
		s.run(11 * time.Second)
		if n := len(s.broker.sent); n != 500 {
			t.Errorf("%d of 500 letters", n)
		}
		s.checkSpread()
	})
	t.Run("back", func(t *testing.T) {
		s := newStation(t)
		s.storeWaiting(300, time.Second, 2*time.Second) // all letters are due within the longest back-off
		if err := s.d.OnTime(t.Context()); err != nil {
			t.Fatal(err)
		}
		if due, err := s.store.ClaimDue(t.Context(), "main", s.at, 10, deadletter.Allowance{
			Allow: func(deadletter.Origin, string) (int, bool) { return 10, false },
		}); err != nil || len(due) != 0 {
			t.Fatalf("%d letters are due although no clock was set (%v)", len(due), err)
		}
		s.at = s.at.Add(-time.Hour)
		s.start() // the clock was set while dlo was down
		if err := s.d.OnTime(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.run(10*time.Minute + 10*time.Second)
		if n := len(s.broker.sent); n != 300 {
			t.Errorf("%d of 300 letters within the longest back-off", n)
		}
		s.checkSpread()
	})
}

// TestLettersLeaveWhenTheyAreDue checks that no letter leaves before it is due, and that due
// letters leave immediately.
func TestLettersLeaveWhenTheyAreDue(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	begin := s.at
	s.storeWaiting(100, 5*time.Second, 500*time.Millisecond)
	s.run(60 * time.Second)
	if len(s.broker.sent) != 100 {
		t.Fatalf("%d letters", len(s.broker.sent))
	}
	for i, at := range s.broker.sent {
		if due := begin.Add(
			5*time.Second + time.Duration(i)*500*time.Millisecond,
		); at.Before(due) || at.After(due.Add(100*time.Millisecond)) {
			t.Errorf("letter %d left at %s, due %s", i, at, due)
		}
	}
}
