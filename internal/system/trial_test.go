package system

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestTheThreeSteps checks the three steps that a person with an empty store sees. First, the
// broker is connected. Second, the policy is ready to be copied. Third, the person watches dlo's
// own test letter on its path. The test letter must be decoded without a schema, must not count as
// a failure, and must leave nothing in the broker. The test runs on a wide screen, on a phone, and
// without scripts.
func TestTheThreeSteps(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		script, phone bool
	}{{"a desk", true, false}, {"a phone", true, true}, {"without JavaScript", false, false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			node := testenv.Broker(t)
			vhost, address := node.VHost(t)
			p := newChild(
				t, address,
				"requeue: {watch: 1h}\nrules: [{name: all, match: {queue: \"*\"}, retry: {delays: []}, dead: {severity: page}}]\n",
			)
			p.env = []string{"DLO_MANAGEMENT_URL=" + node.ManagementURLOf("guest:guest")}
			p.Start("")
			p.Draining()
			tab := testenv.Browser(t)
			tab.JavaScript(c.script)
			if c.phone {
				tab.Viewport(390, 844)
			}
			r := &reader{t: t, tab: tab, script: c.script, phone: c.phone, checked: map[string]bool{}}
			tab.Open(p.url + "/")
			r.waitForTexts(
				"Three steps to the first letter", "Connect the broker: done: RabbitMQ "+node.Version(),
				fmt.Sprintf(`rabbitmqctl set_policy -p %s --priority 10 --apply-to queues dlo`, vhost),
				`{"dead-letter-exchange":"dlo.dlx"}`, "Try it",
			)
			r.checkPage("the three steps")
			r.press(`#trial button`)
			eventually(t, "it went the whole way", func() bool { // without scripts, the page reloads itself
				return r.isTrue(`document.querySelector('#trial')?.innerText.includes('It went the whole way.')`)
			})
			r.waitForTexts(
				"Arrived", "Decoded", "dlo.v1.Trial text: \"Hello from Dead Letter Office.", "Requeued",
				"by its rule, to the tail of dlo.try", "Quiet", "its consumer accepted it after", "Try it again",
			)
			r.checkPage("after the trial")
			r.press(`#trial a[href^="/letters/"]`)
			r.waitForTexts("dlo made this letter for a trial.", "Trial", "Quiet", "started_by", `"local"`)
			r.checkPage("the letter of a trial")

			var trial api.Trial
			p.json("/api/v1/trial", &trial)
			if trial.State != deadletter.TrialDone || trial.ArrivedAt.Before(trial.StartedAt.Add(-time.Second)) ||
				trial.RequeuedAt.Before(trial.ArrivedAt) || trial.QuietAt.Before(trial.RequeuedAt) ||
				trial.AcceptedAt.IsZero() {
				t.Errorf("%+v", trial)
			}
			p.leavesNothing(node, vhost)
		})
	}
}

// json requests a path of the API and decodes the response.
func (p *child) json(path string, into any) {
	p.t.Helper()
	code, body := p.get(path)
	if code != http.StatusOK {
		p.t.Fatalf("%s: %d %s", path, code, body)
	}
	if err := api.Unmarshal([]byte(body), into); err != nil {
		p.t.Fatal(err)
	}
}

// leavesNothing checks that a trial left no queue, no group, no notice, and nothing that needs a
// person. The Overview page must still show the steps to the first letter.
func (p *child) leavesNothing(node *testenv.Node, vhost string) {
	p.t.Helper()
	eventually(p.t, "the queue of the trial is gone", func() bool {
		return node.API(http.MethodGet, "/api/queues/"+url.PathEscape(vhost)+"/dlo.try", nil, nil) != nil
	})
	for what, query := range map[string]string{
		"groups": `SELECT count(*) FROM groups`, "notices": `SELECT count(*) FROM notices WHERE kind <> 'digest'`,
		"letters with a group": `SELECT count(*) FROM letters WHERE grp > 0`,
	} {
		if n := p.ask(query); n != 0 {
			p.t.Errorf("%d %s: %v", n, what, p.texts(`SELECT kind || ' ' || key || ': ' || text FROM notices`))
		}
	}
	var digest deadletter.Digest
	p.json("/api/v1/digest", &digest)
	if digest.Recovered != 0 || len(digest.Lines) != 0 {
		p.t.Errorf("the digest has it: %+v", digest)
	}
	if _, page := p.get("/"); !strings.Contains(page, "Three steps to the first letter") ||
		strings.Contains(page, "is failing") {
		p.t.Error("Overview takes it for a letter of somebody")
	}
	if _, metrics := p.get("/metrics"); strings.Contains(metrics, `queue="dlo.try",reason=`) ||
		strings.Contains(metrics, `dlo_dead_total{queue="dlo.try"`) {
		p.t.Error("the metrics count it as a death")
	}
	if _, page := p.get("/letters?q=queue:dlo.try"); !strings.Contains(page, `<span class="pill accent">Trial</span>`) {
		p.t.Error("the list does not mark it")
	}
}

// TestATrialOnTheCommandLine checks that `dlo try` prints the progress of the trial. If the broker
// refuses the trial, `dlo try` must print the remedy.
func TestATrialOnTheCommandLine(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, _ := node.VHost(t)
	user, address := node.User(t, vhost, "")
	node.Grant(t, vhost, user, `.*`, `.*`, `.*`)
	p := newChild(t, "amqp://127.0.0.1/", "")
	p.env = []string{"DLO_AMQP_URL=" + address}
	p.Start("")
	p.Draining()
	out, _ := p.dlo(t.Context(), 0, "", "try")
	for _, step := range []string{"rejected", "arrived", "decoded", "dlo.v1.Trial", "requeued", "quiet"} {
		_, rest, ok := strings.Cut(out, step)
		if !ok {
			t.Errorf("%q is missing, or not in its turn", step)
		}
		out = rest
	}
	node.Grant(t, vhost, user, `^dlo\.(epoch|letters|annotations|dlx)`, `.*`, `.*`)
	_, errs := p.dlo(t.Context(), 1, "", "try")
	if !strings.Contains(errs, "user "+user+" lacks a permission that a trial needs (ACCESS_REFUSED") ||
		!strings.Contains(errs, "rabbitmqctl set_permissions") {
		t.Error(errs)
	}
	if _, page := p.get("/"); !strings.Contains(page, "It did not get all the way") ||
		!strings.Contains(page, "rabbitmqctl set_permissions") {
		t.Error("the page does not say it")
	}
	_, cure, _ := strings.Cut(errs, "\n")
	node.Cure(t, strings.TrimSpace(cure))
	p.dlo(t.Context(), 0, "", "try", "-o", "json")
	p.dlo(t.Context(), 1, "", "try", "--broker", "other")
	if n := p.ask(`SELECT count(*) FROM trials WHERE kept = 1`); n != 2 {
		t.Errorf("%d letters of trials", n)
	}
}
