package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// Policy returns the policy with the given name in the vhost of the link, or nil if there is none.
// It reads the list of all policies, because the tag management is enough for that. To read a
// single policy, the user would need the tag policymaker. The error wraps ErrUnavailable.
func (l *Link) Policy(ctx context.Context, name string) (*topology.Policy, error) {
	if l.looks == nil {
		return nil, fmt.Errorf("%w: %w", deadletter.ErrUnavailable, errNoManagement)
	}
	var list []topology.Policy
	if err := l.looks.get(ctx, "/api/policies/"+url.PathEscape(l.vhost), &list); err != nil {
		return nil, fmt.Errorf("%w: policies cannot be read: %w", deadletter.ErrUnavailable, err)
	}
	i := slices.IndexFunc(list, func(p topology.Policy) bool { return p.Name == name })
	if i < 0 {
		return nil, nil
	}
	return &list[i], nil
}

// SetPolicy sets a policy in the vhost of the link. The user needs the tag policymaker (measured on
// 3.10.8, 4.0.5, 4.3.6). The error wraps ErrForbidden if the user lacks the tag. It wraps
// ErrUnavailable if the management API does not respond; in that case the policy may have been set.
func (l *Link) SetPolicy(ctx context.Context, p topology.Policy) error {
	return l.changePolicy(ctx, http.MethodPut, p.Name, map[string]any{
		"pattern": p.Pattern, "apply-to": p.ApplyTo, "priority": p.Priority, "definition": p.Definition,
	})
}

// DeletePolicy deletes a policy in the vhost of the link, if it exists. It returns the same errors
// as SetPolicy.
func (l *Link) DeletePolicy(ctx context.Context, name string) error {
	err := l.changePolicy(ctx, http.MethodDelete, name, nil)
	if errors.Is(err, deadletter.ErrNotFound) {
		return nil
	}
	return err
}

func (l *Link) changePolicy(ctx context.Context, method, name string, body any) error {
	if l.looks == nil {
		return fmt.Errorf("%w: %w", deadletter.ErrConflict, errNoManagement)
	}
	err := (&Admin{l.looks}).Do(
		ctx, method, "/api/policies/"+url.PathEscape(l.vhost)+"/"+url.PathEscape(name), body, nil,
	)
	if errors.Is(err, deadletter.ErrForbidden) {
		return fmt.Errorf(
			"%w: user %s of the management API may not set policies. `rabbitmqctl set_user_tags %s management policymaker` grants it, and replaces the tags that the user has",
			deadletter.ErrForbidden, deadletter.Visible(l.looks.user), quoted(l.looks.user),
		)
	}
	return err
}
