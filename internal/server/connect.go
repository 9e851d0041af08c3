package server

import (
	"context"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// connectWait is how long people wait for the result of a connection attempt that they requested.
const connectWait = 3 * time.Second

// Connect immediately tries to connect to an unavailable broker. It returns after the attempt, or
// after a few seconds. The error wraps ErrForbidden or ErrNotFound; a failed attempt is not an
// error.
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

// away returns the reason why no letter can be sent to an origin's broker now. It returns "" if
// letters can be sent.
func (s *Server) away(o deadletter.Origin) string { return deadletter.Away(s.brokers(), o) }
