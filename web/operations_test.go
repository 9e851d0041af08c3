package web_test

import (
	"html"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

func TestControlOfAnOperation(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := string(h.receive("sms", 2, "x")[0])
	h.post("/operations", url.Values{"action": {"requeue"}, "id": {id}, "key": {"k"}}).redirectsTo(t, "/operations/O-1")
	h.get("/operations/O-1").want(t, 200, "Not begun", "Nothing is sent yet.", "Undo")
	h.post("/operations/O-1/pause", nil).redirectsTo(t, "/operations/O-1")
	h.get("/operations/O-1").want(t, 200, "Paused", "Resume")
	h.post("/operations/O-1/rate", url.Values{"rate": {"fast"}}).want(
		t, 400, `value="fast" aria-invalid="true"`, "a rate is a number",
	)
	h.post("/operations/O-1/rate", url.Values{"rate": {"0"}}).want(t, 400, "rate is above 0")
	h.post("/operations/O-1/rate", url.Values{"rate": {"7.5"}}).redirectsTo(t, "/operations/O-1")
	h.get("/operations/O-1").want(t, 200, "7.5/s")
	h.post("/operations/O-1/resume", nil).redirectsTo(t, "/operations/O-1")
	h.post("/operations/O-1/resume", nil).want(t, 409)
	h.post("/operations/O-9/pause", nil).want(t, 404)
	h.get("/operations/O-1?result=pending").want(t, 200, `aria-current="page"`, "To go")
	h.get("/operations/O-1?result=twice").want(t, 200, "Possibly sent twice", "None.")
	h.get("/operations/O-1?result=nonsense&after=!").want(t, 400)
}

// TestAHaltedOperationIsWorkForAPerson checks that Overview and Triage list an operation that a
// person has paused. If a person wants to discard letters of the paused operation, the plan of the
// discard must offer to cancel the rest of the operation. The discard must then include these
// letters.
func TestAHaltedOperationIsWorkForAPerson(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.receive("sms", 3, "x")
	h.get("/").want(t, 200, `id="halted" data-live="operation" hidden`)
	h.postJSON("/api/v1/operations", `{"action":"requeue","q":"state:dead","hold":"1h","reason":"r"}`).want(t, 202)
	h.post("/operations/O-1/pause", url.Values{}).redirectsTo(t, "/operations/O-1")
	for _, page := range []string{"/", "/triage", "/triage?tab=digest"} {
		h.get(page).want(
			t, 200, ">O-1</a>", "Requeue paused at 09:00.", "3 letters wait for a decision.",
			`action="/operations/O-1/resume"`, `formaction="/operations/O-1/cancel"`,
		)
	}
	plan := url.Values{"action": {"discard"}, "groups": {"G-1"}, "return": {"/triage"}}
	page := h.post("/triage/confirm", plan).want(
		t, 200, "Discard 0 letters?", "3 letters</b>", " are in ", "paused at 09:00.",
		`name="take" value="O-1">Cancel its rest and include them</button>`,
	)
	form := url.Values{"take": {"O-1"}}
	for _, name := range []string{"action", "scope", "q", "until", "except", "expect", "key", "return"} {
		_, rest, _ := strings.Cut(page.text, `name="`+name+`" value="`)
		value, _, _ := strings.Cut(rest, `"`)
		form.Set(name, html.UnescapeString(value))
	}
	h.post("/letters/confirm", form).want(
		t, 200, "Discard 3 letters?", "The rest of ", "is cancelled, and its letters are included.",
		`<input type="hidden" name="take" value="O-1">`,
	)
	h.post("/operations", form).redirectsTo(t, "/operations/O-2?from=%2Ftriage")
	h.advance()
	h.get("/operations/O-1").want(t, 200, "Cancelled")
	h.get("/letters?q=state:discarded").want(t, 200, "3 match")
	h.get("/").want(t, 200, `id="halted" data-live="operation" hidden`)
	h.postJSON(
		"/api/v1/operations", `{"action":"requeue","q":"state:discarded","take_over":["O-1"]}`,
	).want(t, 409, "its rest cannot be taken over")
}

// TestAnOperationSaysHowToGoOn checks the page of an operation. It must link back to the list from
// which the operation was started. For letters that came back, it must give the error, and say
// whether the error is new. It must offer next steps for the groups of the operation and for
// skipped letters. All of this must work without scripts.
func TestAnOperationSaysHowToGoOn(t *testing.T) {
	t.Parallel()
	h := open(t)
	ids := h.receive("sms", 3, "x")
	kept := string(ids[2])
	h.post("/operations", url.Values{
		"action": {"requeue"},
		"id":     {kept},
		"key":    {"k"},
	}).redirectsTo(t, "/operations/O-1")
	const list = "/letters?q=queue:sms"
	at := "/operations/O-2?from=" + url.QueryEscape(list)
	h.post("/operations", url.Values{
		"action":  {"requeue"},
		"id":      {string(ids[0]), string(ids[1]), kept},
		"key":     {"l"},
		"canary":  {"0"},
		"stop_at": {"0"},
		"return":  {list},
	}).redirectsTo(t, at)
	h.get(at).want(t, 200, `href="/letters?q=queue:sms">Back to the letters</a>`, "Refresh", `look=5s">every 5 s</a>`)
	h.get(at+"&look=5s").want(
		t, 200, `<noscript><meta http-equiv="refresh" content="5"></noscript>`, "This page refreshes every 5 s.",
	)
	for _, hostile := range []string{"https://example.org/", "//example.org", "javascript:alert(1)"} {
		if page := h.get(
			"/operations/O-2?from=" + url.QueryEscape(hostile),
		); strings.Contains(page.text, `href="https://ex`) || strings.Contains(page.text, `href="//ex`) ||
			strings.Contains(page.text, `href="javascript`) {
			t.Errorf("%s is a link", hostile)
		}
	}
	h.post("/operations/O-1/pause", url.Values{}).redirectsTo(t, "/operations/O-1")
	// the newest operation; one letter is skipped
	h.get("/triage").want(t, 200, `id="op-G-1" data-live="operation"`, ">O-2</a>", "1 of 3")
	h.advance()

	due, err := h.store.ClaimDue(t.Context(), "main", start.Add(time.Hour), 10, deadletter.Allowance{
		Allow: func(deadletter.Origin, string) (int, bool) { return 10, false },
	})
	if err != nil || len(due) != 2 {
		t.Fatal(due, err)
	}
	for i, failure := range []string{"", "there is no template welcome_v3"} {
		d := due[i]
		if err := h.store.Mark(t.Context(), []deadletter.Mark{
			{
				Letter: d.Letter.ID, Token: d.Attempt.Token, Outcome: deadletter.OutcomeConfirmed,
				DueAt: start.Add(time.Hour),
			},
		}, deadletter.Noted{}); err != nil {
			t.Fatal(err)
		}
		h.failure, h.headers = failure, deadletter.Table{
			deadletter.HeaderID: string(d.Letter.ID), deadletter.HeaderToken: string(d.Attempt.Token),
		}
		h.receive("sms", 1, "x")
	}
	h.get(at).want(
		t, 200, "Errors of letters that came back", "there is no template welcome_v3", "Another error",
		"The same error", "dead, a person decides",
		"All of them came back and are here again.", "Requeue the skipped one", "1 letter was skipped.",
		"2 letters of it are dead or held.", "Requeue 2",
	)
	h.get("/api/v1/operations/O-2").want(
		t, 200, `"error":"there is no template welcome_v3"`, `"same_error":false`, `"same_error":true`,
		`"state":"dead"`,
	)

	h.post("/operations", url.Values{
		"action": {"discard"},
		"id":     {string(ids[0]), string(ids[1])},
		"key":    {"m"},
	}).redirectsTo(t, "/operations/O-3")
	h.post("/operations/O-1/cancel", url.Values{}).redirectsTo(t, "/operations/O-1")
	h.advance()
	h.post("/operations", url.Values{
		"action": {"discard"},
		"id":     {kept},
		"key":    {"n"},
	}).redirectsTo(t, "/operations/O-4")
	h.advance()
	h.get("/operations/O-4").want(t, 200, "none of its letters is dead, held or waiting to be retried.", "Resolve G-1")
	h.post("/triage", url.Values{
		"do":     {"resolve"},
		"groups": {"G-1"},
		"return": {"/operations/O-4"},
	}).redirectsTo(t, "/operations/O-4?done=1")
	h.get("/operations/O-4?done=1").want(t, 200, "Resolved", "Undo", "it is resolved.")
}
