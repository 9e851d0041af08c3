package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web"
)

// TestAReadOnlyBroker checks that nobody can change anything at a read-only broker, not even an
// admin. Other brokers must not be affected.
func TestAReadOnlyBroker(t *testing.T) {
	t.Parallel()
	frozen := []string{"main"}
	h := open(t, withRetries, withTypes, func(o *web.Options) {
		o.Actor = func(*http.Request) (deadletter.Principal, error) {
			p := deadletter.Local
			p.Frozen = frozen
			return p, nil
		}
	})
	id := string(h.receive("sms", 3, "x")[0])
	h.get("/letters/"+id).want(t, 200)
	h.postJSON("/api/v1/letters/"+id+"/reveal", `{"field":"x"}`).want(t, 400, "is masked") // a reveal is allowed
	const because = "at broker main, because read_only is set for it"
	for _, action := range []string{"requeue", "discard", "hold", "purge"} {
		h.postJSON("/api/v1/operations", `{"action":"`+action+`","ids":["`+id+`"]}`).want(t, 403, because)
		h.postJSON("/api/v1/operations", `{"action":"`+action+`","q":""}`).want(t, 403, because)
	}
	h.patchJSON("/api/v1/groups/G-1", `{"note":"x"}`).want(t, 403, because)
	h.postJSON("/api/v1/groups/G-1/pause", `{}`).want(t, 403, because)
	h.postJSON("/api/v1/queues/pause", `{"broker":"main","vhost":"/","queue":"sms"}`).want(t, 403, because)
	h.postJSON("/api/v1/overrides", `{"broker":"main","vhost":"/","queue":"sms","to":"x"}`).want(t, 403, because)
	h.postJSON("/api/v1/letters/"+id+"/revisions", `{"body":"eA=="}`).want(t, 403, because)
	h.postJSON("/api/v1/views", `{"name":"v","query":""}`).want(t, 201) // a view is not about a broker
	h.postJSON("/api/v1/letters/"+id+"/type", `{"type":"acme.notify.v1.SmsRequested"}`).want(t, 403, because)
	frozen = []string{"second"}
	h.postJSON("/api/v1/operations", `{"action":"hold","ids":["`+id+`"]}`).want(t, 202)
}

// TestReadOnly checks every route of the router. If dlo is read-only, even an admin must not be
// able to change anything but their own sign-in and the look of their pages.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	h := open(t, withRetries, withLibrary, withUsers, func(o *web.Options) {
		o.Actor = func(*http.Request) (deadletter.Principal, error) {
			p := deadletter.Local
			p.Fixed = "read_only is set"
			return p, nil
		}
	})
	id := string(h.receive("sms", 1, "x")[0])
	own := map[string]bool{
		"POST /signin": true, "POST /signout": true, "POST /welcome": true, "POST /signin/again": true,
		"POST /account/password": true, "POST /account/sessions/{id}/end": true,
		"POST /theme": true, "POST /view-as/stop": true,
		// these only show something, or copy it
		"POST /api/v1/backup":       true,
		"POST /letters/{id}/reveal": true, "POST /api/v1/letters/{id}/reveal": true, "POST /api/v1/rules/test": true,
		"POST /rules/try": true, "POST /api/v1/types/match": true, "POST /api/v1/topology/plan": true,
		"POST /settings": true, // without a digest; TestWhoMaySaveSettings saves
	}
	refused := 0
	if err := chi.Walk(
		h.Routes(), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
			if method == http.MethodGet || method == http.MethodHead || own[method+" "+route] ||
				strings.HasPrefix(route, "/static/") {
				return nil
			}
			r := httptest.NewRequestWithContext(
				context.Background(), method,
				"https://dlo.example"+strings.NewReplacer("{id}", id, "{set}", "shop", "{name}", "main").Replace(route),
				strings.NewReader("{}"),
			)
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			r.Header.Set("Content-Type", "application/json")
			if answer := h.do(r); answer.StatusCode != 403 ||
				!strings.Contains(answer.text, "because read_only is set") {
				t.Errorf("%s %s: %d %s", method, route, answer.StatusCode, answer.text)
			}
			refused++
			return nil
		},
	); err != nil {
		t.Fatal(err)
	}
	if refused < 60 {
		t.Errorf("only %d routes are refused", refused)
	}
}
