package web_test

import (
	"net/http"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web"
)

// TestAReadOnlyBroker checks that even an admin cannot change anything at a read-only broker, and
// that other brokers are not affected.
func TestAReadOnlyBroker(t *testing.T) {
	t.Parallel()
	frozen := []string{"main"}
	h := open(t, ruled, func(o *web.Options) {
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
	h.postJSON("/api/v1/views", `{"name":"v","query":""}`).want(t, 201) // a view concerns no broker
	frozen = []string{"second"}
	h.postJSON("/api/v1/operations", `{"action":"hold","ids":["`+id+`"]}`).want(t, 202)
}
