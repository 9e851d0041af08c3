package server

import (
	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/trial"
)

// trialBrokers returns the brokers in the form that trials use.
func (s *Server) trialBrokers() []trial.Broker {
	var list []trial.Broker
	for i := range s.cfg.Brokers {
		b, link := &s.cfg.Brokers[i], s.links[i]
		list = append(list, trial.Broker{
			Name:    b.Name,
			VHost:   link.VHost(),
			Unable:  noTrial(b),
			Try:     link.Try,
			Unready: func() string { return notYet(link.Status()) },
		})
	}
	return list
}

// noTrial returns the reason why the configuration of a broker does not allow a trial. If a trial
// is allowed, noTrial returns "".
func noTrial(b *config.Broker) string {
	name := deadletter.Visible(b.Name)
	switch {
	case b.Exchange == "":
		return "broker " + name + " has no dead-letter exchange in the configuration, and the test letter needs one"
	case b.Origins[b.Inboxes[0]] != "":
		return "all letters of inbox " + deadletter.Visible(b.Inboxes[0]) + " are of queue " +
			deadletter.Visible(b.Origins[b.Inboxes[0]]) +
			" by the configuration, so dlo could not tell a test letter from them"
	}
	return ""
}

// notYet returns the reason why a test letter cannot arrive yet. If a test letter can arrive,
// notYet returns "".
func notYet(b deadletter.BrokerStatus) string {
	if away := b.Away(); away != "" {
		return away
	}
	if i := b.Inboxes[0]; !i.Draining {
		return "inbox " + deadletter.Visible(i.Queue) + " is not read yet: " + i.Reason
	}
	return ""
}
