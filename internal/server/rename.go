package server

import (
	"context"
	"slices"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// RenameBroker gives everything that the store has of the broker "from" to the broker "to" of the
// configuration. No dlo may run on the store at the same time.
func RenameBroker(ctx context.Context, cfg config.Config, from, to string) error {
	named := func(name string) bool {
		return slices.ContainsFunc(cfg.Brokers, func(b config.Broker) bool { return b.Name == name })
	}
	switch {
	case named(from):
		return wrong("broker %s is still in the configuration: change its name there first", deadletter.Visible(from))
	case !named(to):
		return wrong("there is no broker %s in the configuration", deadletter.Visible(to))
	}
	s, err := openStopped(ctx, cfg.Store, cfg.Brokers)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.RenameBroker(deadletter.Through(ctx, deadletter.WayCLI), from, to)
}
