package system

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestAPolicyOfTheSiteIsPaged sets a policy for all queues, as sites do. This policy deletes
// letters from dlo's inbox. /readyz, each page, the metric and the pager must report the policy and
// the command that repairs the inbox.
func TestAPolicyOfTheSiteIsPaged(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	limits := map[string]any{
		"pattern":    ".*",
		"apply-to":   "queues",
		"definition": map[string]any{"max-length": 50, "message-ttl": 3600000, "expires": 86400000},
	}
	if err := node.API(http.MethodPut, "/api/policies/"+url.PathEscape(vhost)+"/of-the-site", limits, nil); err != nil {
		t.Fatal(err)
	}
	pager := newReceiver(t)
	p := newChild(t, address, pager.configFor(t, "page"))
	p.env = []string{"DLO_MANAGEMENT_URL=" + node.ManagementURLOf("guest:guest")}
	p.Start("")
	p.Draining()
	eventually(t, "the API shows the policy", func() bool {
		var queue struct {
			Effective map[string]any `json:"effective_policy_definition"`
		}
		err := node.API(http.MethodGet, "/api/queues/"+url.PathEscape(vhost)+"/dlo.letters", nil, &queue)
		return err == nil && queue.Effective["max-length"] != nil
	})
	p.Stop() // after a restart, dlo checks immediately and not only after a minute
	p.Start("")
	eventually(t, "/readyz says it", func() bool {
		return slices.ContainsFunc(p.problems(deadletter.ProblemInboxLoses), func(p deadletter.Problem) bool {
			return p.Severity == deadletter.SeverityPage && p.Inbox == "dlo.letters" &&
				strings.Contains(p.Text, "max-length 50 (policy of-the-site)") &&
				strings.Contains(p.Cure, `rabbitmqctl set_policy -p `)
		})
	})
	if _, page := p.get("/queues"); !strings.Contains(page, "The broker deletes letters from inbox dlo.letters.") ||
		!strings.Contains(page, "rabbitmqctl set_policy") {
		t.Error("the page does not say it")
	}
	if _, metrics := p.get("/metrics"); !strings.Contains(
		metrics, `dlo_problems{broker="main",kind="inbox_loses_letters",severity="page"} 1`,
	) {
		t.Error("the metric does not say it")
	}
	pager.waitForNotice(t, "deletes letters from inbox dlo.letters")
}
