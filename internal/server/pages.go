package server

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/identity"
	"github.com/deadletteroffice/dlo/internal/requeue"
	"github.com/deadletteroffice/dlo/web"
	"github.com/deadletteroffice/dlo/web/view"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// createPages creates the web server of the pages and the API.
func (s *Server) createPages() {
	o := web.Options{
		Picker: s, Schemas: s.library, Bindings: s.cfg.Schemas.Bindings, FailureHeaders: s.cfg.FailureHeaders,
		Store: s.store, Desk: s.desk, Drains: s.Drains, Digests: s.digester, Reports: s.annotations, Log: s.log,
		Facts:     s.facts,
		Decoder:   s.decoderNow,
		Header:    s.masks.Header,
		Masked:    s.isMasked,
		Brokers:   s.brokers,
		Connector: s,
		Trials:    s.trials,
		Topology:  s.survey,
		Adoption:  s.adoption,
		Observing: observing(&s.cfg),
		Observed:  s.targets.Observed,
		Problems:  s.problems,
		Setup:     s.setup(),
		Links:     s.cfg.Links,
		Fields:    s.cfg.Search.Fields,
		Restore:   s.cfg.Retention.Discarded,
		Rules:     s.rules,
		Settings:  s,
		RuleFacts: s.classifier.Facts,
		Watch:     s.cfg.Requeue.Watch,
		Told:      s.problemChannels,
		Channels:  s.notifier,
		Disk:      s.space.Free,
		Doctor:    s.doctor,
		Backups:   s,
		Reload:    s.Reload,
		Hosts:     hostsOf(s.cfg, s.addresses()),
		MaxBody:   int(s.cfg.Requeue.MaxBody),
		Metrics:   s.metrics(),
		PublicURL: s.cfg.PublicURL,
		BasePath:  s.cfg.BasePath,
		Version:   s.version,
		Logged:    s.logged.requests(s.cfg.Log),
		Secure:    s.cfg.TLS.Cert != "" || strings.HasPrefix(s.cfg.PublicURL, "https:"),
	}
	if s.cfg.Auth.On() {
		asked := &permissions{ask: permissionsOf(s.links), now: time.Now, log: s.log}
		known := identity.Options{Proxy: s.cfg.Auth.Proxy, Grants: s.cfg.Grants, Permissions: asked.ofUser}
		if s.cfg.Auth.Tokens {
			known.Tokens, o.TokensOn = s.store, true
		}
		if s.cfg.Auth.Users {
			s.accounts = s.accountsOf(s.cfg.Auth)
			known.Users, known.Secure, o.Users = s.accounts, o.Secure, s.accounts
		}
		s.who = identity.New(known)
		o.Actor, o.Address, o.Granted, o.Requests = s.who.Of, s.who.Address, s.who.Granted, s.cfg.Requests
	}
	frozen := frozenBrokers(s.cfg)
	o.Restrict = func(p *deadletter.Principal) {
		p.Frozen = frozen
		switch s.standing() {
		case requeue.Twice:
			p.Fixed = "another dlo works with this store or a copy of it (problem store_twice)"
		case requeue.Behind:
			p.Fixed = "this store is an older copy, and dlo waits 20 s for another dlo that has the current one"
		}
		if s.cfg.ReadOnly {
			p.Fixed = "read_only is set"
		}
	}
	s.web = web.New(o)
	s.probes = s.web.Operations(s.cfg.OpsOpen)
}

// accountsOf returns the users of dlo itself. They stay as they are if the limits of sessions stay,
// so that failed attempts to sign in still count.
func (p *process) accountsOf(auth config.Auth) *identity.Accounts {
	a := p.current.Load().accounts
	if a == nil || a.SessionIdle != auth.SessionIdle || a.SessionLongest != auth.SessionLongest {
		a = identity.NewAccounts(p.store, nil)
		a.SessionIdle, a.SessionLongest = auth.SessionIdle, auth.SessionLongest
	}
	return a
}

// frozenBrokers returns the names of the brokers that are configured as read-only.
func frozenBrokers(cfg config.Config) (names []string) {
	for _, b := range cfg.Brokers {
		if b.ReadOnly {
			names = append(names, b.Name)
		}
	}
	return names
}

// metrics returns the handler of /metrics. A metric that cannot be read is left out and logged. A
// store that does not respond therefore does not affect the other metrics.
func (s *Server) metrics() http.Handler {
	s.Registry.MustRegister(problemCollector{s})
	s.Registry.MustRegister(pathCollector{s})
	s.Registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "dlo_ready",
		Help: "1 while /readyz answers 200: the store answers and a broker is connected; else 0.",
	}, func() float64 {
		if s.web.Ready(context.Background()) {
			return 1
		}
		return 0
	}))
	return promhttp.HandlerFor(s.Registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError,
		ErrorLog:      slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	})
}

// setup returns the example that the pages show at the first run. It uses the first broker for
// which the configuration names a dead-letter exchange, because a policy can name that exchange
// immediately.
func (s *Server) setup() view.Setup {
	i := max(0, slices.IndexFunc(s.cfg.Brokers, func(b config.Broker) bool { return b.Exchange != "" }))
	b := s.cfg.Brokers[i]
	return view.Setup{Broker: b.Name, Exchange: b.Exchange, Inbox: b.Inboxes[0], VHost: s.links[i].VHost()}
}

func (s *Server) brokers() []deadletter.BrokerStatus {
	list := make([]deadletter.BrokerStatus, len(s.links))
	for i, l := range s.links {
		list[i] = l.Status()
		b := &s.cfg.Brokers[i]
		list[i].Setting, list[i].Label, list[i].Colour = b.Setting, b.Label, b.Colour
	}
	return list
}

// observing returns a text that names the queues whose letters dlo only observes, according to the
// configuration.
func observing(cfg *config.Config) string {
	var list []string
	for _, b := range cfg.Brokers {
		switch {
		case len(b.Observe) == 1 && b.Observe[0] == "*":
			list = append(list, "all queues of broker "+b.Name)
		case len(b.Observe) > 0:
			list = append(list, strings.Join(b.Observe, ", ")+" of broker "+b.Name)
		}
	}
	return strings.Join(list, "; ")
}
