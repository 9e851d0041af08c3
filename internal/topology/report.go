package topology

import "time"

// Report is the result of the latest look at one vhost.
type Report struct {
	Broker string    `json:"broker"` // "" for a file
	VHost  string    `json:"vhost"`
	ReadAt time.Time `json:"read_at,omitzero"` // zero for a file, or if no look has succeeded yet
	Failed string    `json:"failed"`           // why the latest look failed; "" = it succeeded
	// UnknownSince says since when a part of the vhost is unknown. It is the time at which dlo last
	// read the whole vhost, or the start of dlo. It is zero if dlo read the whole vhost this time.
	UnknownSince time.Time   `json:"-"`
	Passive      bool        `json:"-"`      // the look used AMQP only, because there is no management API
	Queues       int         `json:"queues"` // number of queues in the vhost
	Findings     []Finding   `json:"-"`
	Gaps         []Gap       `json:"gaps"`
	All          []Described `json:"-"` // all queues, sorted by name
}

// ReportOn inspects a snapshot.
func ReportOn(s *Snapshot, o Options) Report {
	in := inspect(s, o)
	return Report{
		Broker: s.Broker, VHost: s.VHost, ReadAt: s.ReadAt, Passive: s.Passive,
		Queues: len(s.Queues), Findings: in.found, Gaps: s.Gaps, All: in.describe(),
	}
}
