package web_test

import (
	"context"
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// adopted is an Adoption that records the requests for changes.
type adopted struct {
	applied []topology.Plan
	undone  []int64
	left    string
	refuse  error // the error that Apply and Undo return
}

var onePolicy = topology.Adopted{
	ID:     1,
	Broker: "main",
	VHost:  "/",
	Policy: topology.Policy{
		Name:       "dlo-1a2b3c4d",
		Pattern:    "^(sms)$",
		ApplyTo:    "queues",
		Definition: topology.Definition{"dead-letter-exchange": "dlo.dlx"},
	},
	Queues: []string{"sms"},
	At:     start,
	By:     "local",
}

func (a *adopted) Apply(_ context.Context, _ deadletter.Principal, plan topology.Plan) (topology.Applied, error) {
	if a.refuse != nil {
		return topology.Applied{}, a.refuse
	}
	a.applied = append(a.applied, plan)
	out := topology.Applied{Broker: plan.Broker, VHost: plan.VHost}
	for _, p := range plan.Policies {
		out.Policies = append(out.Policies, topology.Proof{Policy: p.Name, Queues: p.Queues, Proved: true})
	}
	return out, nil
}

func (a *adopted) Undo(_ context.Context, _ deadletter.Principal, id int64) (topology.Adopted, error) {
	if a.refuse != nil {
		return topology.Adopted{}, a.refuse
	}
	if id != onePolicy.ID {
		return topology.Adopted{}, fmt.Errorf("%w: there is none", deadletter.ErrNotFound)
	}
	a.undone = append(a.undone, id)
	return onePolicy, nil
}

func (a *adopted) Leave(_ context.Context, _ deadletter.Principal, w topology.Wish) ([]string, error) {
	a.left = w.Broker + " " + w.VHost + " " + w.Queues[0]
	return w.Queues, nil
}

func (a *adopted) Adopted(context.Context) ([]topology.Adopted, error) {
	return []topology.Adopted{onePolicy}, nil
}

// TestTheFixOfAProblemIsApplied uses the page of a problem to apply the plan that fixes it, and
// then undoes a policy of this plan.
func TestTheFixOfAProblemIsApplied(t *testing.T) {
	t.Parallel()
	h := open(t)
	a := &adopted{}
	h.Adoption = a
	missing := topology.Finding{
		Kind: topology.NoExchange, Severity: deadletter.SeverityNotify, Broker: "main", VHost: "/", Queue: "sms",
		Title: "sms has none", Loses: "all", Why: "it is so", Sure: topology.Certain, Cure: "set a policy",
		Plannable: true, Since: start,
	}
	h.Topology = looked{{Broker: "main", VHost: "/", ReadAt: start, Queues: 2, Findings: []topology.Finding{missing}}}
	page := h.get("/queues")
	page.want(
		t, 200, "Set 1 policy for 1 queue", "No policy applies to 1 queue now.",
		"dead-letter-exchange: &#34;dlo.dlx&#34; is added", "Policies set by dlo", "dlo-1a2b3c4d", "Set by you (no sign-in)",
	)
	sum := regexp.MustCompile(`name="plan" value="([0-9a-f]+)"`).FindStringSubmatch(page.text)
	if sum == nil {
		t.Fatal("the page has no form that applies the fix")
	}
	h.post("/queues/adopt", url.Values{"plan": {sum[1]}}).redirectsTo(t, "/queues#policies")
	if len(a.applied) != 1 || len(a.applied[0].Policies) != 1 || a.applied[0].Policies[0].Queues[0] != "sms" {
		t.Errorf("applied: %+v", a.applied)
	}
	h.post("/queues/adopt", url.Values{"plan": {"0000000000000000"}}).want(
		t, 409, "Nothing was changed: the problem or its fix has changed since the page was shown; look at it again.",
	)
	a.refuse = fmt.Errorf("%w: user x of the management API may not set policies", deadletter.ErrForbidden)
	h.post("/queues/adopt", url.Values{"plan": {sum[1]}}).want(
		t, 403, "Nothing was changed: user x of the management API may not set policies.",
	)
	a.refuse = nil
	h.post("/queues/undo", url.Values{"id": {"1"}}).redirectsTo(t, "/queues#policies")
	h.post("/queues/leave", url.Values{
		"place": {"broker=main&vhost=%2F&queues=sms"},
	}).redirectsTo(t, "/queues#policies")
	h.post("/queues/leave", nil).want(t, 400)
	if a.left != "main / sms" {
		t.Errorf("left: %q", a.left)
	}
	h.post("/queues/undo", url.Values{"id": {"2"}}).want(t, 404)
	h.post("/queues/undo", url.Values{"id": {"x"}}).want(t, 404)
	if len(a.undone) != 1 {
		t.Errorf("undone: %v", a.undone)
	}
	a.applied = nil
	h.Topology = looked{site()}
	form := regexp.MustCompile(
		`name="plan" value="([0-9a-f]+)"/?>\s*<input type="hidden" name="place" value="([^"]+)"`,
	).FindStringSubmatch(h.get(queuePage("main", "/", "sms")).want(t, 200, "Set 1 policy for 1 queue").text)
	if form == nil {
		t.Fatal("the page of a queue has no form that applies the fix for this queue")
	}
	one := url.Values{"plan": {form[1]}, "place": {html.UnescapeString(form[2])}}
	h.post("/queues/adopt", one).redirectsTo(t, "/queues#policies")
	if len(a.applied) != 1 || !slices.Equal(a.applied[0].Queues(), []string{"sms"}) {
		t.Errorf("applied for one of two queues with the same fault: %+v", a.applied)
	}
	one.Set("place", queueNamed("main", "/", "mail"))
	h.post("/queues/adopt", one).want(t, 409)
}
