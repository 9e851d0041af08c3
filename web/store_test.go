package web_test

import (
	"net/url"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestLettersOfARestoredStore covers a store that was restored from a copy. Pages must name the
// letters that may have been sent since the copy was made. Plans must omit these letters, unless a
// person includes them.
func TestLettersOfARestoredStore(t *testing.T) {
	t.Parallel()
	before := open(t)
	ids := before.receive("sms", 3, "x")
	if err := before.store.Close(); err != nil {
		t.Fatal(err)
	}
	h := openFile(t, before.store.Path())
	seen := h.store.Progress()
	seen.Claims++
	if err := h.store.Restored(t.Context(), seen, false); err != nil {
		t.Fatal(err)
	}
	const may = "may have been sent after the copy was made from which this store was restored"
	h.get("/letters/"+string(ids[0])).want(t, 200, may, `href="/letters?q=doubt%3Arestored"`)
	h.get("/letters/"+string(ids[0])+"/edit").want(t, 200, may)
	list := h.get("/letters?q=doubt:restored").want(
		t, 200, "3 match", may, "Discard all 3 that match", "Requeue all 3 that match",
	).text

	form := url.Values{"action": {"requeue"}, "scope": {"ids"}, "id": {string(ids[0]), string(ids[1])}}
	h.post("/letters/confirm", form).want(t, 200, deadletter.WhyRestored, "Include letters that may have been sent")
	form.Set("restored", "1")
	h.post("/letters/confirm", form).want(
		t, 200, "This includes letters", `name="restored" value="1"`, "Requeue 2 letters",
	)
	form.Set("key", "k")
	h.post("/operations", form).redirectsTo(t, "/operations/O-1")
	if op, err := h.store.Operation(t.Context(), 1); err != nil || !op.Restored {
		t.Errorf("%+v, %v", op, err)
	}

	all := url.Values{
		"action": {"requeue"},
		"scope":  {field(t, list, "scope")},
		"q":      {field(t, list, "q")},
		"until":  {field(t, list, "until")},
	}
	h.post("/letters/confirm", all).want(t, 200, "Requeue 1 letter") // the other letters belong to the operation
}

// TestPeopleSayWhetherTheStoreIsCurrent checks the banner that asks whether the store is current or
// an older copy. A person can give either answer, but only once.
func TestPeopleSayWhetherTheStoreIsCurrent(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, answer := range []string{"accept", "hold"} {
		if err := h.store.Unproved(t.Context(), "main", "/", true); err != nil {
			t.Fatal(err)
		}
		h.post("/store/"+answer, url.Values{"return": {"/queues"}}).redirectsTo(t, "/queues")
		if asked, err := h.store.AnyUnproved(t.Context()); asked || err != nil {
			t.Errorf("%s: it is still asked (%v)", answer, err)
		}
		h.post("/store/"+answer, nil).want(t, 409, "dlo does not ask now")
	}
}
