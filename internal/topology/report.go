package topology

import "time"

// Report is the result of the latest look at one vhost.
type Report struct {
	Broker string
	VHost  string
	ReadAt time.Time // when the snapshot was read; zero for a file, or if no look has succeeded yet
	Failed string    // why the latest look failed; "" = it succeeded
	// UnknownSince says since when a part of the vhost is unknown. It is the time at which dlo last
	// read the whole vhost, or the start of dlo. It is zero if dlo read the whole vhost this time.
	UnknownSince time.Time
	Passive      bool // the look used AMQP only, because there is no management API
	Queues       int  // number of queues in the vhost
	Findings     []Finding
	Gaps         []Gap
	All          []Described // all queues, sorted by name
}

// ReportOn inspects a snapshot.
func ReportOn(s *Snapshot, o Options) Report {
	in := inspect(s, o)
	return Report{
		Broker:   s.Broker,
		VHost:    s.VHost,
		ReadAt:   s.ReadAt,
		Passive:  s.Passive,
		Queues:   len(s.Queues),
		Findings: in.found,
		Gaps:     s.Gaps,
		All:      in.describe(),
	}
}
