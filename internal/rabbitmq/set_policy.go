package rabbitmq

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	if l.looks.Load() == nil {
		return nil, fmt.Errorf("%w: %w", deadletter.ErrUnavailable, errNoManagement)
	}
	var list []topology.Policy
	if err := l.looks.Load().get(ctx, "/api/policies/"+url.PathEscape(l.vhost), &list); err != nil {
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
	if l.looks.Load() == nil {
		return fmt.Errorf("%w: %w", deadletter.ErrConflict, errNoManagement)
	}
	err := l.looks.Load().change(ctx, method, "/api/policies/"+url.PathEscape(l.vhost)+"/"+url.PathEscape(name), body)
	if errors.Is(err, deadletter.ErrForbidden) {
		return fmt.Errorf(
			"%w: user %s of the management API may not set policies. `rabbitmqctl set_user_tags %s management policymaker` grants it, and replaces the tags that the user has",
			deadletter.ErrForbidden, deadletter.Visible(l.looks.Load().user), quoted(l.looks.Load().user),
		)
	}
	return err
}

// change sends a request that changes something, with a body as JSON; nil = none. The error wraps
// ErrNotFound for 404, ErrForbidden for 401 and 403, and ErrInvalid for any other response that is
// not a success. The error contains the API's message.
func (m *Management) change(ctx context.Context, method, path string, body any) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, m.base+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.SetBasicAuth(m.user, m.password.read())
	r.Header.Set("Content-Type", "application/json")
	answer, err := m.client.Do(r)
	if err != nil {
		return fmt.Errorf("%w: the management API: %w", deadletter.ErrUnavailable, withoutURL(err))
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%w: the management API: %w", deadletter.ErrUnavailable, err)
	}
	kind := deadletter.ErrInvalid
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		kind = deadletter.ErrForbidden
	case http.StatusNotFound:
		kind = deadletter.ErrNotFound
	}
	if answer.StatusCode >= 300 {
		return fmt.Errorf("%w: %s %s: the management API answered %s: %s", kind, method, path, answer.Status,
			deadletter.Visible(deadletter.Cut(string(bytes.TrimSpace(said)), 300)))
	}
	return nil
}
