package web

import (
	"net/http"
	"slices"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
	"github.com/deadletteroffice/dlo/web/view"
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

// faults puts the faults of the dead-letter paths on the page of queues, the most urgent first.
// Findings of a vhost that differ only in the queue are one fault.
func (w *Web) faults(p *view.QueuesPage) {
	type alike struct {
		found []topology.Finding
		place string // "" if there is only one
	}
	var all []alike
	reports := w.reports()
	for i := range reports {
		r := &reports[i]
		place := r.Broker + ", vhost " + r.VHost
		look := view.PathLook{Place: place, ReadAt: r.ReadAt, Failed: r.Failed, Queues: r.Queues}
		for _, g := range r.Gaps {
			look.Gaps = append(look.Gaps, g.What+": "+g.Why)
		}
		p.Looks = append(p.Looks, look)
		if len(reports) == 1 {
			place = ""
		}
		for from, to := 0, 0; from < len(r.Findings); from = to {
			for to = from + 1; to < len(r.Findings) && r.Findings[to].Alike(r.Findings[from]); {
				to++
			}
			all = append(all, alike{r.Findings[from:to], place})
		}
	}
	slices.SortStableFunc(all, func(a, b alike) int {
		return deadletter.LoudestFirst(a.found[0].Severity, b.found[0].Severity)
	})
	for _, a := range all[:min(len(all), view.MaxFaults)] {
		p.Faults = append(p.Faults, w.fault(a.found, a.place))
	}
	p.FaultsLeft = len(all) - len(p.Faults)
}

// fault returns findings that differ only in the queue as one problem, with the commands that cure
// it.
func (w *Web) fault(same []topology.Finding, place string) view.Fault {
	f := &same[0]
	p := view.Fault{Severity: f.Severity, Place: place, Loses: f.Loses, Why: f.Why, Cure: f.Cure, Likely: f.Sure == topology.Likely, Since: f.Since}
	wish := topology.Wish{Broker: f.Broker, VHost: f.VHost}
	for i := range same {
		p.Titles = append(p.Titles, same[i].Title)
		wish.Queues = append(wish.Queues, same[i].Queue)
		if same[i].Since.Before(p.Since) {
			p.Since = same[i].Since
		}
	}
	if f.Plannable {
		wish.AtLeastOnce = f.Weak()
		if plans, err := w.Topology.Plan(wish); err == nil {
			p.Fix = topology.Render(plans, topology.FormCommands)
		}
	}
	return p
}
