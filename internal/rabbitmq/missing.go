package rabbitmq

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// missing is what is known of a queue that the management API has no queue for. The broker itself
// is asked as well (isGone), as the URL of the API may lead to another broker, and as a node that
// is away has its queues with it. Where the broker gives no answer, nothing is known. Where there
// is no connection, or this user may not ask, the API is believed.
func (l *Link) missing(queue string) deadletter.QueueFacts {
	f := deadletter.UnknownQueue
	l.mu.Lock()
	conn := l.publish.conn
	l.mu.Unlock()
	if conn == nil {
		f.Known = true
		return f
	}
	answer := make(chan error, 1)
	go func() { // a queue without a leader answers after a minute, and the end of the connection is an answer too
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
