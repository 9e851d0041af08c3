package web_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web"
)

// TestAListLooksForWhatIsNotIndexed checks that a list finds letters by any path in their bodies.
// It must say how far it has searched, return no more letters than were asked for, and continue
// directly after the last one. Requests that act on
// letters, count them or export them must reject such a path. Every request must reject a masked
// path.
func TestAListLooksForWhatIsNotIndexed(t *testing.T) {
	t.Parallel()
	h := open(t, func(o *web.Options) {
		o.Fields = []string{"id"}
		o.Masked = func(field string) bool { return field == "body.card" || field == "card" }
	})
	const letters, each = 180, 3
	for i := range letters {
		h.receive("sms", 1, fmt.Sprintf(`{"id": "%d", "customer": {"tenant": "t%d"}, "card": "4111"}`, i, i%each))
	}
	q := "state:dead body.customer.tenant:t1"
	page := h.get("/letters?q="+url.QueryEscape(q)).want(
		t, 200, "found so far", "Looked through ", " letters, back to ",
		"body.customer.tenant is not indexed; add it to search.fields", ">Look further</a>",
	)
	if strings.Contains(page.text, `value="all" data-all`) || strings.Contains(page.text, `name="toggle"`) {
		t.Error("all that match can be acted on, or facets are shown")
	}
	if strings.Contains(page.text, "data-events") {
		t.Error("the page looks through letters again with each event")
	}
	var found []deadletter.ID
	looked, next := 0, ""
	for pages := 0; ; pages++ {
		var out struct {
			Letters []deadletter.Row
			Next    string
			Looked  deadletter.Looked
		}
		h.get("/api/v1/letters?limit=7&after="+next+"&q="+url.QueryEscape(q)).json(t, &out)
		looked += out.Looked.Letters
		if back, n := out.Looked.Back, len(out.Letters); n > 7 || back.IsZero() ||
			n > 0 && back.After(out.Letters[n-1].ReceivedAt) {
			t.Fatalf("%d letters of 7, and dlo looked back to %s", n, back)
		}
		for _, l := range out.Letters {
			found = append(found, l.ID)
		}
		if next = out.Next; out.Looked.All != (next == "") || pages > letters {
			t.Fatalf("%+v", out)
		}
		if next == "" {
			break
		}
	}
	once := slices.Compact(slices.Sorted(slices.Values(found)))
	if len(found) != letters/each || len(once) != len(found) || looked != letters {
		t.Errorf(
			"%d letters found, %d different ones, in %d, want %d in %d", len(found), len(once), looked, letters/each,
			letters,
		)
	}
	h.get(
		"/api/v1/letters?limit=500&q="+url.QueryEscape("-body.customer.tenant:t* state:dead"),
	).want(t, 200, `"letters":[]`, `"all":true`)
	h.get("/letters?q="+url.QueryEscape(q+" sort:size")).want(t, 400, "leave out the order")
	h.get("/letters/"+string(found[0])+"?q="+url.QueryEscape(q)).want(t, 200)

	const refused = "body.customer.tenant is not indexed, so only a list looks for it: add customer.tenant to search.fields"
	form := url.Values{"action": {"discard"}, "scope": {"all"}, "q": {q}, "until": {"2026-11-20T09:00:00Z"}}
	h.post("/letters/confirm", form).want(t, 400, refused)
	h.get("/api/v1/letters/count?q="+url.QueryEscape(q)).want(t, 400, refused)
	h.get("/letters/export?format=csv&q="+url.QueryEscape(q)).want(t, 400, refused)
	h.postJSON("/api/v1/operations", `{"action":"requeue","q":"body.customer.tenant:t1"}`).want(t, 400, refused)
	for _, masked := range []string{"body.card:4111", "body.card:1", "body.card:*"} {
		h.get("/letters?q="+url.QueryEscape(masked)).want(t, 400, "body.card is masked: letters cannot be found by it")
	}
}
