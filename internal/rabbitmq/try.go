package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// Try sends a message to the trial queue and also consumes from that queue. It rejects the message
// once, so that the broker dead-letters it to dlo. When the message comes again, Try acknowledges
// it. It calls the function onMessage each time. Try continues until ctx ends, and then deletes the
// queue if it is empty. If dlo is killed before that, the queue expires. Try does not touch a queue
// that belongs to another trial or to another owner. The error says why Try cannot continue. It is
// a *deadletter.TrialRefused if people can remove the cause.
func (l *Link) Try(ctx context.Context, m deadletter.TrialMessage, onMessage func(accepted bool)) error {
	conn, err := l.dial(ctx, "try")
	if err != nil {
		return err
	}
	defer conn.CloseDeadline(time.Now().Add(closeWait))
	if err := l.declareTrial(conn); err != nil {
		return err
	}
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	closed, canceled := ch.NotifyClose(make(chan *amqp.Error, 1)), ch.NotifyCancel(make(chan string, 1))
	deliveries, err := ch.Consume(deadletter.TrialQueue, "dlo", false, true, false, false, nil)
	if err != nil {
		return l.trialRefused(err)
	}
	defer onChannel(conn, func(ch *amqp.Channel) error { // nobody else consumes it
		_, err := ch.QueueDelete(deadletter.TrialQueue, false, true, false)
		return err
	})
	if err := l.sendTrial(ctx, conn, m); err != nil {
		return err
	}
	for rejected := false; ; {
		select {
		case d, ok := <-deliveries:
			if !ok {
				deliveries = nil // the channel closed contains the reason
				continue
			}
			if err := answerTrial(&d, m, &rejected, onMessage); err != nil {
				return err
			}
		case err := <-closed:
			return closeError(err)
		case <-canceled:
			return errors.New("the broker cancelled the consumer: someone deleted queue " + deadletter.TrialQueue)
		case <-ctx.Done():
			return nil
		}
	}
}

// answerTrial rejects the message of a trial once, and accepts it the next time. It acknowledges
// messages that an earlier trial left behind. It rejects a message from any other sender, so that
// the message becomes a letter and is not lost.
func answerTrial(d *amqp.Delivery, m deadletter.TrialMessage, rejected *bool, heard func(accepted bool)) error {
	_, made := d.Headers[deadletter.HeaderTrial]
	switch {
	case !made:
		return d.Reject(false)
	case d.MessageId != m.Properties.MessageID:
		return d.Ack(false)
	case *rejected:
		if err := d.Ack(false); err != nil {
			return err
		}
		heard(true)
		return nil
	}
	*rejected = true
	if err := d.Reject(false); err != nil {
		return err
	}
	heard(false)
	return nil
}

// declareTrial declares the trial queue. The queue expires, so it disappears even if dlo cannot
// delete it.
func (l *Link) declareTrial(conn *amqp.Connection) error {
	err := onChannel(conn, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(deadletter.TrialQueue, true, false, false, false, amqp.Table{
			"x-queue-type": "classic", "x-dead-letter-exchange": l.broker.Exchange,
			"x-expires": deadletter.TrialKept.Milliseconds(),
		})
		return err
	})
	if isCode(err, amqp.PreconditionFailed) {
		return &deadletter.TrialRefused{
			Why: fmt.Sprintf(
				"queue %s exists already, with other arguments than a trial uses (%s); it is left alone, and can be deleted if nobody needs it",
				deadletter.TrialQueue, brokerReason(err),
			),
			Cure: fmt.Sprintf(
				"rabbitmqctl delete_queue -p %s --if-empty --if-unused %s", quoted(l.vhost), deadletter.TrialQueue,
			),
		}
	}
	return l.trialRefused(err)
}

// trialRefused explains which permission is missing and how to grant it.
func (l *Link) trialRefused(err error) error {
	switch {
	case isCode(err, amqp.AccessRefused) && strings.Contains(err.Error(), "exclusive"):
		return &deadletter.TrialRefused{
			Why: fmt.Sprintf(
				"something else consumes queue %s: another trial may be under way (%s)", deadletter.TrialQueue,
				brokerReason(err),
			),
		}
	case isCode(err, amqp.AccessRefused):
		return &deadletter.TrialRefused{
			Why: fmt.Sprintf(
				"user %s lacks a permission that a trial needs (%s)", deadletter.Visible(l.user), brokerReason(err),
			),
			Cure: l.Status().Grant,
		}
	}
	return err
}

// sendTrial publishes the message of a trial and waits for the confirm.
func (l *Link) sendTrial(ctx context.Context, conn *amqp.Connection, m deadletter.TrialMessage) error {
	c, err := confirmingOn(conn, 1)
	if err != nil {
		return err
	}
	defer c.ch.Close()
	confirm, err := c.ch.PublishWithDeferredConfirm(
		"", deadletter.TrialQueue, true, false, publishing(m.Properties, m.Body),
	)
	if err != nil {
		return err
	}
	select {
	case <-confirm.Done():
	case err := <-c.closed:
		return l.trialRefused(closeError(err))
	case <-ctx.Done():
		return ctx.Err()
	}
	if !confirm.Acked() {
		select { // find out why the channel was closed
		case err := <-c.closed:
			return l.trialRefused(closeError(err))
		case <-time.After(time.Second):
			return fmt.Errorf("queue %s did not take the message of the trial", deadletter.TrialQueue)
		}
	}
	return nil
}
