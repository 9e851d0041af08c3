package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// Probe declares a temporary queue of the given type and rejects one message in it. It waits until
// somebody closes the channel "arrived", and then deletes the queue. If dlo is killed before that,
// the queue expires. The queue has no argument for a dead-letter exchange, so only a policy can
// lead the message to dlo.
func (l *Link) Probe(
	ctx context.Context, queue, kind string, m deadletter.TrialMessage, arrived <-chan struct{},
) error {
	conn, err := l.dial(ctx, "probe")
	if err != nil {
		return err
	}
	defer conn.CloseDeadline(time.Now().Add(closeWait))
	if err := onChannel(conn, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(queue, true, false, false, false, amqp.Table{
			"x-queue-type": kind, "x-expires": deadletter.ProbeKept.Milliseconds(),
		})
		return err
	}); err != nil {
		return fmt.Errorf("declare queue %s: %w", queue, err)
	}
	defer onChannel(conn, func(ch *amqp.Channel) error { // nobody else uses it
		_, err := ch.QueueDelete(queue, false, false, false)
		return err
	})
	l.crash("probe: declared")
	c, err := confirmingOn(conn, 1)
	if err != nil {
		return err
	}
	confirm, err := c.ch.PublishWithDeferredConfirm("", queue, true, false, publishing(m.Properties, m.Body))
	if err != nil {
		return fmt.Errorf("publish to queue %s: %w", queue, err)
	}
	select {
	case <-confirm.Done():
	case err := <-c.closed:
		return fmt.Errorf("publish to queue %s: %w", queue, closeError(err))
	case <-ctx.Done():
		return fmt.Errorf("queue %s did not confirm the message in time", queue)
	}
	if !confirm.Acked() {
		return fmt.Errorf("queue %s refused the message: the policy limits the length of its queues", queue)
	}
	l.crash("probe: published")
	return l.rejectUntil(ctx, c.ch, queue, arrived)
}

// rejectUntil takes messages from the probe queue and rejects them, until somebody closes the
// channel "arrived". If the policy under test also sets a length limit or a time-to-live, the
// message can die in that way before rejectUntil takes it.
func (l *Link) rejectUntil(ctx context.Context, ch *amqp.Channel, queue string, arrived <-chan struct{}) error {
	for {
		d, ok, err := ch.Get(queue, false)
		if err == nil && ok {
			err = d.Reject(false)
		}
		if err != nil {
			return fmt.Errorf("reject the message of queue %s: %w", queue, err)
		}
		if ok {
			l.crash("probe: rejected")
		}
		select {
		case <-arrived:
			return nil
		case <-ctx.Done():
			return errors.New("the message was rejected and did not arrive in time")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// DeleteProbe deletes the probe queue that a killed dlo left behind, if it exists.
func (l *Link) DeleteProbe(ctx context.Context, queue string) error {
	conn, err := l.dial(ctx, "probe")
	if err != nil {
		return err
	}
	defer conn.CloseDeadline(time.Now().Add(closeWait))
	return onChannel(conn, func(ch *amqp.Channel) error {
		_, err := ch.QueueDelete(queue, false, false, false)
		return err
	})
}
