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
	"github.com/deadletteroffice/dlo/web"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// createPages creates the web server of the pages and the API.
func (s *Server) createPages() {
	o := web.Options{
		Picker: s, Schemas: s.library, Bindings: s.bindings(),
		Store: s.store, Desk: s.desk, Drains: s.Drains, Digests: s.digester, Reports: s.annotations, Log: s.log,
		Facts:     s.facts,
		Decoder:   s.decoderNow,
		Header:    s.masks.Header,
		Masked:    s.masks.Field,
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
		RuleFacts: s.classifier.Facts,
		Watch:     s.cfg.Requeue.Watch,
		Told:      s.problemChannels,
		Disk:      s.space.Free,
		Hosts:     hostsOf(s.cfg, s.addresses()),
		MaxBody:   int(s.cfg.Requeue.MaxBody),
		Metrics:   s.metrics(),
		PublicURL: s.cfg.PublicURL,
		BasePath:  s.cfg.BasePath,
		Secure:    s.cfg.TLS.Cert != "" || strings.HasPrefix(s.cfg.PublicURL, "https:"),
	}
	if s.cfg.Auth.On() {
		asked := &permissions{ask: permissionsOf(s.links), now: time.Now, log: s.log}
		known := identity.Options{Proxy: s.cfg.Auth.Proxy, Grants: s.cfg.Grants, Permissions: asked.ofUser}
		if s.cfg.Auth.Tokens {
			known.Tokens, o.TokensOn = s.store, true
		}
		if s.cfg.Auth.Users {
			s.accounts = identity.NewAccounts(s.store, nil)
			s.accounts.SessionIdle, s.accounts.SessionLongest = s.cfg.Auth.SessionIdle, s.cfg.Auth.SessionLongest
			known.Users, known.Secure, o.Users = s.accounts, o.Secure, s.accounts
		}
		s.who = identity.New(known)
		o.Actor, o.Address, o.Granted, o.Requests = s.who.Of, s.who.Address, s.who.Granted, s.cfg.Requests
	}
	if s.cfg.ReadOnly {
		o.Actor = withRestriction(o.Actor, func(p *deadletter.Principal) { p.Fixed = true })
	}
	if frozen := frozenBrokers(s.cfg); len(frozen) > 0 {
		o.Actor = withRestriction(o.Actor, func(p *deadletter.Principal) { p.Frozen = frozen })
	}
	s.web = web.New(o)
	s.http, s.ops = s.web.Server(), s.web.Server()
	s.ops.Handler = s.web.Operations(s.cfg.OpsOpen)
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

// withRestriction returns a function that finds the principal who makes a request. The function
// "restrict" can take rights away from the principal before the result is returned. If the function
// "actor" is nil, every request is made by the local user.
func withRestriction(actor func(*http.Request) (deadletter.Principal, error), restrict func(*deadletter.Principal)) func(*http.Request) (deadletter.Principal, error) {
	return func(r *http.Request) (deadletter.Principal, error) {
		p, err := deadletter.Local, error(nil)
		if actor != nil {
			p, err = actor(r)
		}
		restrict(&p)
		return p, err
	}
}

// metrics returns the handler of /metrics. A metric that cannot be read is left out and logged. A
// store that does not respond therefore does not affect the other metrics.
func (s *Server) metrics() http.Handler {
	s.Registry.MustRegister(problemCollector{s})
	s.Registry.MustRegister(pathCollector{s})
	s.Registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dlo_ready", Help: "1 while /readyz answers 200: the store answers and a broker is connected; else 0."}, func() float64 {
		if s.web.Ready(context.Background()) {
			return 1
		}
		return 0
	}))
	return promhttp.HandlerFor(s.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)})
}

// setup returns the example that the pages show at the first run. It uses the first broker for
// which the configuration names a dead-letter exchange, because a policy can name that exchange
// immediately.
func (s *Server) setup() web.Setup {
	i := max(0, slices.IndexFunc(s.cfg.Brokers, func(b config.Broker) bool { return b.Exchange != "" }))
	b := s.cfg.Brokers[i]
	return web.Setup{Broker: b.Name, Exchange: b.Exchange, Inbox: b.Inboxes[0], VHost: s.links[i].VHost()}
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
