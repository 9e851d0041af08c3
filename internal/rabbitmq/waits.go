package rabbitmq

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// delayedType is the type of exchange that the plugin rabbitmq_delayed_message_exchange adds; no RabbitMQ has it by itself.
const delayedType = "x-delayed-message"

// refusedWaiter is a waiter that could not be made.
type refusedWaiter struct {
	again time.Time // when it is tried once more
	why   string
}

const waiterRest = time.Minute // before a waiter that could not be made is tried once more

// Takes says whether letters can wait behind a waiter of the broker now. The first time, and a minute after each failure, it makes sure of it; why not stands in Status.
func (l *Link) Takes(ctx context.Context, w deadletter.Wait) bool {
	l.mu.Lock()
	refused, known := l.refused[w.Waiter]
	l.mu.Unlock()
	if known && time.Now().Before(refused.again) {
		return false
	}
	return l.stand(ctx, w) == nil
}

// stand makes sure that a wait queue, its exchange and their binding are there: declared once for each publishing connection.
func (l *Link) stand(ctx context.Context, w deadletter.Wait) error {
	l.mu.Lock()
	conn, stands := l.publish.conn, l.publish.stands[w]
	l.mu.Unlock()
	if stands {
		return nil
	}
	if conn == nil {
		return fmt.Errorf("the broker is not connected")
	}
	err := l.declareWait(ctx, w)
	if err != nil {
		if err = explainWait(w, err); ctx.Err() != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		if before, known := l.refused[w.Waiter]; !known || before.why != err.Error() {
			l.log.Warn("letters wait in the store instead of the broker", "waiter", w.Waiter, "err", err)
		}
		l.refused[w.Waiter] = refusedWaiter{time.Now().Add(waiterRest), err.Error()}
	} else {
		delete(l.refused, w.Waiter)
		if l.publish.conn == conn {
			l.publish.stands[w] = true
		}
	}
	l.status.Note = ""
	for waiter, r := range l.refused {
		l.status.Note = join(l.status.Note, fmt.Sprintf("letters of the waiter %s wait in the store instead: %s", waiter, r.why))
	}
	return err
}

// declareWait works on a connection of its own, which a broker of 3.10 closes when it does not know the type of an exchange (503).
func (l *Link) declareWait(ctx context.Context, w deadletter.Wait) error {
	conn, err := l.dial(ctx, "waiter "+w.Waiter)
	if err != nil {
		return err
	}
	defer conn.CloseDeadline(time.Now().Add(closeWait))
	kind, args := "fanout", amqp.Table(nil)
	if w.Delayed {
		kind, args = delayedType, amqp.Table{"x-delayed-type": "fanout"}
	}
	// A length that a policy sets refuses letters, which then wait in the store; dropping the oldest would lose them.
	queue := amqp.Table{"x-queue-type": "quorum", "x-dead-letter-exchange": "", "x-overflow": "reject-publish"}
	if w.TTL >= 0 {
		queue["x-message-ttl"] = w.TTL.Milliseconds()
	}
	return onChannel(conn, func(ch *amqp.Channel) error {
		if err := ch.ExchangeDeclare(w.Exchange, kind, true, false, false, false, args); err != nil {
			return err
		}
		if _, err := ch.QueueDeclare(w.Queue, true, false, false, false, queue); err != nil {
			return err
		}
		return ch.QueueBind(w.Queue, "", w.Exchange, false, nil)
	})
}

// explainWait says what to do about a wait queue that cannot be declared.
func explainWait(w deadletter.Wait, err error) error {
	switch {
	case w.Delayed && strings.Contains(err.Error(), "unknown exchange type"): // 503 on 3.10.8, 406 on 4.0.5 and 4.3.6
		return fmt.Errorf("the broker has no exchange of type %s; enable its plugin rabbitmq_delayed_message_exchange, or choose the waiter message-ttl", delayedType)
	case isCode(err, amqp.AccessRefused):
		return fmt.Errorf("the user may not declare %s: it needs the right to configure, write and read ^dlo\\.wait\\. (%s)", w.Queue, reason(err))
	case isCode(err, amqp.PreconditionFailed):
		return fmt.Errorf("%s stands with other properties; delete it when it is empty, and it is made anew (%s)", w.Queue, reason(err))
	}
	return err
}
