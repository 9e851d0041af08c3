package rabbitmq

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// missingFacts returns what is known about a queue that the management API does not list. It also
// asks the broker over AMQP (isGone), because the URL of the API may lead to another broker, and
// because the API does not list the queues of an unreachable node. If the broker does not reply,
// nothing is known. If there is no connection, or if this user may not ask, dlo believes the API.
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
