package view

import (
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// QueuePage is the page of one queue.
type QueuePage struct {
	Shell
	Queue   WatchedQueue
	Several bool            // there are several brokers or vhosts
	Look    topology.Report // what dlo last read of the broker
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
