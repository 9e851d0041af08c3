package operation_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/storetest"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/internal/store"
)

// office consists of a store and of a desk, which is the component that runs operations. Both have
// the same clock. office also does the work of the dispatcher, the broker and the workers.
type office struct {
	t      *testing.T
	at     time.Time
	store  *store.Store
	desk   *operation.Desk
	depth  map[string]int // queue -> number of its messages
	facts  *deadletter.QueueFacts
	gone   map[string]bool
	broken bool                       // if true, the workers reject every letter
	error  func(deadletter.ID) string // returns the error of a letter that dies
	away   string                     // reason why nothing can be sent; "" = letters can be sent
	retry  bool                       // if true, arriving letters are retried once, immediately
	window int64
	sent   []deadletter.Due // the letters that were sent, in order
	back   []deadletter.Due // letters that died again and are not stored yet
}

func open(t *testing.T) *office {
	t.Helper()
	o := &office{
		t:     t,
		at:    time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC),
		depth: map[string]int{},
		gone:  map[string]bool{},
		error: func(deadletter.ID) string { return "g" },
	}
	var err error
	if o.store, err = store.Open(t.Context(), storetest.File(t), store.Options{
		Now: func() time.Time { return o.at },
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.store.Close() })
	o.restart()
	return o
}

// restart creates a new desk, which knows only what is in the store.
func (o *office) restart() {
	targets := &rules.Targets{}
	targets.Add("main", "/", []string{"sms", "email", "spare"}, []string{"dlo.letters"})
	o.desk = operation.New(o.store, operation.Options{
		Targets: targets, Now: func() time.Time { return o.at }, Log: slog.New(slog.DiscardHandler), MaxBody: 1000,
		Edit: appendPatch,
		Away: func(deadletter.Origin) string { return o.away },
		Facts: func(_ context.Context, at deadletter.Origin) deadletter.QueueFacts {
			if o.facts != nil {
				return *o.facts
			}
			return deadletter.QueueFacts{Known: true, Exists: !o.gone[at.Queue], Consumers: 1, Ready: o.depth[at.Queue]}
		},
	})
}

func (o *office) must(err error) {
	o.t.Helper()
	if err != nil {
		o.t.Fatal(err)
	}
}

// arrive stores n letters that died in a queue, and classifies them as dead.
func (o *office) arrive(queue string, n int) []deadletter.ID {
	o.t.Helper()
	o.at = o.at.Add(time.Second)
	var arrivals []deadletter.Arrival
	for i := range n {
		arrivals = append(arrivals, deadletter.Arrival{
			Exchange:   "dlo.dlx",
			RoutingKey: queue,
			Tag:        uint64(i + 1),
			Body:       []byte(fmt.Sprint(queue, i)),
			Properties: deadletter.Properties{Headers: deadletter.Table{
				"x-death": []any{
					deadletter.Table{
						"queue":        queue,
						"exchange":     "",
						"reason":       "rejected",
						"count":        int64(1),
						"routing-keys": []any{queue},
						"time":         o.at,
					},
				},
			}},
		})
	}
	return o.receive(arrivals...)
}

func (o *office) receive(arrivals ...deadletter.Arrival) []deadletter.ID {
	o.t.Helper()
	o.window++
	for i := range arrivals {
		print, err := arrivals[i].Print()
		o.must(err)
		arrivals[i].Fingerprint = print
	}
	r, err := o.store.Receive(o.t.Context(), deadletter.Window{
		Session: 1, Number: o.window, Broker: "main", VHost: "/", Inbox: "dlo.letters", Arrivals: arrivals,
		Uncertain: deadletter.UncertainHold, Horizon: time.Minute, HorizonRows: 1000,
	})
	o.must(err)
	o.must(o.store.SettleWindow(o.t.Context(), r.Window))
	for {
		letters, err := o.store.NextReceived(o.t.Context(), 500)
		o.must(err)
		if len(letters) == 0 {
			return r.New
		}
		var verdicts []deadletter.Classified
		for _, l := range letters {
			_, origin := deadletter.ReadDeaths(l.Arrived.Headers, deadletter.OwnQueue)
			origin.Broker, origin.VHost = "main", "/"
			why := o.error(l.ID)
			to := deadletter.ClassifiedDead
			if o.retry && l.Attempts == 0 {
				to = deadletter.ClassifiedRetry
			}
			verdicts = append(verdicts, deadletter.Classified{
				Letter:       l.ID,
				To:           to,
				DueAt:        o.at,
				Origin:       origin,
				Reason:       "rejected",
				GroupKey:     [32]byte{byte(len(origin.Queue)), why[0]},
				GroupTitle:   why,
				GroupVersion: 1,
				Severity:     deadletter.SeverityDigest,
			})
		}
		o.must(o.store.Classify(o.t.Context(), verdicts))
	}
}

// advance lets time pass in steps of at least 100 ms. In each step, the desk, the dispatcher, the
// broker and the workers do their work.
func (o *office) advance(d time.Duration) {
	o.t.Helper()
	for end := o.at.Add(d); o.at.Before(end); {
		o.at = o.at.Add(max(100*time.Millisecond, d/100))
		for range 3 {
			busy, _, err := o.desk.Step(o.t.Context())
			o.must(err)
			o.dispatch()
			if !busy {
				break
			}
		}
		o.bringBack()
		o.settle()
	}
}

// dispatch claims the due letters and sends them, in place of the dispatcher.
func (o *office) dispatch() {
	o.t.Helper()
	due, err := o.store.ClaimDue(o.t.Context(), "main", o.at, 10_000, deadletter.Allowance{
		Allow: func(deadletter.Origin, string) (int, bool) { return 10_000, false },
	})
	o.must(err)
	var marks []deadletter.Mark
	for _, d := range due {
		m := deadletter.Mark{
			Letter: d.Letter.ID, Token: d.Attempt.Token, Outcome: deadletter.OutcomeConfirmed,
			DueAt: o.at.Add(10 * time.Minute),
		}
		if o.gone[d.Attempt.Queue] {
			m = deadletter.Mark{
				Letter: d.Letter.ID, Token: d.Attempt.Token, Outcome: deadletter.OutcomeReturned, Detail: "no target",
			}
		} else {
			o.sent = append(o.sent, d)
			if o.broken {
				o.back = append(o.back, d)
			}
		}
		marks = append(marks, m)
	}
	o.must(o.store.Mark(o.t.Context(), marks, deadletter.Noted{}))
}

// bringBack stores the letters that the workers have rejected again.
func (o *office) bringBack() {
	o.t.Helper()
	var arrivals []deadletter.Arrival
	for i, d := range o.back {
		arrivals = append(arrivals, deadletter.Arrival{
			Exchange:   "dlo.dlx",
			RoutingKey: "k",
			Tag:        uint64(i + 1),
			Body:       d.Letter.Body,
			Properties: deadletter.Properties{Headers: deadletter.Table{
				deadletter.HeaderID: string(d.Letter.ID), deadletter.HeaderToken: string(d.Attempt.Token),
				"x-death": []any{
					deadletter.Table{
						"queue":        d.Attempt.Queue,
						"exchange":     "",
						"reason":       "rejected",
						"count":        int64(1),
						"routing-keys": []any{"k"},
						"time":         o.at,
					},
				},
			}},
		})
	}
	o.back = nil
	if len(arrivals) > 0 {
		o.receive(arrivals...)
	}
}

func (o *office) settle() {
	o.t.Helper()
	origins, err := o.store.Watched(o.t.Context(), "main", o.at)
	o.must(err)
	for _, at := range origins {
		_, err := o.store.SettleQuiet(o.t.Context(), at, o.at, 10_000, deadletter.QueueFacts{
			Known: true, Exists: true, Consumers: 1,
		})
		o.must(err)
	}
}

func selection(t *testing.T, text string) query.Selection {
	t.Helper()
	q, err := query.Parse(text, query.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return query.Selection{Query: &q}
}

func (o *office) start(r operation.Request) deadletter.OperationID {
	o.t.Helper()
	id, err := o.desk.Start(o.t.Context(), deadletter.Local, r)
	o.must(err)
	return id
}

func (o *office) operation(id deadletter.OperationID) deadletter.Operation {
	o.t.Helper()
	op, err := o.store.Operation(o.t.Context(), id)
	o.must(err)
	return op
}

// wantState fails the test unless an operation has the given state, phase and counts. The counts
// are pairs of a result and a number.
func (o *office) wantState(
	id deadletter.OperationID, state deadletter.OperationState, phase deadletter.OperationPhase, counts ...any,
) deadletter.Operation {
	o.t.Helper()
	op := o.operation(id)
	if op.State != state || op.Phase != phase {
		o.t.Errorf("%s is %s, %s (%s); want %s, %s", id, op.State, op.Phase, op.Why, state, phase)
	}
	sum := 0
	for i := 0; i < len(counts); i += 2 {
		if got, want := op.Counts[counts[i].(deadletter.Result)], counts[i+1].(int); got != want {
			o.t.Errorf("%s: %d letters %s, want %d", id, got, counts[i], want)
		}
	}
	for _, n := range op.Counts {
		sum += n
	}
	if sum != op.Total {
		o.t.Errorf("%s counts %d letters of %d", id, sum, op.Total)
	}
	return op
}

func ptr[T any](v T) *T { return &v }
