package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// TestQueuesThatNeedASchema checks that a queue needs a schema if none of its letters can be read.
// A queue whose letters dlo has not tried to read yet must not count.
func TestQueuesThatNeedASchema(t *testing.T) {
	t.Parallel()
	s, c := open(t)
	ctx := context.Background()
	for i, queue := range []struct {
		name     string
		readings []deadletter.Reading
	}{
		{"none", []deadletter.Reading{deadletter.ReadUnknown, deadletter.ReadAmbiguous}},
		{"some", []deadletter.Reading{deadletter.ReadUnknown, deadletter.ReadByMatch}},
		{"json", []deadletter.Reading{deadletter.ReadAsJSON}},
		{"unread", []deadletter.Reading{""}},
	} {
		receive(t, s, window(t, int64(i+1), queue.name, len(queue.readings)))
		letters, err := s.NextReceived(ctx, 10)
		if err != nil {
			t.Fatal(err)
		}
		var verdicts []deadletter.Classified
		for j, l := range letters {
			v := deadletter.Classified{
				Letter:       l.ID,
				To:           deadletter.ClassifiedDead,
				Origin:       deadletter.Origin{Broker: "main", VHost: "/", Queue: queue.name},
				Reading:      queue.readings[j],
				GroupKey:     [32]byte{1},
				GroupTitle:   "g",
				GroupVersion: 1,
			}
			if v.Reading.Typed() {
				v.Type = "acme.T"
			}
			verdicts = append(verdicts, v)
		}
		if err := s.Classify(ctx, verdicts); err != nil {
			t.Fatal(err)
		}
		c.at = c.at.Add(time.Hour)
	}
	if n, err := s.Unmatched(ctx); err != nil || n != 1 {
		t.Errorf("%d queues need a schema, not 1: %v", n, err)
	}
	var all query.Query
	first, err := s.Oldest(ctx, all)
	if err != nil || !first.Equal(c.at.Add(-4*time.Hour).Truncate(time.Millisecond)) {
		t.Errorf("the oldest letter is of %s, at %s now: %v", first, c.at, err)
	}
	json, err := s.Oldest(ctx, all.With(query.Queue, "json"))
	if err != nil || json.Sub(first) != 2*time.Hour {
		t.Errorf("the oldest letter of json is of %s: %v", json, err)
	}
	if none, err := s.Oldest(ctx, all.With(query.Queue, "nothing")); err != nil || !none.IsZero() {
		t.Errorf("%s: %v", none, err)
	}
}
