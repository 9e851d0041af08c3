package rabbitmq

import (
	"context"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// Ask finds out what the broker permits dlo to do, and which settings of the broker could lose
// letters. It changes nothing: it takes no letter, declares only a queue that disappears with the
// connection, and does not disturb a running dlo. The parameter "annotations" is the name of the
// annotations queue, or "" if there is none.
func (l *Link) Ask(ctx context.Context, annotations string) deadletter.BrokerStatus {
	conn, err := l.dial(ctx, "check")
	if err != nil {
		l.updateStatus(func(s *deadletter.BrokerStatus) { s.Reason = err.Error() })
		return l.Status()
	}
	defer conn.CloseDeadline(time.Now().Add(closeWait))
	l.updateStatus(func(s *deadletter.BrokerStatus) { s.Connected, s.Reason = true, "" })
	l.mayWrite(ctx, conn)
	l.askForEpochs(conn)
	for i, q := range l.broker.Inboxes {
		l.askForInbox(ctx, conn, q, i == 0 && l.broker.Exchange != "")
	}
	if annotations != "" {
		l.needsAnnotations(annotations)
		if !isGone(exists(conn, annotations)) {
			_ = l.mayRead(conn, annotations)
		}
	}
	if l.management.Load() != nil {
		l.storeProblems(l.checkOwnQueues(ctx, false))
	}
	return l.Status()
}

// askForInbox reports why an inbox cannot be read. If the parameter "declared" is true, dlo
// declares the inbox at startup, so the inbox may be missing.
func (l *Link) askForInbox(ctx context.Context, conn *amqp.Connection, queue string, declared bool) {
	var err error
	if !declared {
		_, err = l.prepare(ctx, conn, queue, false, false)
	} else if isGone(exists(conn, queue)) {
		l.inboxStatus(queue, false, "")
		return
	}
	if err == nil {
		err = l.mayRead(conn, queue)
	}
	if err != nil {
		l.inboxStatus(queue, false, err.Error())
		return
	}
	l.inboxStatus(queue, true, "")
}

func exists(conn *amqp.Connection, queue string) error {
	_, err := queueState(conn, queue)
	return err
}

// queueState returns the numbers of messages and consumers of a queue. It uses a channel of its
// own, because the broker closes the channel if there is no such queue.
func queueState(conn *amqp.Connection, queue string) (state amqp.Queue, err error) {
	err = onChannel(conn, func(ch *amqp.Channel) (err error) {
		state, err = ch.QueueDeclarePassive(queue, true, false, false, false, nil)
		return err
	})
	return state, err
}
