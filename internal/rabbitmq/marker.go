package rabbitmq

import (
	"context"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// MakeMarker creates a marker, with which dlo can tell a broker restart from a lost connection. The
// marker is a durable classic queue with one transient message in it. Any restart drops the
// message, after a kill as well as after a clean stop (measured on 3.10.8, 4.0.5, 4.3.6,
// restart_marker_test.go). A transient exchange could also be a marker on 3.10 and 4.0, but 4.3
// keeps it after a restart.
//
// MakeMarker uses its own connection. A broker under a memory or disk alarm stops reading from
// connections that publish, and the acks of the inbox must still reach it. If the broker does not
// reply within markWait, there may be no marker, and the next reconnect counts as a restart.
func (i *Inbox) MakeMarker(name string) error {
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), markWait)
	defer cancel()
	go func() { done <- i.mark(ctx, name) }()
	select {
	case err := <-done:
		if isCode(err, amqp.AccessRefused) {
			return nil // without a marker, each reconnect counts as a restart
		}
		return err
	case <-ctx.Done():
		return nil
	}
}

const markWait = 5 * time.Second

func (i *Inbox) mark(ctx context.Context, name string) error {
	conn, err := i.link.dial(ctx, "marker "+i.queue)
	if err != nil {
		return err
	}
	go func() {
		<-ctx.Done()
		conn.CloseDeadline(time.Now().Add(time.Second)) // under an alarm, the broker does not reply to a normal close
	}()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if _, err := ch.QueueDeclare(name, true, false, false, false, amqp.Table{"x-queue-type": "classic"}); err != nil {
		return err
	}
	if err := ch.Confirm(false); err != nil {
		return err
	}
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	confirm, err := ch.PublishWithDeferredConfirm("", name, true, false, amqp.Publishing{
		DeliveryMode: amqp.Transient,
		Body:         []byte("Dead Letter Office leaves this here: when it is gone, the broker was restarted."),
	})
	if err != nil {
		return err
	}
	<-confirm.Done() // also closed when the connection ends
	if confirm.Acked() {
		return nil
	}
	// if the channel closed with a reason, the user may not publish; without one, the queue
	// rejected the message
	select {
	case err := <-closed:
		i.link.noteRight("write", defaultExchange, closeError(err))
	case <-time.After(time.Second):
	}
	if conn.IsClosed() {
		return nil
	}
	// A marker is a queue with one message, and a restart of the broker drops this message. Here
	// dlo could not put the message into the queue. If the queue stayed empty, dlo would later
	// conclude that the broker has restarted. dlo therefore deletes the queue.
	return onChannel(conn, func(ch *amqp.Channel) error {
		_, err := ch.QueueDelete(name, false, false, false)
		return err
	})
}

// markerState looks at a marker, which is a queue with one message that a broker restart drops. It
// returns whether the message is still there. If the queue itself is missing, it reports a problem.
func (i *Inbox) markerState(name string) (deadletter.MarkerState, error) {
	var found amqp.Queue
	asked := make(chan amqp.Queue, 1) // a late reply is dropped
	err := awaitReply(func() error {
		return onChannel(i.conn, func(ch *amqp.Channel) error {
			q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
			asked <- q
			return err
		})
	})
	if err == nil {
		found = <-asked
	}
	switch {
	case err == nil && found.Messages > 0:
		return deadletter.MarkerThere, nil
	case err == nil:
		return deadletter.MarkerEmptied, nil
	case i.conn.IsClosed():
		return deadletter.MarkerUnknown, err
	case isGone(err):
		i.link.recordEvent(deadletter.Problem{
			Kind: deadletter.ProblemOwnQueue, Severity: deadletter.SeverityNotify, Queue: name,
			Title: "The marker of inbox " + deadletter.Visible(i.queue) + " was gone.",
			Text:  "Its queue was deleted or expired, or the broker had no room when the marker was made. A restart of the broker does not delete the marker, but without it dlo cannot tell whether the broker was restarted since. Letters that come back are therefore compared with stored letters.",
			Cure:  "Find out who deletes queues, and whether a policy lets them expire.",
		})
		return deadletter.MarkerDeleted, nil
	}
	return deadletter.MarkerUnknown, nil // the user may not ask, or the node of the marker is down
}

// DeleteMarker deletes a marker that is no longer needed, if it exists. A marker is a queue with
// one message, and a broker restart drops this message. If the queue is on a cluster node that
// cannot be reached, DeleteMarker leaves the queue there, and returns no error.
func (i *Inbox) DeleteMarker(name string) error {
	if i.unlocked {
		return nil
	}
	err := awaitReply(func() error {
		return onChannel(i.conn, func(ch *amqp.Channel) error {
			_, err := ch.QueueDelete(name, false, false, false)
			return err
		})
	})
	if isCode(err, amqp.AccessRefused) || isAway(err) {
		return nil
	}
	return err
}
