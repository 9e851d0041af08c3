package store_test

import (
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// TestAnHourHasBarsOfAMinute checks that letters that arrived a few minutes apart are in different
// bars of a short chart, also if a query selects some of them, and that a long chart agrees.
func TestAnHourHasBarsOfAMinute(t *testing.T) {
	t.Parallel()
	s, clock := open(t)
	from := clock.now()
	for i, queue := range []string{"sms", "sms", "mail"} {
		clock.at = from.Add(time.Duration(10+2*i) * time.Minute)
		receive(t, s, window(t, int64(i+1), queue, i+1))
		classify(t, s, deadletter.ClassifiedDead, time.Time{})
	}
	clock.at = from.Add(time.Hour)
	for text, want := range map[string][3]int{"": {1, 2, 3}, "state:dead queue:sms": {1, 2, 0}} {
		q, err := query.Parse(text, query.Options{})
		if err != nil {
			t.Fatal(err)
		}
		h, err := s.Histogram(t.Context(), q, from, clock.now(), 61)
		if err != nil || h.Step != time.Minute || len(h.Bars) != 61 {
			t.Fatalf("%q: %d bars of %s, %v", text, len(h.Bars), h.Step, err)
		}
		if got := [3]int{h.Bars[10].Dead, h.Bars[12].Dead, h.Bars[14].Dead}; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	h, err := s.Histogram(t.Context(), query.Query{}, clock.now().Add(-24*time.Hour), clock.now(), 97)
	if err != nil || h.Step != 15*time.Minute {
		t.Errorf("a day has bars of %s, %v", h.Step, err)
	}
}
