package adopt

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// Leave removes queues from the policies that dlo has applied. Names or globs select the queues.
// Each policy still covers its other queues. An empty broker means all brokers, and an empty vhost
// means all vhosts.
//
// Leave returns the names of the queues that left, even if there is an error. The error names these
// queues too. It wraps ErrNotFound if no policy covers a queue of that name. It can also wrap
// ErrConflict, ErrForbidden or ErrUnavailable.
func (a *Adoption) Leave(ctx context.Context, by deadletter.Principal, w topology.Wish) ([]string, error) {
	a.changing.Lock()
	defer a.changing.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeWait)
	defer cancel()
	applied, err := a.Adopted(ctx)
	if err != nil {
		return nil, err
	}
	applied = slices.DeleteFunc(applied, func(one topology.Adopted) bool {
		return w.Broker != "" && w.Broker != one.Broker || w.VHost != "" && w.VHost != one.VHost
	})
	var all, left []string
	for _, one := range applied {
		all = append(all, one.Queues...)
	}
	chosen := topology.Chosen(all, w.Queues)
	for _, one := range applied {
		leaving := slices.DeleteFunc(
			slices.Clone(one.Queues), func(q string) bool { return !slices.Contains(chosen, q) },
		)
		if len(leaving) == 0 {
			continue
		}
		if err := a.leave(ctx, by, one.ID, leaving); err != nil {
			if len(left) > 0 {
				err = fmt.Errorf(
					"%w. Before that, these queues left: %s", err, deadletter.Visible(strings.Join(left, ", ")),
				)
			}
			return left, err
		}
		left = append(left, leaving...)
	}
	if len(left) == 0 {
		return nil, deadletter.NoSuch(
			"policy of dlo for queue %s; `dlo topology undo` lists those that there are",
			deadletter.Visible(strings.Join(w.Queues, ", ")),
		)
	}
	return left, nil
}

// leave removes queues from one policy. If other queues remain, it first sets a new policy for
// them, so that none of their dead letters is lost in between.
func (a *Adoption) leave(ctx context.Context, by deadletter.Principal, id int64, leaving []string) error {
	d, applied, err := a.find(ctx, id)
	if err != nil {
		return err
	}
	p, err := a.allowed(by, d.Broker, d.VHost)
	if err != nil {
		return err
	}
	defer a.changed(p.Broker, p.VHost)
	if err := p.asApplied(ctx, &applied.Policy); err != nil {
		return err
	}
	old, err := planned(&d)
	if err != nil {
		return err
	}
	s, err := p.Look(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", deadletter.ErrUnavailable, err)
	}
	if rest, why := old.Without(leaving, &s); len(rest.Queues) > 0 {
		if why != "" {
			return fmt.Errorf("%w: %s", deadletter.ErrConflict, why)
		}
		if err := a.keepRest(ctx, by, p, rest); err != nil {
			return err
		}
	}
	if err := a.pause(ctx, by, p, leaving); err != nil {
		return err
	}
	return a.takeBack(ctx, p, &d, by, "queues that left: "+deadletter.Visible(strings.Join(leaving, ", ")))
}

// keepRest sets a new policy for the queues that stay with dlo, and proves it with a test message.
// The earlier policy covers both these queues and the queues that leave. Therefore keepRest is
// called before the earlier policy is removed.
func (a *Adoption) keepRest(ctx context.Context, by deadletter.Principal, p *Place, rest topology.Planned) error {
	switch now, err := p.Policy(ctx, rest.Name); {
	case err != nil:
		return err
	case now != nil:
		return fmt.Errorf(
			"%w: the vhost already has a policy with the name %s. Remove that policy first", deadletter.ErrConflict,
			rest.Name,
		)
	}
	_, err := a.apply(ctx, by, p, &topology.Plan{Broker: p.Broker, VHost: p.VHost, Policies: []topology.Planned{rest}})
	return err
}
