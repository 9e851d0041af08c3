package main

import (
	"errors"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/operation"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/store"
	"github.com/deadletteroffice/dlo/web"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

var (
	_ web.Store = (*store.Store)(nil)
	_ web.Desk  = (*operation.Desk)(nil)
)

// pages makes the web server over the rooms.
func (s *server) pages() {
	first := s.cfg.Brokers[0]
	s.web = web.New(web.Options{
		Store: s.store, Desk: s.desk, Log: s.log,
		Decoder:  func() *payload.Decoder { return s.decoder },
		Header:   s.masks.Header,
		Brokers:  s.brokers,
		Problems: s.problems,
		Setup:    web.Setup{Exchange: first.Exchange, Inbox: first.Inboxes[0], VHost: s.links[0].VHost()},
		Hosts:    web.Hosts(s.listener.Addr().String(), s.cfg.PublicURL, s.cfg.Hosts),
		Metrics:  promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{}),
	})
	s.http = s.web.Server()
}

func (s *server) brokers() []deadletter.BrokerStatus {
	list := make([]deadletter.BrokerStatus, len(s.links))
	for i, l := range s.links {
		list[i] = l.Status()
	}
	return list
}

// problems is what every page has to say.
func (s *server) problems() []web.Problem {
	var list []web.Problem
	if err := s.space.Room(); errors.Is(err, store.ErrNoRoom) {
		list = append(list, web.Problem{Title: "Nothing is taken in", Text: err.Error()})
	} else if err != nil {
		list = append(list, web.Problem{Title: "The disk cannot be watched", Text: err.Error()})
	}
	return list
}
