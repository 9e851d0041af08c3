package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/storetest"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/store"
)

// clock is a clock that a test moves.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func open(t testing.TB) (*store.Store, *clock) {
	t.Helper()
	c := &clock{time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}
	s, err := store.Open(context.Background(), storetest.File(t), store.Options{Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // after every test, the counters must be right
		for _, breach := range breaches(t, s.Reader()) {
			t.Error(breach)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, c
}

// window returns a window of n different letters that died in the given queue.
func window(t testing.TB, number int64, queue string, n int) deadletter.Window {
	t.Helper()
	w := deadletter.Window{
		Session: 1, Number: number, Broker: "main", VHost: "/", Inbox: "dlo.letters",
		Uncertain: deadletter.UncertainHold, Horizon: 10 * time.Minute, HorizonRows: 50000,
	}
	for i := range n {
		a := deadletter.Arrival{
			Exchange:   "dlo.dlx",
			RoutingKey: queue,
			Tag:        uint64(i + 1),
			Body:       []byte(fmt.Sprintf("body %d of window %d", i, number)),
			Properties: deadletter.Properties{
				ContentType:  "text/plain",
				DeliveryMode: 2,
				MessageID:    fmt.Sprintf("m-%d-%d", number, i),
				Headers: deadletter.Table{
					"x-death": []any{
						deadletter.Table{
							"queue":        queue,
							"exchange":     "events",
							"reason":       "rejected",
							"count":        int64(1),
							"routing-keys": []any{"k"},
							"time":         time.Unix(1763625600, 0).UTC(),
						},
					},
				},
			},
		}
		print, err := a.Print()
		if err != nil {
			t.Fatal(err)
		}
		a.Fingerprint = print
		w.Arrivals = append(w.Arrivals, a)
	}
	return w
}

// classify records the same verdict for every received letter.
func classify(t testing.TB, s *store.Store, to deadletter.Trigger, due time.Time) {
	t.Helper()
	for {
		letters, err := s.NextReceived(context.Background(), 500)
		if err != nil {
			t.Fatal(err)
		}
		if len(letters) == 0 {
			return
		}
		var verdicts []deadletter.Classified
		for _, l := range letters {
			deaths, origin := deadletter.ReadDeaths(l.Arrived.Headers, deadletter.OwnQueue)
			origin.Broker, origin.VHost = l.Broker, l.VHost
			reason, _ := deadletter.LastDeath(l.Arrived.Headers, deaths, origin.Queue)
			verdicts = append(verdicts, deadletter.Classified{
				Letter:       l.ID,
				To:           to,
				Origin:       origin,
				Reason:       reason,
				Type:         "acme.T",
				Summary:      "s",
				Error:        "e",
				GroupKey:     [32]byte{1},
				GroupTitle:   "g",
				GroupVersion: 1,
				Severity:     deadletter.SeverityDigest,
				DueAt:        due,
			})
		}
		if err := s.Classify(context.Background(), verdicts); err != nil {
			t.Fatal(err)
		}
	}
}

func count(t testing.TB, s *store.Store, q string) int {
	t.Helper()
	parsed, err := query.Parse(q, query.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, _, err := s.Count(context.Background(), parsed, 0)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func receive(t testing.TB, s *store.Store, w deadletter.Window) deadletter.Receipt {
	t.Helper()
	r, err := s.Receive(context.Background(), w)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SettleWindow(context.Background(), r.Window); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestALetterGoesOutAndComesBack(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := context.Background()
	w := window(t, 1, "sms", 3)
	r := receive(t, s, w)
	if len(r.New) != 3 {
		t.Fatal(r)
	}
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	if n := count(t, s, "state:dead queue:sms type:acme.T reason:rejected group:G-1"); n != 3 {
		t.Fatal(n)
	}
	op := deadletter.Operation{Action: deadletter.VerbRequeue, By: "local", Through: "api", Key: "k"}
	if err := s.Freeze(ctx, &op, query.Selection{IDs: r.New[:2]}, 0, anyPlace); err != nil {
		t.Fatal(err)
	}
	again := deadletter.Operation{
		Action:  deadletter.VerbRequeue,
		By:      "local",
		Through: "api",
		Key:     "k",
		Request: [32]byte{1},
	}
	if err := s.Freeze(ctx, &again, query.Selection{IDs: r.New}, 0, anyPlace); !errors.Is(err, deadletter.ErrConflict) {
		t.Fatal(again, err)
	}
	again.Request = op.Request
	if err := s.Freeze(ctx, &again, query.Selection{IDs: r.New[:2]}, 0, anyPlace); err != nil || again.ID != op.ID {
		t.Fatal(again, err)
	}
	if _, err := s.Advance(ctx, op.ID, 100, nil); err != nil {
		t.Fatal(err)
	}
	due, err := s.ClaimDue(ctx, "main", c.now(), 10, deadletter.Allowance{
		Allow: func(deadletter.Origin, string) (int, bool) { return 0, false },
	})
	if err != nil || len(due) != 2 {
		t.Fatal(due, err)
	}
	c.at = c.at.Add(time.Second)
	var marks []deadletter.Mark
	for _, d := range due {
		marks = append(marks, deadletter.Mark{
			Letter: d.Letter.ID, Token: d.Attempt.Token, Outcome: deadletter.OutcomeConfirmed,
			DueAt: c.now().Add(time.Minute),
		})
	}
	if err := s.Mark(ctx, marks, deadletter.Noted{}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Operation(ctx, op.ID)
	if err != nil || got.Phase != deadletter.PhaseWatching || got.Counts[deadletter.ResultConfirmed] != 2 {
		t.Fatal(got, err)
	}
	c.at = c.at.Add(time.Second)
	back := window(t, 2, "sms", 1)
	back.Arrivals[0].Body = w.Arrivals[0].Body
	back.Arrivals[0].Properties.Headers[deadletter.HeaderID] = string(due[0].Letter.ID)
	back.Arrivals[0].Properties.Headers[deadletter.HeaderToken] = string(due[0].Attempt.Token)
	if r := receive(t, s, back); r.CameBack != 1 || len(r.New) != 0 {
		t.Fatal(r)
	}
	if r := receive(t, s, back); r.Copies != 1 || len(r.New) != 0 {
		t.Fatal(r)
	}
	l, err := s.Letter(ctx, due[0].Letter.ID)
	if err != nil || l.State != deadletter.StateReceived || l.Attempts != 1 {
		t.Fatal(l, err)
	}
	got, err = s.Operation(ctx, op.ID)
	if err != nil || got.Counts[deadletter.ResultCameBack] != 1 {
		t.Fatal(got, err)
	}
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	c.at = c.at.Add(2 * time.Minute)
	if n, err := s.SettleQuiet(ctx, l.Origin(), c.now(), 10, deadletter.UnknownQueue); err != nil || n != 1 {
		t.Fatal(n, err, l.Origin())
	}
	rows, _, older, err := s.Letters(ctx, query.Query{}, deadletter.Page{Limit: 2})
	if err != nil || len(rows) != 2 || older == "" {
		t.Fatal(rows, older, err)
	}
	rows, newer, older, err := s.Letters(ctx, query.Query{}, deadletter.Page{Limit: 2, After: older})
	if err != nil || len(rows) != 1 || older != "" || newer == "" || rows[0].ID != r.New[0] {
		t.Fatal(rows, newer, older, err)
	}
	history, err := s.History(ctx, r.New[0])
	var kinds []string
	for _, e := range history {
		kinds = append(kinds, e.Kind)
	}
	if got := strings.Join(
		kinds, ", ",
	); err != nil || got != "received, dead, requeue, requeued, came back, copy, dead" {
		t.Fatal(got, err)
	}
	facets, err := s.Facets(ctx, query.Query{})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(facets)
}

func BenchmarkReceive(b *testing.B) {
	s, err := store.Open(context.Background(), filepath.Join(b.TempDir(), "dlo.db"), store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	w := window(b, 1, "sms", 500)
	for i := range w.Arrivals {
		w.Arrivals[i].Body = make([]byte, 500)
	}
	for b.Loop() {
		w.Number++
		receive(b, s, w)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*500), "us/letter")
}
