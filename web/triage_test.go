package web_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/web"
)

// digests is a Digester for the day before the test.
type digests struct {
	*store.Store
}

func (d digests) Now(ctx context.Context) (deadletter.Digest, error) {
	return d.Store.Digest(ctx, start.Add(-24*time.Hour), start.Add(time.Minute), 50)
}

func (d digests) Size(ctx context.Context) (int, error) {
	return d.Store.DigestSize(ctx, start.Add(-24*time.Hour), start.Add(time.Minute))
}

func (d digests) Send(context.Context, deadletter.Principal) ([]string, error) {
	return []string{"team"}, nil
}

func (d digests) Next() (time.Time, []string) { return start.Add(24 * time.Hour), []string{"team"} }

func (d digests) Last(ctx context.Context) (string, deadletter.Digest, error) {
	return d.Store.LastDigest(ctx)
}

// TestTriageByForms makes decisions about groups on the page. The page must show each decision, and
// must be able to undo it.
func TestTriageByForms(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.get("/triage").want(t, 200, "Inbox zero")
	h.receive("sms", 2, "x")
	h.receive("email", 1, "x")
	h.get("/triage").want(
		t, 200, "2 groups, 3 letters need a person", "endpoint answered 410 Gone", `href="/groups/G-1"`, "Requeue 2",
		">New<",
	)
	done := h.post("/triage", url.Values{
		"groups":  {"G-1"},
		"do":      {"resolve"},
		"version": {"2026.11.20-2"},
		"return":  {"/triage"},
	}).want(t, 303)
	back := done.Header.Get("Location")
	h.get(back).want(
		t, 200,
		`Resolved G-1 &#34;endpoint answered 410 Gone&#34; in version 2026.11.20-2. 2 letters stay dead or held.`,
		`action="/triage/undo"`, "1 group, 1 letter needs a person",
	)
	h.get("/triage?tab=resolved").want(t, 200, "G-1", " by you (no sign-in) in 2026.11.20-2")
	h.post("/triage/undo", url.Values{"id": {"1"}, "return": {back}}).want(t, 303)
	h.get("/triage").want(t, 200, "2 groups")
	h.post("/triage/undo", url.Values{"id": {"1"}}).want(t, 409)

	h.post("/triage", url.Values{
		"groups":        {"G-1", "G-2"},
		"do":            {"snooze"},
		"for":           {"4h"},
		"after_letters": {"20"},
		"another_queue": {"1"},
	}).want(t, 303)
	h.get("/triage").want(t, 200, "Inbox zero", "Decided today", "Snoozed 2 groups", "undone")
	h.get("/triage?tab=snoozed").want(t, 200, "or 20 more letters, or another queue has it")
	h.post("/triage", url.Values{"groups": {"G-1", "G-2"}, "do": {"reopen"}}).want(t, 303)
	h.post(
		"/triage", url.Values{"groups": {"G-1"}, "do": {"snooze"}, "for": {"4h"}, "until": {"2026-11-23T09:15"}},
	).want(t, 303)
	h.get("/triage?tab=snoozed").want(t, 200, "until Mon 23 Nov 09:15 UTC")
	h.post("/triage", url.Values{"groups": {"G-1"}, "do": {"reopen"}}).want(t, 303)
	h.post(
		"/triage", url.Values{"groups": {"G-1"}, "do": {"snooze"}, "for": {"2026-11-21T08:30:00Z"}},
	).want(t, 303)
	h.post("/triage", url.Values{"groups": {"G-2"}, "do": {"mine"}}).want(t, 303)
	h.get("/triage?tab=mine").want(t, 200, "G-2")
	h.post("/triage", url.Values{
		"groups":   {"G-2"},
		"do":       {"change"},
		"owner":    {"ana"},
		"severity": {"page"},
		"ticket":   {"https://tickets.example/1"},
		"note":     {"looked\r\nat it"},
	}).want(t, 303)
	h.get("/groups/G-2").want(
		t, 200, "ana", "sev-page", `href="https://tickets.example/1"`, "<p>looked</p><p>at it</p>", "looked at it",
		"History", "assigned",
	)
	h.post("/groups/merge", url.Values{"id": {"G-1"}, "groups": {"G-2"}}).want(t, 303)
	h.get("/groups/G-2").want(t, 200, "Merged into")
	h.get("/groups/G-1").want(t, 200, "Split off", "3 dead")
	h.post("/groups/split", url.Values{"id": {"G-2"}}).want(t, 303)

	for what, c := range map[string]struct {
		path string
		form url.Values
		code int
	}{
		"no group":         {"/triage", url.Values{"do": {"resolve"}}, 400},
		"nothing":          {"/triage", url.Values{"groups": {"G-1"}}, 400},
		"a group of words": {"/triage", url.Values{"groups": {"x"}, "do": {"resolve"}}, 400},
		"one that is not":  {"/triage", url.Values{"groups": {"G-77"}, "do": {"resolve"}}, 404},
		"no number":        {"/triage", url.Values{"groups": {"G-1"}, "do": {"snooze"}, "after_letters": {"many"}}, 400},
		"no day":           {"/triage", url.Values{"groups": {"G-1"}, "do": {"snooze"}, "until": {"monday"}}, 400},
		"no duration":      {"/triage", url.Values{"groups": {"G-1"}, "do": {"snooze"}, "for": {"soon"}}, 400},
		"no undo":          {"/triage/undo", url.Values{"id": {"99"}}, 404},
	} {
		if a := h.post(c.path, c.form); a.StatusCode != c.code {
			t.Errorf("%s: %d, want %d: %s", what, a.StatusCode, c.code, a.text)
		}
	}
	h.get("/groups/G-77").want(t, 404)
	h.get("/triage?q=colour:red").want(t, 400, "colour")
	// A person makes one decision about two groups, and then one of the groups changes. The undo
	// must affect only the other group. The page must say which group this is.
	both := h.post("/triage", url.Values{"groups": {"G-1", "G-2"}, "do": {"resolve"}}).want(t, 303).Header.Get("Location")
	h.post("/triage", url.Values{"groups": {"G-2"}, "do": {"reopen"}}).want(t, 303)
	decision, _ := url.Parse(both)
	undone := h.post("/triage/undo", url.Values{
		"id":     {decision.Query().Get("done")},
		"return": {"/triage"},
	}).want(t, 303).Header.Get("Location")
	h.get(undone).want(t, 200, "Undone: Resolved G-1; 1 group left alone: G-2<")
	// After a decision, the URL of the page contains only the id of the decision. The page reads
	// the text about the decision from the store.
	h.get("/triage?done=1&left=G-7,x&did=call").want(
		t, 200,
		`Undone: Resolved G-1 &#34;endpoint answered 410 Gone&#34; in version 2026.11.20-2; 1 group left alone: G-7<`,
	)
	for _, none := range []string{"/triage?done=99&did=call", "/triage?sent=1"} {
		if a := h.get(none).want(t, 200); strings.Contains(a.text, "note good") {
			t.Errorf("%s says that something was done", none)
		}
	}
}

// TestAssigningCompletesNames checks that the field for an owner completes names that were used
// before: current and former owners, people who have acted, and the current principal. The groups
// of the current principal are listed under "Mine".
func TestAssigningCompletesNames(t *testing.T) {
	t.Parallel()
	me := deadletter.Local
	h := open(t, func(o *web.Options) {
		o.Actor = func(*http.Request) (deadletter.Principal, error) { return me, nil }
	})
	h.receive("sms", 1, "x")
	h.receive("email", 1, "x")
	for _, owner := range []string{"Jonas Ode", "Lena Sato", `<b>"`} {
		h.post("/triage", url.Values{"groups": {"G-1"}, "do": {"assign"}, "owner": {owner}}).want(t, 303)
	}
	h.post("/triage", url.Values{"groups": {"G-2"}, "do": {"assign"}, "owner": {"Lena Sato"}}).want(t, 303)
	for _, path := range []string{"/triage", "/groups/G-1"} {
		const rest = `<option value="Lena Sato"></option><option value="&lt;b&gt;&#34;"></option><option value="Jonas Ode"></option></datalist>`
		me = deadletter.Local
		h.get(path).want(
			t, 200, `list="people" maxlength="100"`, `<datalist id="people"><option value="local"></option>`+rest,
		)
		me = deadletter.Principal{Name: "Lena Sato", Grants: deadletter.Local.Grants}
		h.get(path).want(
			t, 200,
			`<datalist id="people"><option value="Lena Sato"></option><option value="local"></option><option value="&lt;b&gt;&#34;"></option><option value="Jonas Ode"></option></datalist>`,
		)
	}
	if mine := h.get("/triage?tab=mine").want(t, 200, "G-2").text; strings.Contains(mine, "/groups/G-1") {
		t.Error("the groups of somebody else are hers")
	}
}

// TestActionsOnGroups checks that the letters of groups are requeued and discarded with the same
// kind of plan as any other selection. The plan must cover the letters that needed a person when
// the page was requested.
func TestActionsOnGroups(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.receive("sms", 2, "x")
	h.receive("email", 1, "x")
	h.post("/triage/confirm", url.Values{
		"groups": {"G-1", "G-2"},
		"action": {"discard"},
		"return": {"/triage"},
	}).want(t, 200, "state:dead,held group:G-1,G-2", "Discard 3")
	h.post("/triage/confirm", url.Values{"groups": {"G-1"}, "action": {"requeue"}}).want(t, 200, "Requeue 2")
	h.post("/triage/confirm", url.Values{"action": {"requeue"}}).want(t, 400, "tick a group first")
	// A button in a row of the digest acts only on the group of that row, whatever is ticked.
	h.post("/triage/confirm", url.Values{
		"groups":  {"G-1", "G-2"},
		"discard": {"G-2"},
	}).want(t, 200, "group:G-2", "Discard 1")
}

// TestTheDigestSaysWhatADeployHasEnded checks that the digest offers to requeue groups that became
// quiet after a deploy. The number that it shows must lead to exactly the letters of these groups.
func TestTheDigestSaysWhatADeployHasEnded(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.receive("sms", 2, "x")
	h.receive("email", 1, "x")
	h.late.Add(int64(time.Minute))
	at := start.Add(time.Duration(h.late.Load())).Format(time.RFC3339)
	h.postJSON("/api/v1/deploys", `{"service":"notifications","version":"1.4.1","at":"`+at+`"}`).want(t, 201)
	h.get("/triage?tab=digest").want(t, 200, "2 groups").wantNot(t, "Not failing since")
	h.late.Add(int64(20 * time.Minute))
	h.get("/triage?tab=digest").want(
		t, 200, "Not failing since a deploy", "of 2 groups, ready to requeue",
		"Not failing since notifications 1.4.1: ready to requeue", `href="/letters?q=group%3AG-1%2CG-2+state%3Adead%2Cheld"`,
	)
	h.get("/letters?q=group:G-1,G-2+state:dead,held").want(t, 200, "3 match")
	h.receive("sms", 1, "x")
	h.get("/triage?tab=digest").want(
		t, 200, "of 1 group, ready to requeue", `href="/letters?q=group%3AG-2+state%3Adead%2Cheld"`,
	)
}

// TestADeployEndsOnlyWhatFailed checks a group in which no letter died for a long time before a
// deploy. dlo must not conclude that the deploy has fixed this group.
func TestADeployEndsOnlyWhatFailed(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.receive("sms", 1, "x")
	h.late.Add(int64(13 * time.Minute))
	at := start.Add(time.Duration(h.late.Load())).Format(time.RFC3339)
	h.postJSON("/api/v1/deploys", `{"service":"notifications","version":"1.4.1","at":"`+at+`"}`).want(t, 201)
	h.late.Add(int64(time.Minute))
	h.get("/triage?tab=digest").want(t, 200, "1 group").wantNot(t, "All 1 group", "ready to requeue")
}

// TestDigestOnThePage checks that the page shows the digest that would be sent now. A button on the
// page must send this digest at once.
func TestDigestOnThePage(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.get("/triage?tab=digest").want(t, 200, "All clear")
	h.receive("sms", 2, "x")
	h.get("/triage?tab=digest").want(t, 200, "1 group, 2 letters, 1 new.", "+2", "1 group to review", "to team")
	h.get("/api/v1/digest").want(t, 200, `"groups":1,"letters":2,"new":1`)
	h.post("/triage", url.Values{"groups": {"G-1"}, "do": {"mine"}}).want(t, 303)
	h.get("/triage?tab=digest").want(t, 200, `name="requeue" value="G-1"`, "Activity since", "Assigned G-1")
	to := h.post("/triage/digest", nil).want(t, 303).Header.Get("Location")
	h.get(to).want(t, 200, "The digest is on its way to team")
}

// TestWhatLettersShare checks that the page names the values that the letters of a group have in
// common. It must not name masked values.
func TestWhatLettersShare(t *testing.T) {
	t.Parallel()
	masks := payload.Masks{Headers: []string{"app-id"}}
	h := open(t, func(o *web.Options) { o.Header = masks.Header })
	for i := range 4 {
		h.receive("sms", 1, `{"customer":{"tier":"gold"},"n":`+string(rune('0'+i))+`}`)
	}
	a := h.get("/api/v1/groups/G-1").want(
		t, 200, `{"field":"customer.tier","value":"gold","letters":4,"values":1}`, `"sampled":4`,
	)
	if strings.Contains(a.text, "shop") {
		t.Error("a masked property is named")
	}
	if strings.Contains(a.text, `"field":"n"`) {
		t.Error("what every letter has another value of is named")
	}
	h.get("/groups/G-1").want(t, 200, "What they have in common", "customer.<wbr>tier", "Of the newest 4 letters")
}

// TestDeploysAreMarked records a deploy. A group that begins after a deploy must name that deploy.
func TestDeploysAreMarked(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.postJSON(
		"/api/v1/deploys",
		`{"service":"billing","version":"7","link":"https://ci.example/7","at":"2026-11-20T08:58:00Z"}`,
	).want(t, 201)
	h.receive("sms", 1, "x")
	h.get("/api/v1/deploys").want(t, 200, `"service":"billing"`)
	for _, bad := range []string{
		`{}`, `{"service":"` + strings.Repeat("x", 101) + `"}`, `{"service":"s","link":"javascript:alert(1)"}`,
		`{"service":"s\u202e"}`, `{"service":"s","at":"2030-01-01T00:00:00Z"}`,
	} {
		h.postJSON("/api/v1/deploys", bad).want(t, 400)
	}
}
