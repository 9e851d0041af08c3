package web

import (
	"context"
	"slices"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/topology"
	"github.com/deadletteroffice/dlo/web/view"
)

// Topology returns what dlo has found out about dead-letter paths, and plans policies that correct
// them.
type Topology interface {
	Reports() []topology.Report // what dlo found when it last read each vhost
	// Plan returns the policies that would make dead letters reach dlo. Its errors wrap ErrNotFound
	// or ErrUnavailable.
	Plan(w topology.Wish) ([]topology.Plan, error)
	// Refresh reads the vhosts again before a plan is made, unless they were read shortly before.
	Refresh(ctx context.Context, broker, vhost string)
}

// listFindings returns faults that lose dead letters or that can lose them, the most urgent finding
// of each vhost first, and when each vhost was read. dlo looks at each vhost that has a management
// API in the configuration, every 30 s. docs/topology.md describes the kinds of findings.
func (w *Web) listFindings(ctx context.Context, _ *struct{}) (*reply[api.Topology], error) {
	return &reply[api.Topology]{api.NewTopology(w.reports(ctx))}, nil
}

// planTopology plans policies that lead dead letters to dlo. This changes nothing. The policies
// repeat the keys of the policies that they hide. Queues that a policy cannot or should not lead to
// dlo are refused, with the reason. 404 if dlo looks at no such vhost, and 503 if it could not look
// yet.
func (w *Web) planTopology(ctx context.Context, in *struct{ Body topology.Wish }) (*reply[api.Plans], error) {
	w.Topology.Refresh(ctx, in.Body.Broker, in.Body.VHost)
	plans, err := w.Topology.Plan(in.Body)
	return answer(api.NewPlans(plans), err)
}

// addFaults adds the faults of the dead-letter paths to the page of queues. The most urgent fault
// comes first. Findings of a vhost that differ only in the queue are shown as one fault.
func (w *Web) addFaults(ctx context.Context, p *view.QueuesPage) {
	p.Looks = w.reports(ctx)
	all := groupAlike(p.Looks)
	for _, same := range all[:min(len(all), view.MaxFaults)] {
		p.Faults = append(p.Faults, w.faultOf(ctx, same))
	}
	p.FaultsLeft = len(all) - len(p.Faults)
}

// groupAlike returns the findings of all vhosts as lists. Each list contains findings that differ
// only in the queue. The most urgent findings come first.
func groupAlike(reports []topology.Report) [][]topology.Finding {
	var all [][]topology.Finding
	for i := range reports {
		found := reports[i].Findings
		for from, to := 0, 0; from < len(found); from = to {
			for to = from + 1; to < len(found) && found[to].Alike(found[from]); {
				to++
			}
			all = append(all, found[from:to])
		}
	}
	slices.SortStableFunc(all, func(a, b []topology.Finding) int {
		return deadletter.LoudestFirst(a[0].Severity, b[0].Severity)
	})
	return all
}

// faultOf combines findings that differ only in the queue into one fault. It adds the plan that
// cures the fault.
//
// If messages of a queue are redelivered again and again, faultOf also adds the letters that dlo
// sent to that queue. It cannot add messages of other senders, because the management API cannot
// show messages without taking them from the queue.
func (w *Web) faultOf(ctx context.Context, same []topology.Finding) view.Fault {
	f := &same[0]
	p := view.Fault{Same: same}
	if f.Kind == topology.RedeliveryStorm && len(same) == 1 {
		o := deadletter.Origin{Broker: f.Broker, VHost: f.VHost, Queue: f.Queue}
		q := view.QueueQuery(o, true).With(query.State, string(deadletter.StateRequeued))
		if n, _, err := w.Store.Count(ctx, q, countedTo); err == nil {
			p.Sent, p.SentURL = n, view.LettersURL(q.String(), "", "")
		}
	}
	if plan := w.planFor(same); plan != nil {
		p.Plan = *plan
	}
	if len(p.Plan.Policies) > 0 {
		p.Sum = planSum(&p.Plan)
	}
	return p
}

// planFor returns the plan that cures the given findings. All findings are of the same kind, and
// each of them is about another queue. If no policy can cure them, planFor returns nil. If the plan
// has no policies, it contains the reason.
func (w *Web) planFor(same []topology.Finding) *topology.Plan {
	f := &same[0]
	if !f.Plannable {
		return nil
	}
	wish := topology.Wish{Broker: f.Broker, VHost: f.VHost, AtLeastOnce: f.Weak()}
	for i := range same {
		wish.Queues = append(wish.Queues, same[i].Curable()...)
	}
	plans, err := w.Topology.Plan(wish)
	if err != nil || len(plans) != 1 {
		return nil
	}
	return &plans[0]
}
