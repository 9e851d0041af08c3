package web_test

import (
	"net/url"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TestPickThatRevealsIsAReveal picks types of letters with something masked, which may become
// visible. Such a pick must count as a reveal: it needs the right to reveal, and the audit records
// the reveal with the pick.
func TestPickThatRevealsIsAReveal(t *testing.T) {
	t.Parallel()
	h, letters, _ := maskedHouse(t)
	field := "/api/v1/letters/" + letters["field"]
	const none = `{"entries":[],"next":""}`

	h.postJSON("/api/v1/letters/"+letters["header"]+"/type", `{"type":"shop.Order"}`).want(t, 201)
	h.get("/api/v1/audit?kind=revealed").want(t, 200, none) // nothing in the body is masked
	h.postJSON(field+"/type", `{"type":"shop.Plain"}`).want(t, 201)
	h.get(field).want(
		t, 200,
		`"kind":"revealed","actor":"local","detail":"masked values may become visible: this letter is read as shop.Plain"`,
	)
	h.get("/api/v1/audit?kind=revealed").want(
		t, 200, `{"kind":"letter","name":"`+letters["field"]+`"}`, "read as shop.Plain",
	)

	h.post("/letters/"+letters["redacted"]+"/type", url.Values{"type": {"shop.Plain"}, "for": {"letter"}}).want(t, 303)
	h.get("/api/v1/letters/"+letters["redacted"]).want(t, 200, `"kind":"revealed"`)

	h.postJSON("/api/v1/bindings", `{"queue":"orders","type":"shop.Plain"}`).want(t, 201)
	h.get("/api/v1/audit?kind=revealed").want(
		t, 200, "masked values may become visible: letters of orders are read as shop.Plain",
	)

	ann, letters, _ := maskedHouse(t, deadletter.Principal{
		Name:   "ann",
		Grants: []deadletter.Grant{{Role: deadletter.RoleAdmin, Places: deadletter.Places{Queues: []string{"other"}}}},
	})
	ann.postJSON("/api/v1/letters/"+letters["field"]+"/type", `{"type":"shop.Plain"}`).want(t, 403)
	ann.postJSON("/api/v1/bindings", `{"queue":"orders","type":"shop.Plain"}`).want(t, 403)
	ann.get("/api/v1/audit?kind=revealed").want(t, 200, none)

	// The binding of a type to a queue name applies in every vhost, so the right to reveal in one
	// vhost is not enough to make a binding.
	some := deadletter.Grant{
		Role:   deadletter.RoleReader,
		Reveal: true,
		Places: deadletter.Places{VHosts: []string{"/"}},
	}
	bob, letters, _ := maskedHouse(t, deadletter.Principal{
		Name:   "bob",
		Grants: []deadletter.Grant{{Role: deadletter.RoleEditor}, some},
	})
	bob.postJSON(
		"/api/v1/letters/"+letters["field"]+"/type", `{"type":"shop.Plain","for":"binding"}`,
	).want(t, 403, "needs the right to reveal")
	bob.postJSON("/api/v1/letters/"+letters["field"]+"/type", `{"type":"shop.Plain"}`).want(t, 201)
}
