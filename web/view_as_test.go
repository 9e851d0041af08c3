package web_test

import (
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestViewAs checks the cookie of the function "View as". With it, an admin must see the pages as
// others see them. Nobody may gain a right with such a cookie.
func TestViewAs(t *testing.T) {
	t.Parallel()
	h := twoTeams(t)
	h.who = deadletter.Principal{Name: "root", Grants: deadletter.Local.Grants}
	h.get("/account").want(t, 200, "View as", `name="queues"`)
	h.post("/view-as", url.Values{"role": {"root"}}).want(t, 400, "there is no role")
	a := h.post("/view-as", url.Values{"role": {"reader"}, "queues": {"a.* other"}}).want(t, 303)
	cookie := a.Cookies()[0]
	as := func(method, path string) answer {
		r := httptest.NewRequest(method, path, nil)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.AddCookie(cookie)
		return h.do(r)
	}
	for _, path := range []string{"/", "/triage", "/letters?q=", "/queues", "/operations"} {
		page := as("GET", path).want(t, 200, "You view dlo as reader, queues a.* other.", "/view-as/stop")
		h.clean("GET "+path+" as a team", "", page)
	}
	if page := as("GET", "/letters?q="); strings.Contains(page.text, `value="discard"`) {
		t.Error("a reader's list offers to discard")
	}
	if page := h.get("/letters?q="); !strings.Contains(page.text, `value="discard"`) {
		t.Error("an admin's list does not offer to discard")
	}
	as("GET", "/letters/"+string(h.b[0])).want(t, 404)
	as("GET", "/rules").want(t, 403)
	as("POST", "/triage").want(t, 403)
	h.get("/letters/"+string(h.b[0])).want(t, 200)            // this request comes from another browser
	as("GET", "/api/v1/letters/"+string(h.b[0])).want(t, 200) // this request comes from a script
	if stopped := as("POST", "/view-as/stop").want(t, 303); stopped.Cookies()[0].MaxAge >= 0 {
		t.Error("the cookie stays")
	}

	// An admin has chosen "View as", and has a cookie for it. Here a person who may see less uses
	// this cookie.
	whole := h.post("/view-as", url.Values{"role": {"admin"}}).want(t, 303)
	cookie = whole.Cookies()[0]
	h.who = teamA(deadletter.RoleViewer)
	as("GET", "/letters/"+string(h.b[0])).want(t, 404)
	as("POST", "/view-as").want(t, 403)
	if page := as("GET", "/account").want(t, 200); strings.Contains(page.text, "View as") {
		t.Error("a viewer is offered to view as somebody else")
	}
}
