package topology

import "time"

// Report is the result of the latest look at one vhost.
type Report struct {
	Broker string
	VHost  string
	ReadAt time.Time // when the snapshot was read; zero for a file, or if no look has succeeded yet
	Failed string    // why the latest look failed; "" = it succeeded
	// UnknownSince is the time of the last look that read everything, or the start of dlo. Zero means
	// that the latest look read everything.
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
	return Report{Broker: s.Broker, VHost: s.VHost, ReadAt: s.ReadAt, Passive: s.Passive, Queues: len(s.Queues), Findings: in.found, Gaps: s.Gaps, All: in.describe()}
}
