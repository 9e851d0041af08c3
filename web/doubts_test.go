package web_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestDoubtfulTwinsAreSettledInTwoClicks covers letters that a broker restart may have delivered
// again. They must link to the page that explains them. One form on that page, and one on the
// overview, must settle all of them, and the page in between must say what happens to them.
func TestDoubtfulTwinsAreSettledInTwoClicks(t *testing.T) {
	t.Parallel()
	h := open(t)
	window := func(session int64, again bool) deadletter.Window {
		w := deadletter.Window{
			Session: session, Number: 1, Broker: "main", VHost: "/", Inbox: "dlo.letters",
			Uncertain: deadletter.UncertainHold, Horizon: time.Minute, HorizonRows: 1000, Restarted: again,
		}
		for i, body := range []string{"a", "b", "c"} {
			a := deadletter.Arrival{
				Tag:         uint64(i + 1),
				Redelivered: again,
				Body:        []byte(body),
				Properties:  deadletter.Properties{Headers: deadletter.Table{}},
			}
			var err error
			if a.Fingerprint, err = a.Print(); err != nil {
				t.Fatal(err)
			}
			w.Arrivals = append(w.Arrivals, a)
		}
		return w
	}
	var ids []deadletter.ID
	for session, to := range []deadletter.Trigger{deadletter.ClassifiedDead, deadletter.ClassifiedHold} {
		if session > 0 {
			if err := h.store.Restarted(t.Context(), "main", "/", "dlo.letters", "marker"); err != nil {
				t.Fatal(err)
			}
		}
		r, err := h.store.Receive(t.Context(), window(int64(session+1), session > 0))
		if err != nil {
			t.Fatal(err)
		}
		ids = r.New
		var verdicts []deadletter.Classified
		for _, id := range r.New {
			verdicts = append(verdicts, deadletter.Classified{
				Letter:       id,
				To:           to,
				Origin:       deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms"},
				GroupKey:     [32]byte{1},
				GroupTitle:   "g",
				GroupVersion: 1,
				Severity:     deadletter.SeverityDigest,
			})
		}
		if err := h.store.Classify(t.Context(), verdicts); err != nil {
			t.Fatal(err)
		}
	}
	h.get("/letters/"+string(ids[0])).want(t, 200, "It may be a copy of", `href="/letters?q=doubt%3Arestart"`)
	h.get("/letters?q=doubt:restart").want(
		t, 200, "3 match", "may be copies of letters that are stored already", "Discard all 3 that match",
		"Release all 3 that match",
	)
	page := h.get("/").want(t, 200, "3 letters may be copies of stored letters.", "Discard all 3", "Release all 3",
		`href="/letters?q=doubt%3Arestart%2Ccut-off"`).text
	_, page, _ = strings.Cut(page, `id="copies"`)
	form := url.Values{
		"scope": {field(t, page, "scope")},
		"q":     {field(t, page, "q")},
		"until": {field(t, page, "until")},
	}
	form.Set("action", "release")
	h.post("/letters/confirm", form).want(
		t, 200, "Release 3 letters", "retries that are due are sent. Sent letters cannot be recalled.",
	)
	form.Set("action", "discard")
	h.post("/letters/confirm", form).want(
		t, 200, "Discard 3 letters?", "They will not be retried. They can be restored",
	)
	form.Set("key", "k")
	h.post("/operations", form).redirectsTo(t, "/operations/O-1")
	h.advance()
	h.get("/operations/O-1").want(t, 200, "3 discarded")
	h.get("/letters?q=doubt:restart").want(t, 200, "0 match")
	if page := h.get("/").text; strings.Contains(page, "copies of stored letters") {
		t.Error("the overview asks for a decision that was made")
	}
	h.get("/letters?q=state:dead").want(t, 200, "3 match")
}
