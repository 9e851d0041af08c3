package view

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// QueuePage is the page of one queue.
type QueuePage struct {
	Shell
	Queue   WatchedQueue
	Policy  string    // the policy that applies to the queue; "" = none, or unknown
	ReadAt  time.Time // when the broker was read; zero = never
	Passive bool      // the broker was read over AMQP, because there is no management API
	Retries QueueRow
	Faults  []Fault
	Groups  []deadletter.GroupRow // newest first
	More    bool                  // there are more groups
	Arrived deadletter.Histogram  // letters of the last 7 days
	Letters string                // URL of the queue's letters
	Triage  string                // URL of the queue's groups
	Past    []AuditRow            // newest first
	Audit   string                // URL of the queue's audit entries
}

// place returns the broker and the vhost of the queue.
func (p QueuePage) place() string {
	return "vhost " + line(p.Queue.Origin.VHost, 80) + " of broker " + line(p.Queue.Origin.Broker, 80)
}

// way says how the broker was read.
func (p QueuePage) way() string {
	if p.Passive {
		return overAMQP
	}
	return throughAPI
}
