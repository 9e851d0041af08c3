package adopt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// giveUp takes back the policies of a plan that could not be applied. It returns the cause. If a
// policy could not be taken back, the error also says why, and Run tries again.
func (a *Adoption) giveUp(ctx context.Context, p *Place, rows []deadletter.Declared, by deadletter.Principal, cause error) error {
	if errors.Is(cause, deadletter.ErrUnavailable) { // a request that timed out may still be carried out
		return fmt.Errorf("%w. dlo takes the policies back as soon as the management API responds", cause)
	}
	stored, err := a.store.Declared(ctx)
	if err != nil {
		return errors.Join(cause, err)
	}
	for _, d := range stored {
		mine := slices.ContainsFunc(rows, func(r deadletter.Declared) bool {
			return r.Broker == d.Broker && r.VHost == d.VHost && r.Kind == d.Kind && r.Name == d.Name
		})
		if !mine {
			continue
		}
		if err := a.takeBack(ctx, p, &d, by, "it could not be applied"); err != nil {
			return fmt.Errorf("%w. Policy %s could not be taken back either; dlo tries again: %w", cause, d.Name, err)
		}
	}
	return fmt.Errorf("%w. All policies of the plan were taken back", cause)
}

// takeBack deletes a policy that dlo has set or was about to set, and forgets it. It deletes the
// policy only if the policy on the broker is exactly as dlo set it.
func (a *Adoption) takeBack(ctx context.Context, p *Place, d *deadletter.Declared, by deadletter.Principal, why string) error {
	planned, err := planned(d)
	if err != nil {
		return err
	}
	now, err := p.policy(ctx, d.Name)
	if err != nil {
		return err
	}
	if now != nil && now.Same(&planned.Policy) {
		if err := p.Delete(ctx, d.Name); err != nil {
			return err
		}
	}
	a.crash("adopt: deleted")
	if err := p.DeleteProbe(ctx, planned.ProbeQueue()); err != nil {
		a.log.Warn("the temporary queue of a policy is not deleted; it expires", "queue", planned.ProbeQueue(), "err", err)
	}
	act := deadletter.Act{}
	if d.Sure || now != nil {
		act = a.act(deadletter.ActPolicyUndone, by, []deadletter.Declared{*d}, why)
	}
	return a.store.Undeclare(ctx, []int64{d.ID}, act)
}

// planned returns the policy of a recorded row.
func planned(d *deadletter.Declared) (topology.Planned, error) {
	var p topology.Planned
	if err := json.Unmarshal(d.Detail, &p); err != nil {
		return p, fmt.Errorf("the record of policy %s cannot be read: %w", d.Name, err)
	}
	return p, nil
}

// policy returns the policy that the broker has now under a name, or nil if there is none.
func (p *Place) policy(ctx context.Context, name string) (*topology.Policy, error) {
	s, err := p.Look(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", deadletter.ErrUnavailable, err)
	}
	if why := s.Unread(topology.PartPolicies); why != "" {
		return nil, fmt.Errorf("%w: policies cannot be read: %s", deadletter.ErrUnavailable, why)
	}
	i := slices.IndexFunc(s.Policies, func(p topology.Policy) bool { return p.Name == name })
	if i < 0 {
		return nil, nil
	}
	return &s.Policies[i], nil
}

// Adopted returns the policies that dlo has applied and not undone.
func (a *Adoption) Adopted(ctx context.Context) ([]topology.Adopted, error) {
	all, err := a.store.Declared(ctx)
	if err != nil {
		return nil, err
	}
	var list []topology.Adopted
	for _, d := range all {
		if d.Kind != deadletter.DeclaredPolicy || !d.Sure {
			continue
		}
		p, err := planned(&d)
		if err != nil {
			return nil, err
		}
		list = append(list, topology.Adopted{ID: d.ID, Broker: d.Broker, VHost: d.VHost, Policy: p.Policy, Queues: p.Queues, At: d.At, By: d.By})
	}
	return list, nil
}

// Applied returns the policies that dlo has applied in one vhost.
func (a *Adoption) Applied(ctx context.Context, broker, vhost string) ([]topology.Policy, error) {
	all, err := a.Adopted(ctx)
	var list []topology.Policy
	for _, one := range all {
		if one.Broker == broker && one.VHost == vhost {
			list = append(list, one.Policy)
		}
	}
	return list, err
}

// Undo deletes a policy that dlo has applied, if it is still as dlo set it. If somebody has changed
// it since, the error wraps ErrConflict and contains both policies. The error can also wrap
// ErrForbidden, ErrNotFound or ErrUnavailable.
func (a *Adoption) Undo(ctx context.Context, by deadletter.Principal, id int64) (topology.Adopted, error) {
	a.changing.Lock()
	defer a.changing.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeWait)
	defer cancel()
	d, applied, err := a.find(ctx, id)
	if err != nil {
		return applied, err
	}
	p, err := a.allowed(by, d.Broker, d.VHost)
	if err != nil {
		return applied, err
	}
	defer a.changed(p.Broker, p.VHost)
	if err := p.asApplied(ctx, &applied.Policy); err != nil {
		return applied, err
	}
	return applied, a.takeBack(ctx, p, &d, by, "")
}

// asApplied returns an error if a policy exists and differs from what dlo set.
func (p *Place) asApplied(ctx context.Context, applied *topology.Policy) error {
	now, err := p.policy(ctx, applied.Name)
	if err != nil {
		return err
	}
	if now != nil && !now.Same(applied) {
		return fmt.Errorf("%w: policy %s was changed since dlo set it, so dlo leaves it alone. dlo set: %s. It is now: %s. Delete it yourself, or set it back first", deadletter.ErrConflict, applied.Name, applied.Words(), now.Words())
	}
	return nil
}

// find returns the record of an applied policy.
func (a *Adoption) find(ctx context.Context, id int64) (deadletter.Declared, topology.Adopted, error) {
	all, err := a.store.Declared(ctx)
	if err != nil {
		return deadletter.Declared{}, topology.Adopted{}, err
	}
	for _, d := range all {
		if d.ID != id || d.Kind != deadletter.DeclaredPolicy || !d.Sure {
			continue
		}
		p, err := planned(&d)
		return d, topology.Adopted{ID: d.ID, Broker: d.Broker, VHost: d.VHost, Policy: p.Policy, Queues: p.Queues, At: d.At, By: d.By}, err
	}
	return deadletter.Declared{}, topology.Adopted{}, deadletter.NoSuch("applied policy with the id %d", id)
}
