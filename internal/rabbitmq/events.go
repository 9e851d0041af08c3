package rabbitmq

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// eventLasts is how long dlo shows an event as a problem. It is a day, so that a person who looks
// in the morning sees an event of the night.
const eventLasts = 24 * time.Hour

// recordEvent records an event on one of dlo's queues. The event is shown as a problem for a day.
func (l *Link) recordEvent(p deadletter.Problem) {
	p.Broker, p.VHost, p.Since = l.broker.Name, l.vhost, time.Now()
	l.log.Warn("problem of a queue", "queue", p.Queue, "problem", p.Title, "text", p.Text, "cure", p.Cure)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.recentEvents(p.Key()), p)
}

// recentEvents returns the events of the last day. It leaves out the event whose key is the
// parameter "except".
func (l *Link) recentEvents(except string) []deadletter.Problem {
	var list []deadletter.Problem
	for _, p := range l.events {
		if time.Since(p.Since) < eventLasts && p.Key() != except {
			list = append(list, p)
		}
	}
	return list
}

// lostDeclaration returns a problem if the inbox or the exchange that dlo declared earlier does not
// exist any more. It returns nil if both exist or if this is unknown.
func (l *Link) lostDeclaration(conn *amqp.Connection, inbox string) *deadletter.Problem {
	p := &deadletter.Problem{
		Kind: deadletter.ProblemInboxUnbound, Severity: deadletter.SeverityPage, Inbox: inbox, Queue: inbox,
		Title: "Dead letters were not routed to inbox " + deadletter.Visible(inbox) + ".",
		Text: "The exchange " + deadletter.Visible(l.broker.Exchange) +
			" was gone: letters that died meanwhile are lost.",
		Cure: "It was declared again. Find out who deleted it.",
	}
	switch {
	case isGone(exists(conn, inbox)):
		p.Kind = deadletter.ProblemInboxDeleted
		p.Title = "Inbox " + deadletter.Visible(inbox) + " was deleted."
		p.Text = "The queue was deleted or expired, or this is another broker. Its messages are lost, and so are letters that died until now."
		return p
	case isGone(onChannel(conn, func(ch *amqp.Channel) error {
		return ch.ExchangeDeclarePassive(l.broker.Exchange, "fanout", true, false, false, false, nil)
	})):
		return p
	}
	return nil
}
