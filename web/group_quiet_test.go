package web_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestAQuietGroupOnItsPages requeues the letters of two groups, which stay quiet. The tab "Quiet"
// and the page of the operation must offer to resolve both groups at once. When one of the groups
// fails again, the pages must say since when it is back, and after which operation.
func TestAQuietGroupOnItsPages(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.postJSON("/api/v1/deploys", `{"service":"notifications","version":"1.4.0"}`).want(t, 201)
	ids := h.receive("sms", 2, "x")
	h.receive("email", 1, "x")
	h.get("/triage?tab=quiet").want(t, 200, "No group is quiet")
	h.late.Add(int64(5 * time.Second))
	h.requeueQuietly("sms", ids)
	h.get("/triage").want(t, 200, "1 group, 1 letter needs a person", `Quiet <span class="count">1</span>`)
	h.get("/triage?tab=quiet").want(t, 200, `value="G-1"`, "quiet since ", "Resolve G-1").wantNot(t, `value="G-2"`)
	h.get("/groups/G-1").want(t, 200, "All its letters that were sent again stayed quiet.")
	h.get("/api/v1/groups?tab=quiet").want(t, 200, `"id":"G-1"`).wantNot(t, `"back"`)
	h.get("/operations/O-1").want(t, 200, "1 group is clear", "Resolve G-1")

	h.late.Add(int64(23 * time.Minute))
	h.receive("sms", 3, "x")
	const back = ">09:23</time>, after O-1 was quiet"
	h.get("/triage").want(t, 200, ">Regressed<", "Back since ", back)
	h.get("/groups/G-1").want(t, 200, "Back since ", back)
	page := h.get("/").want(t, 200, "3 letters of G-1", "Back since ", back, "; last death ")
	page.wantNot(t, "First seen")
	page.wantNot(t, "notifications 1.4.0</code>; last death")
	var g api.GroupDetail
	h.get("/api/v1/groups/G-1").want(t, 200).json(t, &g)
	if want := (deadletter.Back{Since: start.Add(time.Duration(h.late.Load())), After: 1}); g.Status != deadletter.GroupRegressed || g.Back != want {
		t.Errorf("%s, %+v, want %+v", g.Status, g.Back, want)
	}
}

// TestClearGroupsAreResolvedAtOnce checks an operation on letters of three groups. Its page must
// offer one button that resolves all of them, and one undo must open all of them again.
func TestClearGroupsAreResolvedAtOnce(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, queue := range []string{"a", "b", "c"} {
		h.receive(queue, 1, "x")
	}
	h.postJSON("/api/v1/operations", `{"action":"discard","q":"state:dead"}`).want(t, 202)
	h.advance()
	page := h.get("/operations/O-1").want(t, 200, "3 groups are clear", "Resolve all 3", `<a class="mono" href="/groups/G-2">`)
	if n := strings.Count(page.text, `value="resolve"`); n != 1 {
		t.Errorf("%d buttons resolve groups", n)
	}
	h.post("/triage", url.Values{
		"do": {"resolve"}, "groups": {"G-1", "G-2", "G-3"}, "return": {"/operations/O-1"},
	}).redirectsTo(t, "/operations/O-1?done=1")
	h.get("/operations/O-1?done=1").want(t, 200, "Resolved 3 groups", "Undo")
}

// TestGroupsAreMergedFromTheList ticks groups of Triage and merges them without JavaScript. The
// first of them must stay.
func TestGroupsAreMergedFromTheList(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, queue := range []string{"a", "b", "c"} {
		h.receive(queue, 1, "x")
	}
	h.get("/triage").want(t, 200, `formaction="/groups/merge"`)
	h.post("/groups/merge", url.Values{"groups": {"G-2"}}).want(t, 400, "tick two or more groups to merge them")
	h.post("/groups/merge", url.Values{"return": {"/triage"}}).want(t, 400)
	h.post("/groups/merge", url.Values{"groups": {"G-2", "G-3", "G-1"}, "return": {"/triage"}}).
		redirectsTo(t, "/triage?done=1")
	h.get("/triage?done=1").want(t, 200, "Undo", `value="G-2"`, "1 group, 3 letters need a person")
	h.get("/groups/G-3").want(t, 200, "Merged into")
}
