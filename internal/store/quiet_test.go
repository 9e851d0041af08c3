package store_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// TestQuietHasOneName checks that everything names the state of a quiet letter "quiet", although
// the database contains its former name, and that queries may contain either name.
func TestQuietHasOneName(t *testing.T) {
	t.Parallel()
	s, clock := open(t)
	ctx := context.Background()
	id := receive(t, s, window(t, 1, "sms", 1)).New[0]
	classify(t, s, deadletter.ClassifiedDead, time.Time{})
	_, due := requeue(t, s, clock, id)
	if err := s.Mark(ctx, []deadletter.Mark{{
		Letter: id, Token: due[0].Attempt.Token, Outcome: deadletter.OutcomeConfirmed, DueAt: clock.now(),
	}}, deadletter.Noted{}); err != nil {
		t.Fatal(err)
	}
	o := deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms"}
	if n, err := s.SettleQuiet(ctx, o, clock.now(), 10, deadletter.UnknownQueue); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	for _, text := range []string{"state:quiet", "state:settled", "-state:dead,held queue:sms"} {
		q, err := query.Parse(text, query.Options{})
		if err != nil {
			t.Fatal(err)
		}
		list, _, _, err := s.Letters(ctx, q, deadletter.Page{Limit: 10})
		if err != nil || len(list) != 1 || list[0].State != "quiet" {
			t.Errorf("%s: %v, %v", text, list, err)
		}
	}
	facets, err := s.Facets(ctx, query.Query{})
	if err != nil {
		t.Fatal(err)
	}
	want := deadletter.Facet{Field: "state", Values: []deadletter.FacetValue{{Value: "quiet", Count: 1}}}
	if d := cmp.Diff(want, facets.Fields[0]); d != "" {
		t.Error(d)
	}
	history, err := s.History(ctx, id)
	if err != nil || !slices.ContainsFunc(history, func(e deadletter.Event) bool { return e.Kind == "quiet" }) {
		t.Error(history, err)
	}
	queues, err := s.Queues(ctx)
	if err != nil || queues[0].Counts["quiet"] != 1 {
		t.Error(queues, err)
	}
	h, err := s.Histogram(ctx, query.Query{}, time.Time{}, time.Time{}, 10)
	if err != nil || h.Bars[len(h.Bars)-1].Recovered != 1 {
		t.Error(h, err)
	}
}
