package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// messages is the number of messages that the shop sends before it stops.
const messages = 2000

// shop is the set of sample services: one publisher and three consumers.
type shop struct {
	connection  *amqp.Connection
	types       schemas
	annotations string // name of the queue for annotations; the broker drops annotations while it does not exist
	fixed       atomic.Bool
	sent        int // messages that the broker has confirmed
	tell        *teller
}

// serve runs the services until ctx is done or one of them fails. If an existing broker closes the
// connection, they go on with a new one.
func (s *shop) serve(ctx context.Context, b *broker) error {
	for {
		s.connection = b.connection
		err := s.run(ctx)
		if ctx.Err() != nil || !s.connection.IsClosed() {
			return err
		}
		if b.node != nil {
			return fmt.Errorf("RabbitMQ is gone: %w", err)
		}
		s.tell.say("the connection to RabbitMQ is lost; the services connect again")
		if err := await(ctx, b.connect); err != nil {
			return unlessDone(ctx, err)
		}
	}
}

// run runs the publisher and the consumers until ctx is done or one of them fails.
func (s *shop) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var parts sync.WaitGroup
	part := func(what string, run func(context.Context) error) {
		parts.Go(func() {
			if err := run(ctx); err != nil {
				cancel(fmt.Errorf("%s: %w", what, err))
			}
		})
	}
	for queue, work := range workers(s.types) {
		part(queue, func(ctx context.Context) error { return s.consume(ctx, queue, work) })
	}
	part("shop", s.send)
	<-ctx.Done()
	parts.Wait()
	return context.Cause(ctx)
}

// consume passes each message of a queue to the worker. It acks the message if the worker accepts
// it, and otherwise rejects it without requeue. This is all that dlo requires of a consumer. Before
// it rejects a message, it also publishes an annotation with the reason. Annotations are optional;
// see docs/consumers.md.
func (s *shop) consume(ctx context.Context, queue string, work worker) error {
	ch, err := s.connection.Channel()
	if err != nil {
		return err
	}
	defer ch.Close()
	if err := ch.Qos(16, 0, false); err != nil {
		return err
	}
	reports, err := s.connection.Channel()
	if err != nil {
		return err
	}
	defer reports.Close()
	deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case m, open := <-deliveries:
			if !open {
				if ctx.Err() != nil {
					return nil
				}
				return amqp.ErrClosed
			}
			if err := s.handle(ctx, queue, m, work, reports); err != nil {
				return err
			}
		}
	}
}

func (s *shop) handle(ctx context.Context, queue string, m amqp.Delivery, work worker, reports *amqp.Channel) error {
	what, refusal := work(m, s.fixed.Load())
	line, again := "", false
	if attempt, ok := m.Headers[deadletter.HeaderAttempt]; ok {
		line, again = fmt.Sprintf(" (attempt %v)", attempt), true
	}
	if refusal != "" {
		s.tell.worker(rejected, fmt.Sprintf("%s: rejected %s: %s%s", queue, what, refusal, line))
		report, err := annotation(queue, m, refusal)
		if err == nil {
			err = reports.PublishWithContext(ctx, "", s.annotations, false, false, amqp.Publishing{
				ContentType:  "application/json",
				DeliveryMode: amqp.Persistent,
				Body:         report,
			})
		}
		if err != nil {
			return unlessDone(ctx, err)
		}
		return m.Reject(false)
	}
	if again {
		s.tell.worker(accepted, fmt.Sprintf("%s: accepted %s%s", queue, what, line))
	}
	return m.Ack(false)
}

// send publishes the messages of the burst, and then one message a second. It waits for the
// broker's confirm of each message.
func (s *shop) send(ctx context.Context) error {
	ch, err := s.connection.Channel()
	if err != nil {
		return err
	}
	defer ch.Close()
	if err := ch.Confirm(false); err != nil {
		return err
	}
	from := samples{s.types, time.Now}
	first := burst()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for ; s.sent < messages; s.sent++ {
		n, k := s.sent, kind(0)
		if n < len(first) {
			k = first[n]
		} else {
			k = trickle(n - len(first))
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
		m, err := from.message(n, k)
		if err != nil {
			return err
		}
		confirm, err := ch.PublishWithDeferredConfirmWithContext(ctx, m.exchange, m.key, false, false, m.publishing)
		if err != nil {
			return unlessDone(ctx, err)
		}
		if acked, err := confirm.WaitContext(ctx); err != nil {
			return unlessDone(ctx, err)
		} else if !acked {
			return fmt.Errorf("RabbitMQ refused message %d", n)
		}
	}
	s.tell.say(fmt.Sprintf("the shop has sent its %d messages and is quiet from now on", messages))
	return nil
}

// unlessDone returns the given error. But if ctx is done, it returns nil, because the end of ctx
// has caused the error.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
