package system

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// adopting is a vhost with queues whose rejected messages are lost.
type adopting struct {
	t     *testing.T
	node  *testenv.Node
	vhost string
	ch    *amqp.Channel
}

// adoptable declares two queues without a dead-letter exchange: a classic queue, and a quorum queue
// to which a policy already applies.
func adoptable(t *testing.T, node *testenv.Node, vhost, address string) *adopting {
	t.Helper()
	a := &adopting{t: t, node: node, vhost: vhost}
	a.api(http.MethodPut, "queues", "orders", map[string]any{"durable": true})
	a.api(http.MethodPut, "queues", "jobs", map[string]any{
		"durable":   true,
		"arguments": map[string]any{"x-queue-type": "quorum"},
	})
	a.api(http.MethodPut, "policies", "limits", map[string]any{
		"pattern":    "^jobs",
		"definition": map[string]any{"max-length": 1000},
		"priority":   3,
		"apply-to":   "queues",
	})
	conn, err := amqp.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if a.ch, err = conn.Channel(); err != nil {
		t.Fatal(err)
	}
	return a
}

// api sends a request to the management API for an object of the vhost.
func (a *adopting) api(method, kind, name string, body any) {
	a.t.Helper()
	if err := a.node.API(method, "/api/"+kind+"/"+url.PathEscape(a.vhost)+"/"+name, body, nil); err != nil {
		a.t.Fatal(err)
	}
}

// state returns the policies and the queues of the vhost. It leaves out the queues that dlo keeps.
func (a *adopting) state() string {
	a.t.Helper()
	var all struct {
		Policies []json.RawMessage
		Queues   []struct{ Name string }
	}
	if err := a.node.API(http.MethodGet, "/api/definitions/"+url.PathEscape(a.vhost), nil, &all); err != nil {
		a.t.Fatal(err)
	}
	var list []string
	for _, p := range all.Policies {
		list = append(list, string(p))
	}
	for _, q := range all.Queues {
		if !strings.HasPrefix(q.Name, "dlo.") || strings.HasPrefix(q.Name, "dlo.probe.") {
			list = append(list, "queue "+q.Name)
		}
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// reject publishes a message to a queue and rejects it.
func (a *adopting) reject(queue string) {
	a.t.Helper()
	if err := a.ch.PublishWithContext(
		a.t.Context(), "", queue, false, false, amqp.Publishing{Body: []byte("x")},
	); err != nil {
		a.t.Fatal(err)
	}
	eventually(a.t, "the message is in queue "+queue, func() bool {
		d, ok, err := a.ch.Get(queue, false)
		if err == nil && ok {
			err = d.Reject(false)
		}
		if err != nil {
			a.t.Fatal(err)
		}
		return ok
	})
}

// TestAPlanIsAppliedProvedAndUndone applies the plan for two queues. dlo proves each policy with a
// message of its own, which people never see as a letter. After that, rejected messages arrive as
// letters. Then one queue leaves its policy, and the policy of the other queue is undone. After
// both, the vhost is as it was before.
func TestAPlanIsAppliedProvedAndUndone(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	a := adoptable(t, node, vhost, address)
	before := a.state()
	p := serve(
		t, address,
		fmt.Sprintf(
			"default: {retry: {delays: []}}\nbrokers: [{url: %q, management: %q}]\n", address,
			node.ManagementURLOf("guest:guest"),
		),
		nil,
	).child
	eventually(t, "the server has looked", func() bool {
		_, body := p.get("/api/v1/topology/findings")
		return strings.Count(body, `"kind":"no_exchange"`) == 2
	})
	out, _ := p.dlo(t.Context(), 0, "", "topology", "apply", "--yes")
	if strings.Count(out, "; proved with a message\n") != 2 || strings.Contains(out, "nothing was changed") {
		t.Errorf("apply:\n%s", out)
	}
	a.reject("orders")
	a.reject("jobs")
	eventually(t, "both letters are dead", func() bool { return p.letters("dead") == 2 })
	if groups, probes := p.count("groups", "true"), p.letters("discarded"); groups != 2 || probes != 2 {
		t.Errorf("%d groups, %d letters of probes", groups, probes)
	}
	if state := a.state(); strings.Contains(state, "queue dlo.probe.") {
		t.Errorf("a probe queue is left:\n%s", state)
	}

	// Somebody else changes the policy that dlo's policy hides. The change has no effect until the
	// queue has left dlo and come back.
	limits := func(maxLength int) {
		a.api(http.MethodPut, "policies", "limits", map[string]any{
			"pattern":    "^jobs",
			"definition": map[string]any{"max-length": maxLength},
			"priority":   3,
			"apply-to":   "queues",
		})
	}
	limits(7)
	hidden := "policy limits applied to the queue, and dlo repeated the keys. Now policy limits would apply without it. The difference: max-length: 1000 becomes 7."
	eventually(t, "the change without effect is found", func() bool {
		_, body := p.get("/api/v1/topology/findings")
		return strings.Contains(body, hidden)
	})
	p.dlo(t.Context(), 0, "", "topology", "leave", "jobs", "--yes")
	p.dlo(t.Context(), 0, "", "topology", "apply", "jobs", "--yes")
	eventually(t, "the change has its effect", func() bool {
		_, body := p.get("/api/v1/topology/findings")
		return !strings.Contains(body, hidden)
	})

	// Somebody else changes a policy. The undo must not touch that policy.
	list, _ := p.dlo(t.Context(), 0, "", "topology", "undo", "-o", "json")
	var adopted struct {
		Policies []struct {
			Name, Pattern string
			Queues        []string
			Definition    map[string]any
			Priority      int
			ApplyTo       string `json:"apply-to"`
		}
	}
	if err := json.Unmarshal([]byte(list), &adopted); err != nil || len(adopted.Policies) != 2 {
		t.Fatalf("%v\n%s", err, list)
	}
	for _, one := range adopted.Policies {
		if !slices.Equal(one.Queues, []string{"jobs"}) {
			continue
		}
		policy := map[string]any{
			"pattern": one.Pattern, "definition": one.Definition, "priority": one.Priority + 5, "apply-to": one.ApplyTo,
		}
		a.api(http.MethodPut, "policies", one.Name, policy)
		_, errs := p.dlo(t.Context(), 1, "", "topology", "undo", "jobs", "--yes")
		if !strings.Contains(errs, fmt.Sprintf("priority %d", one.Priority)) ||
			!strings.Contains(errs, fmt.Sprintf("priority %d", one.Priority+5)) {
			t.Errorf("undo of a changed policy: %s", errs)
		}
		eventually(t, "the change is found", func() bool {
			_, body := p.get("/api/v1/topology/findings")
			return strings.Contains(body, "Policy "+one.Name+", which dlo has set, was changed by somebody else")
		})
		policy["priority"] = one.Priority
		a.api(http.MethodPut, "policies", one.Name, policy)
	}
	if out, errs := p.dlo(
		t.Context(), 0, "", "topology", "leave", "ord*", "--yes",
	); out != "left: orders\n" || !strings.Contains(errs, "retries of these queues are paused") {
		t.Errorf("leave: %q, %q", out, errs)
	}
	a.reject("jobs")
	eventually(t, "the other queue keeps its policy", func() bool { return p.letters("dead") == 3 })
	p.dlo(t.Context(), 0, "", "topology", "undo", "jobs", "--yes")
	limits(1000)
	if after := a.state(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if n := p.count("declared", "kind = 'policy'"); n != 0 {
		t.Errorf("%d policies are recorded still", n)
	}
}

// plan returns the body of a request that applies a plan for the given queues. It waits until the
// server has a plan that sets a policy. Before that, the server may not have looked at the broker,
// or may have looked before dlo's exchange existed.
func (p *child) plan(queues ...string) json.RawMessage {
	p.t.Helper()
	var plans struct{ Plans []json.RawMessage }
	eventually(p.t, "the server has looked", func() bool {
		_, body := p.get("/api/v1/topology/findings")
		return strings.Contains(body, `"read_at":"`)
	})
	eventually(p.t, "a plan of the present vhost", func() bool {
		status, text := p.post("/api/v1/topology/plan", map[string]any{"queues": queues})
		return status == http.StatusOK && strings.Contains(text, `"name":"dlo-`) &&
			json.Unmarshal([]byte(text), &plans) == nil
	})
	body, err := json.Marshal(map[string]any{"plan": plans.Plans[0]})
	if err != nil {
		p.t.Fatal(err)
	}
	return body
}

// TestApplyUnderKills kills dlo at every step of applying a plan, and starts it again. The new
// process must remove the policies and the temporary queues.
func TestApplyUnderKills(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	a := adoptable(t, node, vhost, address)
	before := a.state()
	p := newChild(
		t, address,
		fmt.Sprintf(
			"default: {retry: {delays: []}}\nbrokers: [{url: %q, management: %q}]\n", address,
			node.ManagementURLOf("guest:guest"),
		),
	)
	points := []string{
		"adopt: recorded=1", "adopt: set=1", "adopt: set=2", "adopt: verified=1", "classify: decided=1",
		"classify: recorded=1", "probe: declared=1", "probe: published=1", "probe: rejected=1", "adopt: proved=1",
		"adopt: proved=2",
	}
	for _, point := range points {
		p.Start(point)
		p.Draining()
		p.tryPost("/api/v1/topology/apply", p.plan("orders", "jobs"))
		p.Crashed("the crash at " + point)
		p.Start("")
		p.Draining()
		eventually(t, "everything is taken back after "+point, func() bool {
			return p.count("declared", "kind = 'policy'") == 0 && a.state() == before
		})
		p.Kill9()
	}
	p.Start("")
	p.Draining()
	if status, body := p.post(
		"/api/v1/topology/apply", p.plan("orders", "jobs"),
	); status != http.StatusOK || strings.Count(body, `"proved":true`) != 2 {
		t.Fatalf("%d %s", status, body)
	}
	applied := a.state()
	p.Kill9()
	p.Start("adopt: deleted=1") // the next kill happens during the undo
	p.tryPost("/api/v1/topology/undo", map[string]any{
		"id": p.ask(`SELECT min(id) FROM declared WHERE kind = 'policy'`),
	})
	p.Crashed("the crash while a policy is undone")
	p.Start("")
	if a.state() == applied || p.count("declared", "kind = 'policy'") != 2 {
		t.Errorf("the crash did not come between the broker and the store")
	}
	p.dlo(t.Context(), 0, "", "topology", "undo", "orders", "jobs", "--yes")
	if after := a.state(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if n := p.letters("dead") + p.letters("held") + p.letters("scheduled") + p.count("groups", "true"); n != 0 {
		t.Errorf("%d letters of probes are shown to people", n)
	}
}
