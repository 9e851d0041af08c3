package web

import (
	"context"
	"net/http"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Connector connects to brokers.
type Connector interface {
	// Connect tries to connect to a broker that is disconnected, without waiting for the next attempt.
	// It returns after the attempt, or after a few seconds. The error wraps ErrForbidden or
	// ErrNotFound. A failed attempt is not an error.
	Connect(ctx context.Context, by deadletter.Principal, broker string) error
}

func (w *Web) connectNow(r *http.Request, broker string) error {
	switch {
	case w.Connector == nil:
		return deadletter.ErrUnavailable
	case w.draining():
		return errStopping
	}
	return w.Connector.Connect(r.Context(), principal(r), broker)
}

// connectBroker handles POST /brokers/connect, which the button in the banner sends.
func (w *Web) connectBroker(r *http.Request) (string, error) {
	if err := r.ParseForm(); err != nil {
		return "", formError(err)
	}
	return backTo(r, "/"), w.connectNow(r, r.PostFormValue("broker"))
}

// label returns the configured label of a broker. It returns "" if the broker has none.
func (w *Web) label(broker string) string {
	for _, b := range w.Brokers() {
		if b.Name == broker {
			return b.Label
		}
	}
	return ""
}

func apiBrokerOf(b deadletter.BrokerStatus) api.Broker {
	v := api.Broker{
		Name:      b.Name,
		VHost:     b.VHost,
		Label:     b.Label,
		Colour:    string(b.Colour),
		Connected: b.Connected,
		Reached:   b.Reached,
		Reason:    b.Reason,
		Blocked:   b.Blocked,
		Since:     api.At(b.Since),
		NextTry:   api.At(b.NextTry),
		Inboxes:   each(b.Inboxes, func(i deadletter.InboxStatus) string { return i.Queue }),
	}
	if b.Version != "" {
		v.Version = &b.Version
	}
	return v
}

// apiBrokers handles GET /brokers.
func (w *Web) apiBrokers(r *http.Request) (any, error) {
	return api.Brokers{Brokers: each(w.brokers(r.Context()), apiBrokerOf)}, nil
}

// apiConnectBroker handles POST /brokers/{name}/connect. It returns the status of the broker after
// the attempt.
func (w *Web) apiConnectBroker(r *http.Request) (any, error) {
	name := pathName(r, "name")
	if err := w.connectNow(r, name); err != nil {
		return nil, err
	}
	for _, b := range w.brokers(r.Context()) {
		if b.Name == name {
			return apiBrokerOf(b), nil
		}
	}
	return nil, noSuch("broker", name)
}
