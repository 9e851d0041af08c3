package rabbitmq

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// missingFacts returns what is known about a queue that the management API does not list. It also
// asks the broker over AMQP (isGone) whether the queue exists. There are two reasons: the URL of
// the API may lead to another broker, and the API does not list the queues of an unreachable node.
//
// If the broker does not reply, dlo knows nothing about the queue. If there is no connection, or if
// dlo's user may not ask, dlo assumes that the queue does not exist.
func (l *Link) missingFacts(queue string) deadletter.QueueFacts {
	f := deadletter.UnknownQueue
	l.mu.Lock()
	conn := l.publish.conn
	l.mu.Unlock()
	if conn == nil {
		f.Known = true
		return f
	}
	answer := make(chan error, 1)
	go func() { // a queue without a leader replies after a minute; when the connection ends, the request ends too
		answer <- exists(conn, queue)
	}()
	select {
	case err := <-answer:
		f.Exists = err == nil || isCode(err, amqp.ResourceLocked)
		f.Known = f.Exists || isCode(err, amqp.AccessRefused) || isGone(err)
	case <-time.After(managementWait):
	}
	return f
}
