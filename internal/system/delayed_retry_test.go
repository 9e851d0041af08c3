package system

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestDelayedRetryOfAnInbox kills dlo, again and again, on an inbox whose policy holds back what a
// lost connection gives back. Each letter must have one row and one token, and nothing may be
// merged. Of letters that nothing tells apart, dlo may hold some.
//
// From 4.3 on, RabbitMQ has this setting.
func TestDelayedRetryOfAnInbox(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	if !node.AtLeast("4.3") {
		t.Skip("quorum queues of 3.x and 4.0 have no delayed retry")
	}
	for _, c := range []struct {
		policies, kind string
		ms             int
		identical      bool
	}{
		{"policies", "failed", 1000, false}, {"operator-policies", "all", 1000, false}, {"policies", "all", 1000, true}, {"policies", "returned", 1000, false}, {"policies", "failed", 60_000, false},
	} {
		t.Run(fmt.Sprintf("%s %s %d ms identical=%v", c.policies, c.kind, c.ms, c.identical), func(t *testing.T) {
			t.Parallel()
			crashes := 20
			switch {
			case c.ms > 10_000:
				testenv.Soak(t) // each crash takes more than a minute
				crashes = 3
			case soak():
				crashes = 200
			}
			vhost, address := node.VHost(t)
			body := map[string]any{"pattern": `^dlo\.letters$`, "apply-to": "queues", "definition": map[string]any{"delayed-retry-type": c.kind, "delayed-retry-min": c.ms}}
			if err := node.API(http.MethodPut, "/api/"+c.policies+"/"+url.PathEscape(vhost)+"/retries", body, nil); err != nil {
				t.Fatal(err)
			}
			a := newAudit(t, address, "work", nil)
			p := newChild(t, address, fast)
			p.env = []string{"DLO_MANAGEMENT_URL=" + node.ManagementURLOf("guest:guest")}
			p.Start("")
			p.Draining()
			eventually(t, "the problem is told", func() bool {
				_, body := p.get("/readyz")
				told := strings.Contains(body, `"delayed_retry"`) && strings.Contains(body, "retries")
				return told || c.kind == "returned"
			})
			a.work()
			const each = 100
			published := 0
			for n := range crashes {
				p.Kill9()
				a.publish(each, func(i int) (string, string) {
					if published++; c.identical {
						return fmt.Sprintf("one of three bodies: %d", published%3), ""
					}
					return fmt.Sprintf("letter %d", published), fmt.Sprint(published)
				})
				p.Start(points[n%5] + "=1")
				p.Crashed("the crash")
				p.Start("")
			}
			eventually(t, "all letters at their end", func() bool { return p.letters() >= published && p.letters("settled")+p.letters("held") == p.letters() })
			surplus, _ := a.checkStore(p)
			held := p.letters("held")
			if surplus != 0 && (!c.identical || surplus > held) || held != 0 && !c.identical {
				t.Errorf("%d letters, %d rows more, %d held", published, surplus, held)
			}
			if !c.identical {
				a.checkAll(p)
			}
			t.Logf("%d crashes, %d letters, %d rows more, %d held", crashes, published, surplus, held)
		})
	}
}
