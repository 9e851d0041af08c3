package web

import (
	"context"

	"github.com/deadletteroffice/dlo/internal/api"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Connector connects to brokers.
type Connector interface {
	// Connect tries to connect to a broker that is disconnected, without waiting for the next
	// attempt. It returns after the attempt, or after a few seconds. The error wraps ErrForbidden
	// or ErrNotFound. A failed attempt is not an error.
	Connect(ctx context.Context, by deadletter.Principal, broker string) error
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

// listBrokers returns the brokers in the order of the configuration, and whether they are
// connected. It has the state of each connection and inbox, and what the broker permits dlo to do.
func (w *Web) listBrokers(ctx context.Context, _ *struct{}) (*reply[api.Brokers], error) {
	return &reply[api.Brokers]{api.Brokers{Brokers: w.brokers(ctx)}}, nil
}

// getDoctor checks everything that dlo needs: brokers, rights, dead-letter paths, clock, store,
// disk, channels and schemas. A problem has a cure. Nothing is changed, and nothing is sent.
func (w *Web) getDoctor(ctx context.Context, _ *struct{}) (*reply[api.Doctor], error) {
	return &reply[api.Doctor]{api.Doctor{Checks: w.Doctor(ctx)}}, nil
}

// connectBroker tries at once to connect to a broker that is away. Instead of at the end of the
// back-off, which begins again. It answers when that was tried, or after 3 s; connected says what
// came of it. A broker that is connected is left alone, and none is tried more than twice a second.
// 404 when no broker of the configuration has this name.
func (w *Web) connectBroker(ctx context.Context, in *NamePath) (*reply[deadletter.BrokerStatus], error) {
	if err := w.Connector.Connect(ctx, principal(ctx), in.Name); err != nil {
		return nil, err
	}
	for _, b := range w.brokers(ctx) {
		if b.Name == in.Name {
			return &reply[deadletter.BrokerStatus]{b}, nil
		}
	}
	return nil, noSuch("broker", in.Name)
}
