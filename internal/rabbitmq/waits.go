package rabbitmq

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// delayedType is the exchange type that the plugin rabbitmq_delayed_message_exchange adds. The
// plugin is not part of RabbitMQ.
const delayedType = "x-delayed-message"

// refusedWaiter is a waiter (a way to let letters wait in the broker) that cannot be used now,
// because its queues could not be declared.
type refusedWaiter struct {
	again time.Time // when dlo tries again
	why   string
}

const waiterRest = time.Minute // how long dlo waits before it tries again to declare a waiter

// Takes reports whether dlo can publish letters now to all of the given wait queues, in which
// letters wait for their retry. All of them must belong to one waiter. If one of them is not known
// to exist, Takes declares them in the background. If that fails, it tries again a minute later,
// and Status has the reason.
func (l *Link) Takes(places ...deadletter.Wait) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range places {
		if l.publish.stands[w] {
			continue
		}
		if l.publish.conn != nil && !l.declaring && time.Now().After(l.refused[w.Waiter].again) {
			l.declaring = true
			go l.declare(l.publish.conn, places)
		}
		return false
	}
	return len(places) > 0
}

// hasWait reports whether a wait queue, its exchange and their binding are known to exist.
func (l *Link) hasWait(w deadletter.Wait) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.publish.stands[w]
}

// declare makes sure that the wait queues and exchanges of one waiter exist. A waiter is a way to
// let letters wait in the broker. declare is called once for each publishing connection.
func (l *Link) declare(publishing *amqp.Connection, places []deadletter.Wait) {
	waiter := places[0].Waiter
	err := l.declareWaits(places)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.declaring = false
	switch {
	case err != nil:
		if l.refused[waiter].why != err.Error() {
			l.log.Warn("letters wait in the store instead of the broker", "waiter", waiter, "err", err)
		}
		l.refused[waiter] = refusedWaiter{time.Now().Add(waiterRest), err.Error()}
	default:
		delete(l.refused, waiter)
		if l.publish.conn == publishing {
			for _, w := range places {
				l.publish.stands[w] = true
			}
			l.log.Info("letters can wait in the broker", "waiter", waiter)
		}
	}
	l.noteWaiters()
}

// noteWaiters records in the status which waiters cannot be used, and why. A waiter is a way to let
// letters wait in the broker. The caller must hold l.mu.
func (l *Link) noteWaiters() {
	l.status.Note = ""
	for _, waiter := range slices.Sorted(maps.Keys(l.refused)) {
		l.status.Note = joinReasons(
			l.status.Note,
			fmt.Sprintf("letters of the waiter %s wait in the store instead: %s", waiter, l.refused[waiter].why),
		)
	}
}

// declareWaits declares the wait queues of a waiter, and their exchanges. In a wait queue, letters
// wait in the broker for their retry. declareWaits uses its own connection, because a 3.10 broker
// closes the connection if it does not know an exchange type (503). The connection also has a time
// limit, because a declaration never ends if the queue has no leader.
func (l *Link) declareWaits(places []deadletter.Wait) error {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	conn, err := l.dial(ctx, "waiter "+places[0].Waiter)
	if err != nil {
		return err
	}
	defer conn.CloseDeadline(time.Now().Add(closeWait))
	for _, w := range places {
		if err := declareWait(conn, w); err != nil {
			return explainWait(w, err)
		}
	}
	return nil
}

func declareWait(conn *amqp.Connection, w deadletter.Wait) error {
	kind, args := "fanout", amqp.Table(nil)
	if w.Delayed {
		kind, args = delayedType, amqp.Table{"x-delayed-type": "fanout"}
	}
	// If a policy sets a length limit, the full queue must reject letters, which then wait in the
	// store. If the queue dropped its oldest letters instead, they would be lost.
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

// explainWait explains what to do about a wait queue that cannot be declared.
func explainWait(w deadletter.Wait, err error) error {
	switch {
	case w.Delayed && strings.Contains(err.Error(), "unknown exchange type"): // 503 on 3.10.8, 406 on 4.0.5 and 4.3.6
		return fmt.Errorf(
			"the broker has no exchange of type %s; enable its plugin rabbitmq_delayed_message_exchange, or choose the waiter message-ttl",
			delayedType,
		)
	case isCode(err, amqp.AccessRefused):
		return fmt.Errorf(
			"the user may not declare %s: it needs the right to configure, write and read ^dlo\\.wait\\. (%s)", w.Queue,
			brokerReason(err),
		)
	case isCode(err, amqp.PreconditionFailed):
		return fmt.Errorf(
			"%s exists with other properties; delete it once it is empty, and dlo makes it again (%s)", w.Queue,
			brokerReason(err),
		)
	}
	return err
}
