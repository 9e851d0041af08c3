package api

import "github.com/deadletteroffice/dlo/internal/topology"

// Topology is the response to GET /topology/findings.
type Topology struct {
	Findings []topology.Finding `json:"findings"` // sorted by vhost; in each vhost, the most urgent first
	Looks    []topology.Report  `json:"looks"`    // without read_at, no look has succeeded yet
}

// NewTopology returns the response for the reports on all vhosts.
func NewTopology(reports []topology.Report) Topology {
	t := Topology{Looks: reports}
	for i := range reports {
		t.Findings = append(t.Findings, reports[i].Findings...)
	}
	return t
}

// Plans is the response to POST /topology/plan.
type Plans struct {
	Plans []topology.Plan          `json:"plans"` // one plan for each vhost
	Forms map[topology.Form]string `json:"forms"` // all plans in each of the formats rabbitmqctl and definitions
}

// NewPlans returns the response for a list of plans.
func NewPlans(plans []topology.Plan) Plans {
	out := Plans{plans, map[topology.Form]string{}}
	for _, f := range topology.Forms {
		out.Forms[f] = topology.Render(plans, f)
	}
	return out
}

// ApplyPlanRequest is the body of POST /topology/apply. It contains a plan that POST /topology/plan
// returned.
type ApplyPlanRequest struct {
	Plan topology.Plan `json:"plan"`
}

// UndoRequest is the body of POST /topology/undo.
type UndoRequest struct {
	ID int64 `json:"id"` // id of the policy in GET /topology/adopted
}

// AdoptedPolicies is the response to GET /topology/adopted.
type AdoptedPolicies struct {
	Policies []topology.Adopted `json:"policies"`
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
