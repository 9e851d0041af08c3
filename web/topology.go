package web

import (
	"net/http"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// Topology looks at dead-letter paths.
type Topology interface {
	Reports() []topology.Report // the latest look at each vhost
	// Plan plans policies that lead dead letters to dlo. Its errors wrap ErrNotFound or
	// ErrUnavailable.
	Plan(w topology.Wish) ([]topology.Plan, error)
}

// reports returns the latest looks at the dead-letter paths.
func (w *Web) reports() []topology.Report {
	if w.Topology == nil {
		return nil
	}
	return w.Topology.Reports()
}

// apiFindings handles GET /topology/findings.
func (w *Web) apiFindings(*http.Request) (any, error) { return api.NewTopology(w.reports()), nil }

// apiPlan handles POST /topology/plan {broker, vhost, queues, at_least_once}. It changes nothing.
func (w *Web) apiPlan(r *http.Request) (any, error) {
	var in api.PlanRequest
	if err := readJSON(r, &in); err != nil {
		return nil, err
	}
	if w.Topology == nil {
		return nil, deadletter.ErrUnavailable
	}
	plans, err := w.Topology.Plan(topology.Wish(in))
	if err != nil {
		return nil, err
	}
	return api.NewPlans(plans), nil
}
