package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/web/view"
)

// redirectAgain shows the form for a redirect again, with each mistake beside its field.
func (w *Web) redirectAgain(r *http.Request, err error) (templ.Component, error) {
	p, broken := w.rulesPage(r)
	p.Form = r.PostForm
	var refused deadletter.FieldErrors
	if !errors.As(err, &refused) {
		refused = deadletter.FieldErrors{{Field: "queue", Why: sentence(err, statusOf(err))}}
	}
	for _, f := range refused {
		p.Mistakes[f.Field] = mistakeText(f)
	}
	return view.Rules(p), broken
}

// listOverrides returns the redirects that people saved, by queue. A redirect sends the letters of
// a queue to another queue of its broker and vhost.
func (w *Web) listOverrides(ctx context.Context, _ *struct{}) (*reply[api.Overrides], error) {
	list, err := w.Store.Overrides(ctx)
	return answer(api.Overrides{Overrides: list}, err)
}

// addOverride sends the letters of a queue to another queue of its broker and vhost. The target has
// to be one that letters may be requeued to. The same redirect again is the same redirect; 409 when
// the queue has another one. The broker may be missing if there is only one, and the vhost if the
// broker has only one.
func (w *Web) addOverride(
	ctx context.Context, r *struct{ Body api.OverrideRequest },
) (*created[deadletter.Override], error) {
	in := &r.Body
	if err := w.fillPlace(ctx, &in.Broker, &in.VHost); err != nil {
		return nil, err
	}
	o, err := w.Desk.Redirect(ctx, principal(ctx), deadletter.Override{
		Broker: in.Broker,
		VHost:  in.VHost,
		Queue:  strings.TrimSpace(in.Queue),
		To:     strings.TrimSpace(in.To),
		Reason: strings.TrimSpace(in.Reason),
	})
	return &created[deadletter.Override]{fmt.Sprint("/api/v1/overrides/", o.ID), o}, err
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

// removeOverride removes a redirect. Letters of the queue go to their own queue again, from the
// next one that is sent.
func (w *Web) removeOverride(ctx context.Context, in *NumberPath) (*none, error) {
	id, err := in.number("redirect")
	if err != nil {
		return nil, err
	}
	return nil, w.Desk.Unredirect(ctx, principal(ctx), id)
}
