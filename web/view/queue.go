package view

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// QueuePage is the page of one queue.
type QueuePage struct {
	Shell
	Queue   WatchedQueue
	ReadAt  time.Time // when dlo last read the broker; zero if never
	Passive bool      // dlo reads the broker over AMQP, because there is no management API
	Retries deadletter.Queue
	Faults  []Fault
	Groups  []deadletter.GroupRow // the newest group comes first
	More    bool                  // there are more groups than are shown
	Arrived deadletter.Histogram  // the letters of the last 7 days
	Letters string                // the URL of the letters of the queue
	Triage  string                // the URL of the groups of the queue
	Past    []AuditRow            // the newest act comes first
	Audit   string                // the URL of the acts on the queue in the audit log
}

// place returns the broker and the vhost of the queue.
func (p QueuePage) place() string {
	return "vhost " + line(p.Queue.VHost, 80) + " of broker " + line(p.Queue.Broker, 80)
}

// way says whether dlo reads the queue's broker over AMQP or through the management API.
func (p QueuePage) way() string {
	if p.Passive {
		return overAMQP
	}
	return throughAPI
}
