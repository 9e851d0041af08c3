package store_test

import (
	"context"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestAnOriginForLettersThatDoNotSay checks an inbox with an origin in the configuration. The store
// must use this origin for a letter whose headers do not say where it died, or whose headers name a
// queue that may only have delayed it. For any other letter, the store must set no origin, because
// the classifier finds it in the headers.
func TestAnOriginForLettersThatDoNotSay(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	w := window(t, 1, "sms", 5)
	w.Inbox, w.Origin = "orders_error", "orders"
	delete(w.Arrivals[0].Properties.Headers, "x-death")
	// this queue is the letter's inbox, which cannot be an origin
	w.Arrivals[1].Properties.Headers["x-death"] = []any{deadletter.Table{"queue": "orders_error", "reason": "expired"}}
	w.Arrivals[2].Properties.Headers["x-death"] = "nonsense"
	w.Arrivals[4].Properties.Headers["x-death"] = []any{deadletter.Table{"queue": "orders_wait", "reason": "expired"}}
	fillFingerprints(t, &w)
	r := receive(t, s, w)
	for i, want := range []string{"orders", "orders", "orders", "", "orders"} {
		l := letter(t, s, r.New[i])
		if l.Origin() != (deadletter.Origin{
			Broker: "main", VHost: "/", Queue: want,
		}) || l.Reason != "" || !l.DiedAt.IsZero() {
			t.Errorf(
				"letter %d: %+v, reason %q, died %s; its queue should be %q", i, l.Origin(), l.Reason, l.DiedAt, want,
			)
		}
	}
	w = window(t, 2, "sms", 1)
	delete(w.Arrivals[0].Properties.Headers, "x-death")
	fillFingerprints(t, &w)
	if l := letter(t, s, receive(t, s, w).New[0]); l.Queue != "" {
		t.Errorf("an inbox without an origin gives %q", l.Queue)
	}
	letters, err := s.NextReceived(context.Background(), 10)
	if err != nil || len(letters) != 6 || letters[0].Queue != "orders" {
		t.Errorf("%d letters to classify, %v", len(letters), err)
	}
}
