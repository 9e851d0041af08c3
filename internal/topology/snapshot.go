// Package topology finds faults in a vhost that lose dead letters, and plans the cure. It has no
// side effects: it gets a snapshot and returns findings and plans. internal/rabbitmq reads
// snapshots from a broker, and ReadDefinitions reads them from the file that sites keep in Git.
package topology

import (
	"encoding/json"
	"slices"
	"time"
)

// Snapshot is what is known about one vhost of a broker at one moment. Its JSON uses the names that
// RabbitMQ's management API and definitions files share.
type Snapshot struct {
	Broker  string    // the name in dlo's configuration; "" for a file
	VHost   string    //
	Version string    // version of RabbitMQ, such as 3.10.8; "" = unknown
	ReadAt  time.Time // zero for a file

	Queues    []Queue
	Exchanges []Exchange
	Bindings  []Binding
	Policies  []Policy
	Operators []Policy // operator policies
	Shovels   []Shovel // dynamic shovels, as far as the user may see them
	Gaps      []Gap

	// Passive means that nothing but Queues was read, over AMQP, and that Queues are those in which
	// letters died. There is no management API to ask for the rest.
	Passive bool

	// NoRates means that the broker does not report rates (rates_mode none). The Rates of a queue
	// are then zero, and mean nothing.
	NoRates bool
}

// Gap is a part that could not be read. Findings that need this part are omitted.
type Gap struct {
	What string // such as "bindings" or "queue a%FF"
	Why  string
}

// These are the parts of a snapshot that all findings about paths need.
const (
	PartQueues    = "queues"
	PartExchanges = "exchanges"
	PartBindings  = "bindings"
	PartPolicies  = "policies"
	PartOperators = "operator policies"
)

// PartShovels is a part that no finding about paths needs.
const PartShovels = "shovels"

// lacksQueues reports whether queues may exist that the snapshot does not have.
func (s *Snapshot) lacksQueues() bool {
	return slices.ContainsFunc(s.Gaps, func(g Gap) bool { return g.What != PartShovels })
}

// complete reports whether all these parts could be read. Single queues may be missing.
func (s *Snapshot) complete() bool {
	return !s.Passive && !slices.ContainsFunc(s.Gaps, func(g Gap) bool {
		return slices.Contains([]string{PartQueues, PartExchanges, PartBindings, PartPolicies, PartOperators}, g.What)
	})
}

// Unread returns why a part could not be read, or "" if it was read.
func (s *Snapshot) Unread(part string) string {
	for _, g := range s.Gaps {
		if g.What == part {
			return g.Why
		}
	}
	return ""
}

// Queue is a queue as the broker or a file shows it. Arguments are the arguments of its
// declaration.
type Queue struct {
	Name       string     `json:"name"`
	Type       string     `json:"type"` // classic, quorum, stream, or the type of a plugin; missing in definitions from before 4.0
	Durable    bool       `json:"durable"`
	AutoDelete bool       `json:"auto_delete"`
	Exclusive  bool       `json:"exclusive"`
	Arguments  Definition `json:"arguments"`
	Policy     *string    `json:"policy"` // the name of the policy that the broker applies; nil = unknown; "" = none

	Consumers Figure `json:"consumers"`
	Ready     Figure `json:"messages_ready"`
	Bytes     Figure `json:"message_bytes_ready"` // the bodies of the ready messages
	Unacked   Figure `json:"messages_unacknowledged"`
	// Stuck is the number of messages that at-least-once dead-lettering holds back.
	Stuck Figure `json:"messages_dlx"`
	Rates Rates  `json:"message_stats"`
}

// Kind returns the type of a queue. If the type is unknown, it returns classic.
func (q *Queue) Kind() string {
	if q.Type != "" {
		return q.Type
	}
	if t, ok := q.Arguments.Text("x-queue-type"); ok {
		return t
	}
	return Classic
}

// These are the types of queues.
const (
	Classic = "classic"
	Quorum  = "quorum"
	Stream  = "stream"
)

// Exchange is an exchange.
type Exchange struct {
	Name       string     `json:"name"`
	Type       string     `json:"type"`
	Durable    bool       `json:"durable"`
	AutoDelete bool       `json:"auto_delete"`
	Internal   bool       `json:"internal"`
	Arguments  Definition `json:"arguments"`
}

// Binding leads from an exchange to a queue or to another exchange.
type Binding struct {
	Source      string     `json:"source"`
	Destination string     `json:"destination"`
	To          string     `json:"destination_type"` // queue or exchange
	Key         string     `json:"routing_key"`
	Arguments   Definition `json:"arguments"`
}

// Policy is a policy or an operator policy.
type Policy struct {
	Name       string     `json:"name"`
	Pattern    string     `json:"pattern"`
	ApplyTo    string     `json:"apply-to"` // queues, exchanges, all; from 3.12 on also classic_queues, quorum_queues, streams; "" = all
	Priority   int        `json:"priority"`
	Definition Definition `json:"definition"`

	compiled *compiled // compiled form of Pattern, once it was needed
}

// Figure is a number that a broker may omit. The zero value means unknown, not 0.
type Figure struct {
	N     int64
	Known bool
}

// UnmarshalJSON never fails, because one unreadable figure must not hide the rest of a queue.
func (f *Figure) UnmarshalJSON(text []byte) error {
	var n float64
	if string(text) != "null" && json.Unmarshal(text, &n) == nil {
		*f = Figure{int64(n), true}
	}
	return nil
}

// MarshalJSON writes null for an unknown figure.
func (f Figure) MarshalJSON() ([]byte, error) {
	if !f.Known {
		return []byte("null"), nil
	}
	return json.Marshal(f.N)
}
