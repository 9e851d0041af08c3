package web_test

import (
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web"
)

// TestPagesSayThatDloOnlyObserves checks the note that dlo only observes some queues. The note must
// be on Overview and on Triage. If a person may see only some queues, the note must not disclose
// the names of other queues.
func TestPagesSayThatDloOnlyObserves(t *testing.T) {
	t.Parallel()
	who := deadletter.Local
	h := open(t, knownAs(&who), func(o *web.Options) { o.Observing = "secret.* of broker main" })
	h.receive("orders", 1, "x")
	for _, path := range []string{"/", "/triage"} {
		who = deadletter.Local
		h.get(path).want(t, 200, "dlo only observes secret.* of broker main")
		who = deadletter.Principal{
			Name: "b",
			Grants: []deadletter.Grant{
				{Role: deadletter.RoleViewer, Places: deadletter.Places{Queues: []string{"orders"}}},
			},
		}
		if page := h.get(path).want(t, 200, "dlo only observes some queues"); strings.Contains(page.text, "secret") {
			t.Errorf("%s names queues that the person may not see", path)
		}
	}
}
