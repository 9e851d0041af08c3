package rabbitmq

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
	amqp "github.com/rabbitmq/amqp091-go"
)

// Remains is an object that dlo removed from a vhost or left in it. Why is "" if it was removed.
type Remains struct {
	What string // such as "queue dlo.letters"
	Why  string
}

// Leave removes the queues and the exchange of dlo from the vhost of the link. It recognises them
// by the prefix dlo., which is reserved for them. A queue with messages stays, except for the
// markers of inboxes. While dead letters of another queue still go to the exchange, Leave removes
// nothing and the error wraps ErrConflict. The error wraps ErrUnavailable if the vhost cannot be
// read.
func (l *Link) Leave(ctx context.Context) ([]Remains, error) {
	s, err := l.Snapshot(ctx)
	if err == nil && len(s.Gaps) > 0 {
		err = fmt.Errorf("%s: %s", s.Gaps[0].What, s.Gaps[0].Why)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", deadletter.ErrUnavailable, err)
	}
	if users := usersOf(&s, l.broker.Exchange); len(users) > 0 {
		return nil, fmt.Errorf("%w: dead letters of these queues still go to exchange %s, and would be lost: %s", deadletter.ErrConflict, deadletter.Visible(l.broker.Exchange), deadletter.Visible(strings.Join(users, ", ")))
	}
	conn, err := l.dial(ctx, "leave")
	if err != nil {
		return nil, err
	}
	defer conn.CloseDeadline(time.Now().Add(closeWait))
	var done []Remains
	if deadletter.OwnQueue(l.broker.Exchange) {
		done = append(done, removed("exchange "+l.broker.Exchange, onChannel(conn, func(ch *amqp.Channel) error { return ch.ExchangeDelete(l.broker.Exchange, false, false) })))
	}
	for i := range s.Queues {
		q := &s.Queues[i]
		if !deadletter.OwnQueue(q.Name) || q.Exclusive {
			continue
		}
		done = append(done, removed("queue "+deadletter.Visible(q.Name), onChannel(conn, func(ch *amqp.Channel) error {
			return deleteEmpty(ch, q.Name)
		})))
	}
	for _, inbox := range l.broker.Inboxes {
		if !deadletter.OwnQueue(inbox) {
			done = append(done, Remains{"queue " + deadletter.Visible(inbox), "it is an inbox that dlo may not have declared"})
		}
	}
	return done, nil
}

// deleteEmpty deletes a queue of dlo that has no messages and no consumers. It cannot use if-empty
// or if-unused, because quorum queues support neither (540 on 3.10.8, 4.0.5, 4.3.6), but nothing
// leads to the queue any more. The queue of an inbox marker is deleted although it holds a message
// of dlo.
func deleteEmpty(ch *amqp.Channel, name string) error {
	q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
	switch {
	case err != nil:
		return err
	case q.Consumers > 0:
		return fmt.Errorf("it has %d consumers", q.Consumers)
	case q.Messages > 0 && !strings.HasPrefix(name, "dlo.epoch."):
		return fmt.Errorf("it holds %d messages", q.Messages)
	}
	_, err = ch.QueueDelete(name, false, false, false)
	return err
}

// removed returns the result of deleting an object.
func removed(what string, err error) Remains {
	if err != nil && !isGone(err) {
		return Remains{what, why(err)}
	}
	return Remains{What: what}
}

// usersOf returns the queues, other than dlo's own, whose dead letters go to an exchange.
func usersOf(s *topology.Snapshot, exchange string) []string {
	var users []string
	for _, d := range topology.ReportOn(s, topology.Options{}).All {
		if exchange != "" && d.Route.Set && d.Route.Exchange == exchange && !d.Own {
			users = append(users, d.Name)
		}
	}
	slices.Sort(users)
	return users
}
