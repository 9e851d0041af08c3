package web

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
	"github.com/deadletteroffice/dlo/web/view"
)

// Adoption sets the policies of plans on brokers, and removes them again. Its errors wrap
// ErrConflict, ErrForbidden, ErrInvalid, ErrNotFound or ErrUnavailable.
type Adoption interface {
	Apply(ctx context.Context, by deadletter.Principal, plan topology.Plan) (topology.Applied, error)
	Undo(ctx context.Context, by deadletter.Principal, id int64) (topology.Adopted, error)
	// returns the queues that have left the policy
	Leave(ctx context.Context, by deadletter.Principal, w topology.Wish) ([]string, error)
	Adopted(ctx context.Context) ([]topology.Adopted, error)
}

// planSum returns a hash that identifies a plan in a form.
func planSum(p *topology.Plan) string {
	text := topology.Render([]topology.Plan{*p}, topology.FormDefinitions)
	sum := sha256.Sum256([]byte(p.Broker + "\x00" + text))
	return fmt.Sprintf("%x", sum[:8])
}

// readPlan finds the plan that the page of queues shows for a problem. The field "plan" is its
// hash. On the page of one queue, the form names the queue, and the plan is only for this queue.
func (w *Web) readPlan(r *http.Request, in *struct{ Body api.ApplyPlanRequest }) error {
	problems := groupAlike(w.reports(r.Context()))
	if r.PostForm.Has("queue") {
		problems = ofQueue(problems, deadletter.Origin{
			Broker: r.PostForm.Get("broker"),
			VHost:  r.PostForm.Get("vhost"),
			Queue:  r.PostForm.Get("queue"),
		})
	}
	for _, same := range problems {
		plan := w.planFor(same)
		if plan != nil && len(plan.Policies) > 0 && planSum(plan) == r.PostForm.Get("plan") {
			in.Body.Plan = *plan
			return nil
		}
	}
	return fmt.Errorf(
		"%w: the problem or its fix has changed since the page was shown; look at it again", deadletter.ErrConflict,
	)
}

// ofQueue returns the findings about one queue. Each finding becomes a list with one element.
func ofQueue(problems [][]topology.Finding, o deadletter.Origin) [][]topology.Finding {
	var list [][]topology.Finding
	for _, same := range problems {
		for _, f := range same {
			if f.Broker == o.Broker && f.VHost == o.VHost && slices.Contains(f.Queues(), o.Queue) {
				list = append(list, []topology.Finding{f.Only(o.Queue)})
			}
		}
	}
	return list
}

// adoptedPolicies adds the policies that dlo has set to the page of queues. It adds them only if
// the caller may see all queues.
func (w *Web) adoptedPolicies(ctx context.Context, p *view.QueuesPage) error {
	if !deadletter.ScopeOf(ctx).Everywhere() {
		return nil
	}
	list, err := w.Adoption.Adopted(ctx)
	p.Adopted = list
	return err
}

// applyTopology sets the policies of a plan, and proves them. dlo reads the vhost again and makes
// the plan again. If the two plans differ, nothing is set: 409 says what changed. After the
// policies are set, dlo checks that each of them applies to its queues, and rejects one message of
// its own in a temporary queue that the policy applies to. If the message does not arrive, all
// policies of the plan are taken back. The user of the management API needs the tag policymaker;
// without it, the answer is 403.
func (w *Web) applyTopology(
	ctx context.Context, in *struct{ Body api.ApplyPlanRequest },
) (*reply[topology.Applied], error) {
	return answer(w.Adoption.Apply(ctx, principal(ctx), in.Body.Plan))
}

// listAdopted returns the policies that dlo has set and that have not been undone. They are sorted
// by broker, vhost and name.
func (w *Web) listAdopted(ctx context.Context, _ *struct{}) (*reply[api.AdoptedPolicies], error) {
	list, err := w.Adoption.Adopted(ctx)
	return answer(api.AdoptedPolicies{Policies: list}, err)
}

// undoTopology deletes a policy that dlo has set. Its queues are then as they were before. If
// somebody has changed the policy since, it stays: 409 shows both versions.
func (w *Web) undoTopology(ctx context.Context, in *struct{ Body api.UndoRequest }) (*reply[topology.Adopted], error) {
	return answer(w.Adoption.Undo(ctx, principal(ctx), in.Body.ID))
}

// leaveTopology takes queues out of the policies that dlo has set. The other queues of a policy
// keep it, under another name. No queue is declared again. If a policy cannot be changed, the error
// names the queues that left before. 404 if no policy of dlo applies to such a queue.
func (w *Web) leaveTopology(ctx context.Context, in *struct{ Body api.LeaveRequest }) (*reply[api.Left], error) {
	if len(in.Body.Queues) == 0 {
		return nil, fmt.Errorf("%w: name the queues that leave; a glob such as * is allowed", deadletter.ErrInvalid)
	}
	left, err := w.Adoption.Leave(ctx, principal(ctx), topology.Wish{
		Broker: in.Body.Broker,
		VHost:  in.Body.VHost,
		Queues: in.Body.Queues,
	})
	return answer(api.Left{Queues: left}, err)
}
