package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// inboxFacts is what was learnt about an inbox before draining it.
type inboxFacts struct {
	quorum  bool
	known   bool // its type is known
	limited bool // the broker may delete letters from it after lost connections
	note    string
}

// errNotDrained says that an inbox is left alone on purpose; it is asked about again later.
var errNotDrained = errors.New("not drained")

// prepare declares the first inbox, its exchange and their binding, and finds out whether draining an inbox is safe: a quorum queue of 4.0 and later deletes a letter
// after its delivery limit of lost connections (100 of 100 letters were gone at the 22nd connect with the default limit, measured on 4.0.5), unless the limit is -1.
func (l *Link) prepare(ctx context.Context, conn *amqp.Connection, queue string) (inboxFacts, error) {
	version := l.Status().Version
	var facts inboxFacts
	if queue == l.broker.Inboxes[0] && l.broker.Exchange != "" {
		declared, note, err := l.declareOwn(conn, version, queue)
		if err != nil {
			return facts, err
		}
		facts.note = note
		if declared {
			facts.quorum, facts.known = true, true
			return facts, nil
		}
	} else if err := onChannel(conn, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		return err
	}); err != nil {
		if isCode(err, amqp.NotFound) {
			return facts, fmt.Errorf("%w: there is no queue %s; declare it, or take it out of inboxes", errNotDrained, deadletter.Visible(queue))
		}
		if !isCode(err, amqp.AccessRefused) { // a user without configure rights may still consume (4.3.0 wants them for a passive declare)
			return facts, err
		}
	}
	if l.management != nil {
		q, err := l.management.Queue(ctx, l.vhost, queue)
		if err == nil && q.Type != "" {
			facts.known, facts.quorum = true, q.Type == "quorum"
			limit, ok := q.deliveryLimit()
			facts.limited = facts.quorum && atLeast(version, 4, 0) && (!ok || limit != -1)
		}
	}
	if !facts.known && l.plainClassic(conn, queue) {
		facts.known = true
	}
	if !facts.known {
		facts.limited = atLeast(version, 4, 0)
	}
	if facts.limited && !slices.Contains(l.broker.AcceptLimited, queue) {
		why := "its delivery limit lets the broker delete letters after lost connections"
		if !facts.known {
			why = "without the management API nobody can say whether its delivery limit lets the broker delete letters after lost connections"
		}
		return facts, fmt.Errorf("%w: %s: %s. Set the policy delivery-limit to -1 on it (rabbitmqctl set_policy --apply-to queues dlo-no-limit '^%s$' '{\"delivery-limit\":-1}'), "+
			"or accept the risk with accept_limited: [%s]", errNotDrained, deadletter.Visible(queue), why, deadletter.Visible(queue), deadletter.Visible(queue))
	}
	return facts, nil
}

// declareOwn declares what dlo owns: a durable fanout exchange and a durable quorum queue without a delivery limit (on 3.x the limit -1 means 0, so there the argument is
// left out). Where something of that name exists with other arguments it is used as it is, with a note, and declared is false.
func (l *Link) declareOwn(conn *amqp.Connection, version, queue string) (declared bool, note string, err error) {
	args := amqp.Table{"x-queue-type": "quorum"}
	if atLeast(version, 4, 0) {
		args["x-delivery-limit"] = int64(-1)
	}
	err = onChannel(conn, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(queue, true, false, false, false, args)
		return err
	})
	switch {
	case err == nil:
		declared = true
	case isCode(err, amqp.PreconditionFailed), isCode(err, amqp.AccessRefused):
		note = fmt.Sprintf("queue %s is used as it is: %s", deadletter.Visible(queue), reason(err))
		if err := onChannel(conn, func(ch *amqp.Channel) error {
			_, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
			return err
		}); isCode(err, amqp.NotFound) {
			return false, "", fmt.Errorf("%w: there is no queue %s and this user may not declare it; declare it with a user that may", errNotDrained, deadletter.Visible(queue))
		}
	default:
		return false, "", fmt.Errorf("declare queue %s: %w", queue, err)
	}
	err = onChannel(conn, func(ch *amqp.Channel) error {
		return ch.ExchangeDeclare(l.broker.Exchange, "fanout", true, false, false, false, nil)
	})
	if err != nil && !isCode(err, amqp.PreconditionFailed) && !isCode(err, amqp.AccessRefused) {
		return false, "", fmt.Errorf("declare exchange %s: %w", l.broker.Exchange, err)
	}
	if err != nil {
		note = join(note, fmt.Sprintf("exchange %s is used as it is: %s", deadletter.Visible(l.broker.Exchange), reason(err)))
	}
	err = onChannel(conn, func(ch *amqp.Channel) error { return ch.QueueBind(queue, "", l.broker.Exchange, false, nil) })
	if err != nil && !isCode(err, amqp.AccessRefused) {
		return false, "", fmt.Errorf("bind %s to %s: %w", queue, l.broker.Exchange, err)
	}
	if err != nil {
		note = join(note, fmt.Sprintf("the binding of %s to %s could not be checked: %s", deadletter.Visible(queue), deadletter.Visible(l.broker.Exchange), reason(err)))
	}
	return declared, note, nil
}

// plainClassic says whether an existing queue is a durable classic queue without arguments: then it has no delivery limit.
func (l *Link) plainClassic(conn *amqp.Connection, queue string) bool {
	return onChannel(conn, func(ch *amqp.Channel) error {
		if _, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil); err != nil {
			return err
		}
		_, err := ch.QueueDeclare(queue, true, false, false, false, amqp.Table{"x-queue-type": "classic"})
		return err
	}) == nil
}

// onChannel runs fn on a throw-away channel: the broker closes it on any refusal.
func onChannel(conn *amqp.Connection, fn func(*amqp.Channel) error) error {
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	defer ch.Close()
	return fn(ch)
}

func isCode(err error, code int) bool {
	var e *amqp.Error
	return errors.As(err, &e) && e.Code == code
}

func reason(err error) string {
	var e *amqp.Error
	if errors.As(err, &e) {
		return deadletter.Visible(e.Reason)
	}
	return err.Error()
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
