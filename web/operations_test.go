package web_test

import (
	"html"
	"net/url"
	"strings"
	"testing"
)

func TestControlOfAnOperation(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := string(h.receive("sms", 2, "x")[0])
	h.post("/operations", url.Values{"action": {"requeue"}, "id": {id}, "key": {"k"}}).to(t, "/operations/O-1")
	h.post("/operations/O-1/pause", nil).to(t, "/operations/O-1")
	h.get("/operations/O-1").want(t, 200, "Paused", "Resume")
	h.post("/operations/O-1/rate", url.Values{"rate": {"fast"}}).want(t, 400, `value="fast" aria-invalid="true"`, "a rate is a number")
	h.post("/operations/O-1/rate", url.Values{"rate": {"0"}}).want(t, 400, "rate is above 0")
	h.post("/operations/O-1/rate", url.Values{"rate": {"7.5"}}).to(t, "/operations/O-1")
	h.get("/operations/O-1").want(t, 200, "7.5/s")
	h.post("/operations/O-1/resume", nil).to(t, "/operations/O-1")
	h.post("/operations/O-1/resume", nil).want(t, 409)
	h.post("/operations/O-9/pause", nil).want(t, 404)
	h.get("/operations/O-1?result=pending").want(t, 200, `aria-current="page"`, "To go")
	h.get("/operations/O-1?result=twice").want(t, 200, "Perhaps sent twice", "None.")
	h.get("/operations/O-1?result=nonsense&after=!").want(t, 400)
}

// TestAHaltedOperationIsWorkForAPerson: Overview and Triage list it, a plan offers to cancel its
// rest, and what is started then has all letters.
func TestAHaltedOperationIsWorkForAPerson(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.receive("sms", 3, "x")
	h.get("/").want(t, 200, `id="halted" data-live="operation" hidden`)
	h.postJSON("/api/v1/operations", `{"action":"requeue","q":"state:dead","hold":"1h","reason":"r"}`).want(t, 202)
	h.post("/operations/O-1/pause", url.Values{}).to(t, "/operations/O-1")
	for _, page := range []string{"/", "/triage", "/triage?tab=digest"} {
		h.get(page).want(t, 200, ">O-1</a>", "Requeue paused at 09:00.", "3 letters wait for a decision.", `action="/operations/O-1/resume"`, `formaction="/operations/O-1/cancel"`)
	}
	plan := url.Values{"action": {"discard"}, "id": {"G-1"}, "return": {"/triage"}}
	page := h.post("/triage/confirm", plan).want(t, 200, "Discard 0 letters?", "3 letters</b>", " are in ", "paused at 09:00.", `name="take" value="O-1">Cancel its rest and include them</button>`)
	form := url.Values{"take": {"O-1"}}
	for _, name := range []string{"action", "scope", "q", "until", "except", "expect", "key", "return"} {
		_, rest, _ := strings.Cut(page.text, `name="`+name+`" value="`)
		value, _, _ := strings.Cut(rest, `"`)
		form.Set(name, html.UnescapeString(value))
	}
	h.post("/letters/confirm", form).want(t, 200, "Discard 3 letters?", "The rest of ", "is cancelled, and its letters are included.", `<input type="hidden" name="take" value="O-1">`)
	h.post("/operations", form).to(t, "/operations/O-2")
	h.advance()
	h.get("/operations/O-1").want(t, 200, "Cancelled")
	h.get("/letters?q=state:discarded").want(t, 200, "3 match")
	h.get("/").want(t, 200, `id="halted" data-live="operation" hidden`)
	h.postJSON("/api/v1/operations", `{"action":"requeue","q":"state:discarded","take_over":["O-1"]}`).want(t, 409, "its rest cannot be taken over")
}
