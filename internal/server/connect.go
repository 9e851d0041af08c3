package server

import (
	"context"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// connectWait is how long a person waits for the result of a requested connection.
const connectWait = 3 * time.Second

// Connect tries immediately to connect to a broker that is unavailable. It returns after the
// attempt, or after a few seconds. Errors wrap ErrForbidden or ErrNotFound. A failed attempt is not
// an error.
func (s *Server) Connect(ctx context.Context, by deadletter.Principal, broker string) error {
	for i, b := range s.cfg.Brokers {
		if b.Name != broker {
			continue
		}
		if err := deadletter.Allow(by, deadletter.VerbConnect, deadletter.Origin{
			Broker: b.Name,
			VHost:  s.links[i].VHost(),
		}); err != nil {
			return err
		}
		s.log.Info("connecting now", "broker", b.Name, "by", by.Name)
		ctx, cancel := context.WithTimeout(ctx, connectWait)
		defer cancel()
		s.links[i].TryNow(ctx)
		return nil
	}
	return deadletter.NoSuch("broker %q in the configuration", deadletter.Visible(broker))
}

// whyAway returns why no letter can be sent to the broker of an origin now. If letters can be sent,
// it returns "".
func (s *Server) whyAway(o deadletter.Origin) string { return deadletter.Away(s.brokers(), o) }
