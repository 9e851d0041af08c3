package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// waiting reads one batch of the waiting letters that match a query.
func waiting(t testing.TB, s interface {
	Waiting(ctx context.Context, q query.Query, after deadletter.ID, until int64) ([]deadletter.Waiting, error)
}, text string, after deadletter.ID, until time.Time,
) []deadletter.Waiting {
	t.Helper()
	q, err := query.Parse(text, query.Options{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.Waiting(context.Background(), q, after, deadletter.SerialAt(until))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestWaitingLettersAreReadInBatches checks that waiting letters are read in the order of their
// ids, each exactly once. A batch must have at most 200 letters and at most 32 MiB.
func TestWaitingLettersAreReadInBatches(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ids := receive(t, s, window(t, 1, "sms", 450)).New
	receive(t, s, window(t, 2, "email", 5))
	classify(t, s, deadletter.ClassifiedRetry, c.now().Add(time.Hour))
	receive(t, s, window(t, 3, "sms", 5))
	until := c.now().Add(time.Second)
	var got []deadletter.ID
	var after deadletter.ID
	for _, want := range []int{200, 200, 50, 0} {
		list := waiting(t, s, "queue:sms", after, until)
		if len(list) != want {
			t.Fatalf("%d letters, want %d", len(list), want)
		}
		for _, w := range list {
			got, after = append(got, w.ID), w.ID
			if w.Chosen || !w.Since.Equal(w.ReceivedAt) || len(w.Body) == 0 || w.State != deadletter.StateScheduled {
				t.Fatalf("%+v", w)
			}
		}
	}
	for i := range ids {
		if ids[i] != got[i] {
			t.Fatalf("letter %d is %s, want %s", i, got[i], ids[i])
		}
	}
	if list := waiting(t, s, "", "", c.now()); len(list) != 0 {
		t.Errorf("%d letters that came later", len(list))
	}
	// Three bodies of 20 MiB make three batches.
	w := window(t, 4, "big", 3)
	for i := range w.Arrivals {
		w.Arrivals[i].Body = make([]byte, 20<<20)
		w.Arrivals[i].Body[0] = byte(i)
		print, err := w.Arrivals[i].Print()
		if err != nil {
			t.Fatal(err)
		}
		w.Arrivals[i].Fingerprint = print
	}
	after = ""
	receive(t, s, w)
	classify(t, s, deadletter.ClassifiedRetry, c.now().Add(time.Hour))
	for range 3 {
		list := waiting(t, s, "queue:big", after, until)
		if len(list) != 1 {
			t.Fatalf("%d large letters at once", len(list))
		}
		after = list[0].ID
	}
}

// TestWhatALetterWaitsFor checks two fields of a waiting letter. Since is the time from which the
// letter waits, for example the time when it came back. Chosen says whether a person chose its due
// time.
func TestWhatALetterWaitsFor(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	receive(t, s, window(t, 1, "sms", 1))
	classify(t, s, deadletter.ClassifiedRetry, c.now())
	due := claim(t, s, c)
	mark(t, s, c, deadletter.OutcomeConfirmed, due...)
	c.at = c.at.Add(time.Hour)
	receive(t, s, returnWindow(t, 2, due[0], "sms", letter(t, s, due[0].Letter.ID).Body))
	classify(t, s, deadletter.ClassifiedRetry, c.now().Add(time.Hour))
	list := waiting(t, s, "", "", c.now().Add(time.Second))
	if len(list) != 1 || list[0].ID != due[0].Letter.ID || !list[0].Since.Equal(c.now()) || list[0].Chosen {
		t.Fatalf("%+v", list)
	}
	op := deadletter.Operation{Action: deadletter.VerbReschedule, By: "ada", DueAt: c.now().Add(48 * time.Hour)}
	if err := s.Freeze(context.Background(), &op, query.Selection{
		IDs: []deadletter.ID{list[0].ID},
	}, 0, anyPlace); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Advance(context.Background(), op.ID, 10, nil); err != nil {
		t.Fatal(err)
	}
	if list := waiting(t, s, "", "", c.now().Add(time.Second)); len(list) != 1 || !list[0].Chosen {
		t.Errorf("rescheduled: %+v", list)
	}
	operate(t, s, deadletter.VerbRetryNow, list[0].ID)
	if list := waiting(t, s, "", "", c.now().Add(time.Second)); len(list) != 1 || !list[0].Chosen {
		t.Errorf("made due: %+v", list)
	}
}

// TestNewDecisionsAreRecorded checks decisions about letters that were read from the store before.
// If a letter has changed after it was read, the decision about this letter must not be recorded.
// The other decisions must be recorded, and the counters and histories must show them.
func TestNewDecisionsAreRecorded(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	receive(t, s, window(t, 1, "sms", 6))
	classify(t, s, deadletter.ClassifiedRetry, c.now().Add(time.Hour))
	list := waiting(t, s, "", "", c.now().Add(time.Second))
	c.at = c.at.Add(time.Second)
	operate(t, s, deadletter.VerbHold, list[4].ID)
	operate(t, s, deadletter.VerbReschedule, list[5].ID)
	var decisions []deadletter.NewDecision
	for i, w := range list {
		a := deadletter.NewDecision{
			Letter: w.ID, Outcome: deadletter.RuleRetry, Rule: "new", Severity: deadletter.SeverityPage, Why: "because",
			DueAt: c.now().Add(time.Minute), WasRule: w.Rule, WasDueAt: w.DueAt, ChangedAt: w.ChangedAt,
		}
		switch i {
		case 1:
			a.Outcome, a.DueAt = deadletter.RuleDead, time.Time{}
		case 2:
			a.Outcome, a.DueAt = deadletter.RuleDiscard, time.Time{}
		case 3:
			a.Severity = deadletter.SeverityDigest
		}
		decisions = append(decisions, a)
	}
	recorded, err := s.RecordDecisions(context.Background(), "ada", decisions)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []deadletter.State{
		deadletter.StateScheduled, deadletter.StateDead, deadletter.StateDiscarded, deadletter.StateScheduled,
		deadletter.StateHeld, deadletter.StateScheduled,
	} {
		l := letter(t, s, list[i].ID)
		if l.State != want || recorded[i] != (i < 4) ||
			recorded[i] && (l.Rule != "new" || l.Why != "because" || l.Severity != decisions[i].Severity ||
				!l.DueAt.Equal(decisions[i].DueAt) || !l.ChangedAt.Equal(c.now())) {
			t.Errorf("letter %d: recorded %v: %+v", i, recorded[i], l)
		}
	}
	history, err := s.History(context.Background(), list[1].ID)
	if err != nil {
		t.Fatal(err)
	}
	if e := history[len(history)-1]; e.Kind != "decided again" || e.Actor != "ada" || e.Detail != "because" {
		t.Errorf("%+v", e)
	}
	if n := count(t, s, "state:dead severity:page"); n != 1 {
		t.Errorf("%d dead letters that page", n)
	}
	again, err := s.RecordDecisions(context.Background(), "ada", decisions)
	for i, ok := range again {
		if ok || err != nil {
			t.Errorf("letter %d is recorded twice: %v", i, err)
		}
	}
}
