package web_test

import (
	"net/http"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web"
)

// TestNobodyIsCalledLocal checks the name of somebody who uses dlo without sign-in. Pages call this
// person "you", and the audit of the API has the name "local". To people who sign in, pages must
// not say that they did what was done before without sign-in.
func TestNobodyIsCalledLocal(t *testing.T) {
	t.Parallel()
	me := deadletter.Local
	h := open(t, func(o *web.Options) {
		o.Actor = func(*http.Request) (deadletter.Principal, error) { return me, nil }
	})
	h.receive("sms", 1, "x")
	const you = "you (no sign-in)"
	h.patchJSON("/api/v1/groups/G-1", `{"owner":"local","note":"x"}`).want(t, 200)
	h.get("/triage").want(t, 200, you+": x")
	h.patchJSON("/api/v1/groups/G-1", `{"resolve":{}}`).want(t, 200)
	h.get("/").want(t, 200, you).wantNot(t, ">local<")
	h.get("/triage?tab=resolved").want(t, 200, "by "+you, `title="`+you+`"`)
	h.get("/audit").want(t, 200, you).wantNot(t, ">local<")
	h.get("/api/v1/audit").want(t, 200, `"actor":"local"`).wantNot(t, you)
	me.Name = "lena"
	h.get("/audit").want(t, 200, ">local<").wantNot(t, you)
}
