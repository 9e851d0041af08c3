package web

import (
	"context"
	"net/http"
	"strconv"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// SavedRedirects lists the redirects that people have saved.
type SavedRedirects interface {
	Overrides(ctx context.Context) ([]deadletter.Override, error) // sorted by queue
}

// Redirector saves and removes redirects. Each method checks the permission with deadletter.Allow,
// and checks the list of allowed targets.
type Redirector interface {
	Redirect(ctx context.Context, by deadletter.Principal, o deadletter.Override) (deadletter.Override, error)
	Unredirect(ctx context.Context, by deadletter.Principal, id int64) error
}

func apiOverrideOf(o deadletter.Override) api.Override {
	return api.Override{
		ID:     o.ID,
		Broker: o.Broker,
		VHost:  o.VHost,
		Queue:  o.Queue,
		To:     o.To,
		By:     o.By,
		Reason: o.Reason,
		At:     api.At(o.At),
	}
}

// apiOverrides handles GET /overrides.
func (w *Web) apiOverrides(r *http.Request) (any, error) {
	list, err := w.Store.Overrides(r.Context())
	return api.Overrides{Overrides: each(list, apiOverrideOf)}, err
}

// apiAddOverride handles POST /overrides {queue, to, broker, vhost, reason}. The broker may be
// missing if there is only one. The vhost may be missing if the broker has only one.
func (w *Web) apiAddOverride(r *http.Request, in api.OverrideRequest) (any, error) {
	if w.draining() {
		return nil, errStopping
	}
	if err := w.fillPlace(r.Context(), &in.Broker, &in.VHost); err != nil {
		return nil, err
	}
	o, err := w.Desk.Redirect(r.Context(), principal(r), deadletter.Override{
		Broker: in.Broker,
		VHost:  in.VHost,
		Queue:  in.Queue,
		To:     in.To,
		Reason: in.Reason,
	})
	if err != nil {
		return nil, err
	}
	return created{apiOverrideOf(o), "/api/v1/overrides/" + strconv.FormatInt(o.ID, 10)}, nil
}

// fillPlace sets the broker and the vhost of a call if they are missing and there is only one
// candidate.
func (w *Web) fillPlace(ctx context.Context, broker, vhost *string) error {
	brokers := w.brokers(ctx)
	if *broker == "" {
		if len(brokers) != 1 {
			return invalid("there are %d brokers: say which, by its name in the configuration", len(brokers))
		}
		*broker = brokers[0].Name
	}
	if *vhost != "" {
		return nil
	}
	for _, b := range brokers {
		if b.Name == *broker {
			*vhost = b.VHost
		}
	}
	return nil
}

// apiRemoveOverride handles DELETE /overrides/{id}.
func (w *Web) apiRemoveOverride(r *http.Request) (any, error) {
	id, err := pathNumber(r, "redirect")
	if err != nil {
		return nil, err
	}
	if w.draining() {
		return nil, errStopping
	}
	return gone{}, w.Desk.Unredirect(r.Context(), principal(r), id)
}
