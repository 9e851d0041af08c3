package adopt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// giveUp removes the policies of a plan that could not be applied completely. The parameter "cause"
// is the error of that plan. The result wraps this error, and names the policies that giveUp could
// not remove. The method Run tries again later to remove them.
func (a *Adoption) giveUp(
	ctx context.Context, p *Place, rows []deadletter.Declared, by deadletter.Principal, cause error,
) error {
	if errors.Is(cause, deadletter.ErrUnavailable) { // the broker may still carry out a request that timed out
		return fmt.Errorf(
			"%w. %s may be set now. dlo takes the policies back as soon as the management API responds", cause,
			policies(rows),
		)
	}
	// A new time limit is needed, because the change may have failed when its own time limit was
	// reached.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveUpWait)
	defer cancel()
	stored, err := a.store.Declared(ctx)
	if err != nil {
		return fmt.Errorf("%w. %s may stay set until dlo can read its store: %w", cause, policies(rows), err)
	}
	var stay []deadletter.Declared
	var why []error
	for _, d := range stored {
		mine := slices.ContainsFunc(rows, func(r deadletter.Declared) bool {
			return r.Broker == d.Broker && r.VHost == d.VHost && r.Kind == d.Kind && r.Name == d.Name
		})
		if !mine {
			continue
		}
		if err := a.takeBack(ctx, p, &d, by, "it could not be applied"); err != nil {
			stay, why = append(stay, d), append(why, err)
		}
	}
	if len(stay) > 0 {
		return fmt.Errorf(
			"%w. %s could not be taken back either; dlo tries again: %w", cause, policies(stay), errors.Join(why...),
		)
	}
	return fmt.Errorf("%w. No policy of the plan stays set", cause)
}

// policies returns the word "Policy" or "Policies", followed by the names. A sentence can begin
// with this text.
func policies(rows []deadletter.Declared) string {
	var names []string
	for _, d := range rows {
		names = append(names, d.Name)
	}
	if len(names) == 1 {
		return "Policy " + names[0]
	}
	return "Policies " + strings.Join(names, ", ")
}

// takeBack deletes a policy that dlo has set or was about to set, and removes its record. It does
// not delete the policy if the one on the broker differs from the one that dlo set.
func (a *Adoption) takeBack(
	ctx context.Context, p *Place, d *deadletter.Declared, by deadletter.Principal, why string,
) error {
	planned, err := planned(d)
	if err != nil {
		return err
	}
	now, err := p.Policy(ctx, d.Name)
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
		a.log.Warn(
			"the temporary queue of a policy is not deleted; it expires", "queue", planned.ProbeQueue(), "err", err,
		)
	}
	act := deadletter.Act{}
	if d.Sure || now != nil {
		act = a.newAct(deadletter.ActPolicyUndone, by, []deadletter.Declared{*d}, why)
	}
	return a.store.Undeclare(ctx, []int64{d.ID}, act)
}

// planned decodes the plan of a policy from the record that the store has of this policy.
func planned(d *deadletter.Declared) (topology.Planned, error) {
	var p topology.Planned
	if err := json.Unmarshal(d.Detail, &p); err != nil {
		return p, fmt.Errorf("the record of policy %s cannot be read: %w", d.Name, err)
	}
	return p, nil
}

func adopted(d *deadletter.Declared) (topology.Adopted, error) {
	p, err := planned(d)
	return topology.Adopted{
		ID:     d.ID,
		Broker: d.Broker,
		VHost:  d.VHost,
		Policy: p.Policy,
		Queues: p.Queues,
		At:     d.At,
		By:     d.By,
	}, err
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
		one, err := adopted(&d)
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// Applied returns the policies that dlo has applied in one vhost.
func (a *Adoption) Applied(ctx context.Context, broker, vhost string) ([]topology.Planned, error) {
	all, err := a.store.Declared(ctx)
	var list []topology.Planned
	for _, d := range all {
		if d.Kind != deadletter.DeclaredPolicy || !d.Sure || d.Broker != broker || d.VHost != vhost {
			continue
		}
		p, err := planned(&d)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, err
}

// Undo deletes a policy that dlo has applied. If somebody has changed the policy since, Undo does
// not delete it, and returns an error that wraps ErrConflict and contains both policies. The error
// can also wrap ErrForbidden, ErrNotFound or ErrUnavailable.
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
	if err := a.pause(ctx, by, p, applied.Queues); err != nil {
		return applied, err
	}
	return applied, a.takeBack(ctx, p, &d, by, "")
}

// asApplied returns an error if a policy exists and differs from the policy that dlo set.
func (p *Place) asApplied(ctx context.Context, applied *topology.Policy) error {
	now, err := p.Policy(ctx, applied.Name)
	if err != nil {
		return err
	}
	if now != nil && !now.Same(applied) {
		return fmt.Errorf(
			"%w: policy %s was changed since dlo set it, so dlo leaves it alone. dlo set: %s. It is now: %s. Delete it yourself, or set it back first",
			deadletter.ErrConflict, applied.Name, applied.Words(), now.Words(),
		)
	}
	return nil
}

// find returns the policy with the given id, if dlo has applied this policy. It also returns the
// record that the store has of the policy.
func (a *Adoption) find(ctx context.Context, id int64) (deadletter.Declared, topology.Adopted, error) {
	all, err := a.store.Declared(ctx)
	if err != nil {
		return deadletter.Declared{}, topology.Adopted{}, err
	}
	for _, d := range all {
		if d.ID != id || d.Kind != deadletter.DeclaredPolicy || !d.Sure {
			continue
		}
		one, err := adopted(&d)
		return d, one, err
	}
	return deadletter.Declared{}, topology.Adopted{}, deadletter.NoSuch("applied policy with the id %d", id)
}
