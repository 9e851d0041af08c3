package rabbitmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// Annotations is the queue into which consumers put the reasons why they rejected letters.
// Link.Annotations drains it.
type Annotations struct {
	Queue string
	// Take stores annotations. If it returns nil, they are acknowledged. After an error, they are
	// delivered again.
	Take func(ctx context.Context, list []deadletter.Annotation) error
	// Refused is called for each annotation that cannot be read. The annotation is dropped.
	Refused func()
	Crash   func(point string) // called at named points, for tests; nil in production

	dropped int // annotations refused since the last log line
	told    time.Time
}

const (
	annotationLinger = 5 * time.Millisecond // how long a batch waits for further annotations after its first one
	annotationRetry  = 5 * time.Second      // wait before the next attempt if the store accepts nothing
	// wait before the next attempt if the queue does not exist or may not be read
	annotationAsk  = time.Minute
	annotationTell = 10 * time.Second // minimum time between two log lines that report refused annotations
)

// Annotations drains a queue of annotations until ctx ends. Whenever a session ends, it opens
// another one. If it cannot read the queue, it only logs the reason, because consumers work without
// annotations. It logs a reason once, and logs again when the reason changes.
func (l *Link) Annotations(ctx context.Context, a Annotations) error {
	if a.Crash == nil {
		a.Crash = func(string) {}
	}
	l.needsAnnotations(a.Queue)
	var b backoff
	said := ""
	for ctx.Err() == nil {
		began, asked := time.Now(), l.tryRequests()
		err := l.annotations(ctx, &a, func() {
			if said != "" {
				l.log.Info("annotations connected", "queue", a.Queue)
			}
			said = ""
		})
		if ctx.Err() != nil {
			break
		}
		if time.Since(began) > steady {
			b.failures = 0
		}
		wait := b.next()
		if isCode(err, amqp.AccessRefused) || isCode(err, amqp.NotFound) {
			wait = annotationAsk // a person has to do something first
		}
		if text := brokerReason(err); text != said {
			said = text
			l.log.Warn("annotations not connected", "queue", a.Queue, "err", text)
		}
		b.waitOrAsked(ctx, wait, asked)
	}
	return nil
}

func (l *Link) needsAnnotations(queue string) {
	l.addRight(deadletter.Right{
		Operation: "read",
		Resource:  queue,
		For:       "reading what consumers say about their letters",
		Severity:  deadletter.SeverityNotify,
	})
}

// annotations drains a queue of annotations during one session. It returns when the session ends.
func (l *Link) annotations(ctx context.Context, a *Annotations, connected func()) error {
	// dialReading is needed because the client cannot read all headers; the headers of annotations
	// are not used
	conn, _, err := l.dialReading(ctx, "annotations "+a.Queue)
	if err != nil {
		return err
	}
	defer conn.CloseDeadline(time.Now().Add(closeWait))
	if err := l.declareAnnotations(conn, a.Queue); err != nil {
		return err
	}
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	closed, canceled := ch.NotifyClose(make(chan *amqp.Error, 1)), ch.NotifyCancel(make(chan string, 1))
	// RabbitMQ has no prefetch in bytes. Therefore the prefetch is firstPrefetch, as at the start
	// of an inbox, so that at most this many bodies of the maximum size are in memory.
	if err := ch.Qos(firstPrefetch, 0, false); err != nil {
		return err
	}
	deliveries, err := ch.Consume(a.Queue, "dlo", false, false, false, false, nil)
	l.noteRight("read", a.Queue, err)
	if err != nil {
		return err
	}
	connected()
	for {
		batch, err := annotationBatch(ctx, deliveries, canceled)
		if errors.Is(err, errEnded) {
			select {
			case err := <-closed:
				return closeError(err)
			case <-time.After(time.Second):
				return err
			}
		}
		if err != nil {
			return err
		}
		if err := l.take(ctx, a, batch); err != nil {
			return err
		}
		a.Crash("annotations: stored")
		if err := ch.Ack(batch[len(batch)-1].DeliveryTag, true); err != nil {
			return err
		}
	}
}

var errEnded = errors.New("the consumer ended")

// annotationBatch waits for a delivery. It returns this delivery together with those that arrive
// within annotationLinger after it.
func annotationBatch(
	ctx context.Context, deliveries <-chan amqp.Delivery, canceled <-chan string,
) ([]amqp.Delivery, error) {
	var batch []amqp.Delivery
	var linger <-chan time.Time
	for len(batch) < firstPrefetch {
		select {
		case d, ok := <-deliveries:
			if !ok {
				return nil, errEnded
			}
			if batch = append(batch, d); linger == nil {
				linger = time.After(annotationLinger)
			}
		case <-linger:
			return batch, nil
		case <-canceled:
			return nil, errors.New("the broker cancelled the consumer")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return batch, nil
}

// take stores those annotations of a batch that can be read, and retries until it succeeds. The
// broker and vhost of the link replace the broker and vhost that an annotation names. Annotations
// that cannot be read are counted, and acknowledged with the rest, because a retry would not help.
func (l *Link) take(ctx context.Context, a *Annotations, batch []amqp.Delivery) error {
	list := make([]deadletter.Annotation, 0, len(batch))
	var refused error // the first error
	for i := range batch {
		one, err := deadletter.ReadAnnotation(batch[i].Body)
		if err != nil {
			a.Refused()
			refused = cmp.Or(refused, err)
			continue
		}
		one.Broker, one.VHost = l.broker.Name, l.vhost
		list = append(list, one)
	}
	a.dropped += len(batch) - len(list)
	if refused != nil && time.Since(a.told) > annotationTell {
		l.log.Warn("annotations refused", "queue", a.Queue, "number", a.dropped, "err", refused)
		a.dropped, a.told = 0, time.Now()
	}
	for failures := 0; len(list) > 0; failures++ {
		err := a.Take(ctx, list)
		if err == nil {
			return nil
		}
		if failures == 0 {
			l.log.Error("annotations are not stored, and stay in their queue", "queue", a.Queue, "err", err)
		}
		if err := sleep(ctx, annotationRetry); err != nil {
			return err
		}
	}
	return nil
}

// declareAnnotations declares the queue of annotations with the arguments of an inbox. If the queue
// exists already, it is used unchanged. If the user may not declare the queue, declareAnnotations
// returns no error, because the user may still be able to read it.
func (l *Link) declareAnnotations(conn *amqp.Connection, queue string) error {
	err := onChannel(conn, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(queue, true, false, false, false, ownQueue(l.Status().Version))
		return err
	})
	if err == nil || isCode(err, amqp.PreconditionFailed) || isCode(err, amqp.AccessRefused) {
		return nil
	}
	return fmt.Errorf("declare queue %s: %w", queue, err)
}
