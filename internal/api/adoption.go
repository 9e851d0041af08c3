package api

import (
	"encoding/json"
	"time"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// ApplyPlanRequest is the body of POST /topology/apply. It contains a plan that POST /topology/plan
// returned.
type ApplyPlanRequest struct {
	Plan TopologyPlan `json:"plan"`
}

// Topology converts the plan to the form that dlo applies. It returns an error if the definition of
// a policy is not a JSON object.
func (p TopologyPlan) Topology() (topology.Plan, error) {
	plan := topology.Plan{Broker: p.Broker, VHost: p.VHost, AtLeastOnce: p.AtLeastOnce}
	for _, one := range p.Policies {
		planned := topology.Planned{
			Policy: topology.Policy{Name: one.Name, Pattern: one.Pattern, ApplyTo: one.ApplyTo, Priority: one.Priority},
			Queues: one.Queues, Type: one.Type, Hides: one.Hides,
		}
		if err := json.Unmarshal(one.Definition, &planned.Definition); err != nil {
			return plan, err
		}
		for _, c := range one.Changes {
			planned.Changes = append(planned.Changes, topology.KeyChange(c))
		}
		plan.Policies = append(plan.Policies, planned)
	}
	return plan, nil
}

// AppliedPlan is the response to POST /topology/apply.
type AppliedPlan struct {
	Broker   string  `json:"broker"`
	VHost    string  `json:"vhost"`
	Policies []Proof `json:"policies"`
}

// Proof is a policy that was set. It says whether a test message proved that the policy works.
type Proof struct {
	Policy string   `json:"policy"`
	Queues []string `json:"queues"`
	Proved bool     `json:"proved"`
	Why    string   `json:"why"` // why the policy could not be proved; "" if it was
}

// NewAppliedPlan returns the response for an applied plan.
func NewAppliedPlan(a topology.Applied) AppliedPlan {
	out := AppliedPlan{Broker: a.Broker, VHost: a.VHost, Policies: []Proof{}}
	for _, p := range a.Policies {
		out.Policies = append(out.Policies, Proof(p))
	}
	return out
}

// UndoRequest is the body of POST /topology/undo.
type UndoRequest struct {
	ID int64 `json:"id"` // id of the policy in GET /topology/adopted
}

// AdoptedPolicies is the response to GET /topology/adopted.
type AdoptedPolicies struct {
	Policies []AdoptedPolicy `json:"policies"`
}

// AdoptedPolicy is a policy that dlo applied and that has not been undone.
type AdoptedPolicy struct {
	ID         int64           `json:"id"`
	Broker     string          `json:"broker"`
	VHost      string          `json:"vhost"`
	Name       string          `json:"name"`
	Pattern    string          `json:"pattern"`
	ApplyTo    string          `json:"apply_to"`
	Priority   int             `json:"priority"`
	Definition json.RawMessage `json:"definition"`
	Queues     []string        `json:"queues"`
	At         time.Time       `json:"at"`
	By         string          `json:"by"`
}

// NewAdoptedPolicies returns the response for a list of adopted policies.
func NewAdoptedPolicies(list []topology.Adopted) AdoptedPolicies {
	out := AdoptedPolicies{Policies: []AdoptedPolicy{}}
	for _, a := range list {
		out.Policies = append(out.Policies, NewAdoptedPolicy(a))
	}
	return out
}

// NewAdoptedPolicy returns one adopted policy in the JSON form of the API.
func NewAdoptedPolicy(a topology.Adopted) AdoptedPolicy {
	return AdoptedPolicy{
		ID:         a.ID,
		Broker:     a.Broker,
		VHost:      a.VHost,
		Name:       a.Name,
		Pattern:    a.Pattern,
		ApplyTo:    a.ApplyTo,
		Priority:   a.Priority,
		Definition: a.Definition.JSON(),
		Queues:     a.Queues,
		At:         a.At,
		By:         a.By,
	}
}

// LeaveRequest is the body of POST /topology/leave.
type LeaveRequest struct {
	Broker string   `json:"broker,omitzero"` // "" = all brokers
	VHost  string   `json:"vhost,omitzero"`  // "" = all vhosts
	Queues []string `json:"queues"`          // names or globs
}

// Left is the response to POST /topology/leave.
type Left struct {
	Queues []string `json:"queues"`
}
