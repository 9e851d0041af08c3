package server

import (
	"context"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// connectWait is how long people wait for the end of an attempt that they have asked for.
const connectWait = 3 * time.Second

// Connect tries at once to connect to a broker that is away. It returns when that was tried, or a
// few seconds later. The error wraps ErrForbidden or ErrNotFound; that the attempt failed is none.
func (s *Server) Connect(ctx context.Context, by deadletter.Principal, broker string) error {
	for i, b := range s.cfg.Brokers {
		if b.Name != broker {
			continue
		}
		if err := deadletter.Allow(by, deadletter.VerbConnect, deadletter.Origin{Broker: b.Name, VHost: s.links[i].VHost()}); err != nil {
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

// away says why nothing can be sent to the broker of an origin now.
func (s *Server) away(o deadletter.Origin) string { return deadletter.Away(s.brokers(), o) }
