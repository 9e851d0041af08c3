package server

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/adopt"
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/survey"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// linksOf returns one link for each broker of the configuration, in the same order. New links are
// not connected. A present link stays in use if nothing that concerns it has changed.
func linksOf(
	cfg config.Config, present []*rabbitmq.Link, log *slog.Logger, crash func(point string),
) ([]*rabbitmq.Link, error) {
	var links []*rabbitmq.Link
	for _, b := range cfg.Brokers {
		broker := rabbitmq.Broker{
			Name:           b.Name,
			URL:            b.URL,
			PasswordFile:   b.PasswordFile,
			Management:     b.Management,
			APIPassword:    b.APIPassword,
			Exchange:       b.Exchange,
			Inboxes:        b.Inboxes,
			AcceptLimited:  b.AcceptLimited,
			InFlight:       cfg.Requeue.InFlight,
			ConfirmTimeout: cfg.Requeue.ConfirmTimeout,
			Crash:          crash,
		}
		if i := slices.IndexFunc(present, func(l *rabbitmq.Link) bool { return l.Serves(&broker) }); i >= 0 {
			links = append(links, present[i])
			continue
		}
		link, err := rabbitmq.Connect(broker, log)
		if err != nil {
			return nil, wrong("%w", err)
		}
		links = append(links, link)
	}
	return links, nil
}

// loadReached reads from the store which brokers have been connected at least once, and passes this
// to the links.
func (s *Server) loadReached(ctx context.Context) error {
	reached, err := s.store.Reached(ctx)
	for i, b := range s.cfg.Brokers {
		if reached[[2]string{b.Name, s.links[i].VHost()}] {
			s.links[i].Reached()
		}
	}
	return err
}

// Ask connects to each broker of the configuration and returns what the broker allows dlo to do. It
// changes nothing on the brokers.
func Ask(ctx context.Context, cfg config.Config) ([]deadletter.BrokerStatus, error) {
	links, err := linksOf(cfg, nil, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return nil, err
	}
	var list []deadletter.BrokerStatus
	for i, link := range links {
		list = append(list, link.Ask(ctx, cfg.Brokers[i].Annotations))
	}
	return list, nil
}

// Explore connects to the first broker of the configuration and returns what it permits dlo to do,
// the names of its vhosts, and what the management API says about the vhost of the connection. If
// no management API is configured, Explore looks for one. The error says why there is none. Explore
// changes nothing on the broker.
func Explore(
	ctx context.Context, cfg config.Config,
) (status deadletter.BrokerStatus, vhosts []string, s topology.Snapshot, err error) {
	links, err := linksOf(cfg, nil, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return status, nil, s, err
	}
	b, link := &cfg.Brokers[0], links[0]
	if status = link.Ask(ctx, b.Annotations); !status.Connected {
		return status, nil, s, errors.New(status.Reason)
	}
	if looksForManagement(b) {
		_, err = link.FindManagement(ctx)
		status = link.Status()
	}
	if err == nil {
		if s, err = link.Snapshot(ctx); err == nil {
			vhosts, err = link.VHosts(ctx)
		}
	}
	return status, vhosts, s, err
}

// Look reads vhosts of a broker through the management API at a URL. The broker need not be in the
// configuration. If the list of vhosts is empty, Look reads all vhosts that the user may see. It
// changes nothing on the broker.
func Look(ctx context.Context, management string, vhosts []string) ([]topology.Snapshot, error) {
	return rabbitmq.Look(ctx, management, vhosts)
}

// Dropped returns how many messages a node has dropped since it started. These are messages that a
// consumer rejected and whose queue has no dead-letter exchange. The parameter "metrics" is the URL
// of the node's metrics. If it is "", Dropped uses the usual URL for a node with this management
// API.
func Dropped(ctx context.Context, management, metrics string) (int64, error) {
	return rabbitmq.Dropped(ctx, cmp.Or(metrics, rabbitmq.MetricsOf(management)))
}

// places returns the vhosts whose dead-letter paths dlo checks. Without a management API, dlo sees
// only what AMQP reports about the queues in which letters died.
func (s *Server) places() []survey.Place {
	var list []survey.Place
	for i, b := range s.cfg.Brokers {
		link := s.links[i]
		p := survey.Place{
			Broker:    b.Name,
			VHost:     link.VHost(),
			Inboxes:   b.Inboxes,
			Exchange:  b.Exchange,
			Intents:   b.Intents,
			IdleAfter: b.IdleAfter,
			Ready:     untilDrained(link),
		}
		p.Look = func(ctx context.Context) (topology.Snapshot, error) {
			if link.Managed() {
				return link.Snapshot(ctx)
			}
			queues, err := s.queuesOf(ctx, b.Name, link.VHost())
			if err != nil {
				return topology.Snapshot{}, err
			}
			return link.PassiveSnapshot(ctx, queues)
		}
		p.Applied = func(ctx context.Context) ([]topology.Planned, error) {
			if !link.Managed() {
				return nil, nil
			}
			return s.adoption.Applied(ctx, b.Name, link.VHost())
		}
		list = append(list, p)
	}
	return list
}

// looksForManagement reports whether dlo looks for the management API of a broker.
func looksForManagement(b *config.Broker) bool { return b.Management == "" && !b.NoManagement }

// findManagement looks once for the management API of each broker for which none is configured. It
// does so when dlo has first connected to the broker. Nothing waits for that.
func (s *Server) findManagement(ctx context.Context) error {
	var brokers sync.WaitGroup
	for i, link := range s.links {
		if b := &s.cfg.Brokers[i]; looksForManagement(b) {
			brokers.Go(func() { s.findManagementOf(ctx, b.Name, link) })
		}
	}
	brokers.Wait()
	return ctx.Err()
}

func (s *Server) findManagementOf(ctx context.Context, broker string, link *rabbitmq.Link) {
	if err := until(ctx, func() bool { return link.Status().Connected }); err != nil {
		return
	}
	address, err := link.FindManagement(ctx)
	switch {
	case err == nil:
		s.log.Info("the management API was found, and is not configured", "broker", broker, "address", address)
		s.survey.LookAgain(broker, link.VHost())
	case ctx.Err() == nil:
		s.log.Info("there is no management API in the configuration", "broker", broker, "err", err)
	}
}

// until waits until a condition is true.
func until(ctx context.Context, condition func() bool) error {
	for !condition() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

// queuesOf returns the queues of a vhost in which letters of the store died.
func (s *Server) queuesOf(ctx context.Context, broker, vhost string) ([]string, error) {
	counts, err := s.store.Queues(ctx)
	var list []string
	for _, q := range counts {
		if q.Origin.Broker == broker && q.Origin.VHost == vhost && q.Origin.Queue != "" {
			list = append(list, q.Origin.Queue)
		}
	}
	return list, err
}

// adoptions returns the vhosts in which dlo can set policies, as soon as it has a management API.
func (s *Server) adoptions() []adopt.Place {
	var list []adopt.Place
	for i, b := range s.cfg.Brokers {
		link := s.links[i]
		unready := func() string { return notYet(link.Status()) }
		if why := noTrial(&s.cfg.Brokers[i]); why != "" {
			unready = func() string { return why }
		}
		list = append(list, adopt.Place{
			Broker:      b.Name,
			VHost:       link.VHost(),
			Exchange:    b.Exchange,
			Intents:     b.Intents,
			Managed:     link.Managed,
			Unready:     unready,
			Look:        link.Snapshot,
			Policy:      link.Policy,
			Set:         link.SetPolicy,
			Delete:      link.DeletePolicy,
			Probe:       link.Probe,
			DeleteProbe: link.DeleteProbe,
		})
	}
	return list
}

// untilDrained returns a function that waits until dlo drains all inboxes of a link. By then, dlo
// has declared its exchange and its queues.
func untilDrained(l *rabbitmq.Link) func(context.Context) error {
	return func(ctx context.Context) error {
		return until(ctx, func() bool {
			return !slices.ContainsFunc(l.Status().Inboxes, func(i deadletter.InboxStatus) bool { return !i.Draining })
		})
	}
}
