// Package topology looks in a vhost for faults that lose dead letters, and plans policies that cure
// these faults. It has no side effects: it gets a snapshot and returns findings and plans.
// internal/rabbitmq reads snapshots from a broker. ReadDefinitions reads them from the definitions
// file that sites keep in Git.
package topology

import (
	"encoding/json"
	"slices"
	"time"
)

// Snapshot holds what is known about one vhost of a broker at one moment. Its JSON uses the field
// names that RabbitMQ's management API and definitions files share.
type Snapshot struct {
	Broker  string    // the name in dlo's configuration; "" for a file
	VHost   string    //
	Version string    // version of RabbitMQ, such as 3.10.8; "" = unknown
	ReadAt  time.Time // when the vhost was read; zero for a file

	// DefaultType is the type that queues without a type get; "" = classic. Only files need it.
	DefaultType string

	Queues    []Queue
	Exchanges []Exchange
	Bindings  []Binding
	Policies  []Policy
	Operators []Policy // operator policies
	Shovels   []Shovel // the dynamic shovels that the user may see
	Gaps      []Gap

	// Passive means that there is no management API, so that dlo could read only queues, over AMQP.
	// The field Queues then contains only the queues in which letters died.
	Passive bool

	// NoRates means that the broker does not report rates (rates_mode none). The Rates of each queue
	// are then zero and mean nothing.
	NoRates bool

	like     string         // the measured version whose rules apply to a file; "" = Version
	matching *time.Duration // what may still be used to evaluate slow patterns; nil = all of it
}

// WithInbox returns the vhost as it is after dlo has declared its dead-letter exchange and inbox.
func (s Snapshot) WithInbox(exchange, inbox string) Snapshot {
	if !slices.ContainsFunc(s.Exchanges, func(x Exchange) bool { return x.Name == exchange }) {
		s.Exchanges = append(slices.Clone(s.Exchanges), Exchange{Name: exchange, Type: "fanout", Durable: true})
		s.Queues = append(slices.Clone(s.Queues), Queue{Name: inbox, Type: "classic", Durable: true})
		s.Bindings = append(slices.Clone(s.Bindings), Binding{Source: exchange, Destination: inbox, To: "queue"})
	}
	return s
}

// Gap is a part of a vhost that could not be read. Findings that need this part are omitted.
type Gap struct {
	What string `json:"what"` // such as "bindings" or "queue a%FF"
	Why  string `json:"why"`
}

// These are the parts of a snapshot that all findings about paths need.
const (
	PartQueues    = "queues"
	PartExchanges = "exchanges"
	PartBindings  = "bindings"
	PartPolicies  = "policies"
	PartOperators = "operator policies"
)

// PartShovels names the shovels as a part of a snapshot. The findings about the paths of messages
// do not need this part.
const PartShovels = "shovels"

// lacksQueues reports whether the vhost may have queues that the snapshot lacks.
func (s *Snapshot) lacksQueues() bool {
	return slices.ContainsFunc(s.Gaps, func(g Gap) bool { return g.What != PartShovels })
}

// complete reports whether dlo could read all lists of the vhost that the findings about the paths
// of messages need: queues, exchanges, bindings, policies and operator policies. Even then, dlo may
// have failed to read single queues.
func (s *Snapshot) complete() bool {
	return !s.Passive && !slices.ContainsFunc(s.Gaps, func(g Gap) bool {
		return slices.Contains([]string{PartQueues, PartExchanges, PartBindings, PartPolicies, PartOperators}, g.What)
	})
}

// Unread returns why a part of the vhost could not be read. It returns "" if the part was read.
func (s *Snapshot) Unread(part string) string {
	for _, g := range s.Gaps {
		if g.What == part {
			return g.Why
		}
	}
	return ""
}

// Queue is a queue as the broker or a definitions file describes it. Arguments are the arguments
// with which it was declared.
type Queue struct {
	Name string `json:"name"`
	// classic, quorum, stream, or the type of a plugin; missing in definitions files from before
	// 4.0
	Type       string     `json:"type"`
	Durable    bool       `json:"durable"`
	AutoDelete bool       `json:"auto_delete"`
	Exclusive  bool       `json:"exclusive"`
	Arguments  Definition `json:"arguments"`
	Policy     *string    `json:"policy"` // the name of the policy that the broker applies; nil = unknown; "" = none
	// Effective holds what the policy and the operator policy of the queue set together, as the broker
	// reports it; nil = the broker does not say.
	Effective Definition `json:"effective_policy_definition"`
	// Limit is the delivery limit in force, as 4.3 reports it; negative = none.
	Limit DeliveryFigure `json:"delivery_limit"`

	Consumers Figure `json:"consumers"`
	Ready     Figure `json:"messages_ready"`
	Bytes     Figure `json:"message_bytes_ready"` // bytes in the bodies of the ready messages
	Unacked   Figure `json:"messages_unacknowledged"`
	Delayed   Figure `json:"messages_delayed"` // messages that delayed retry holds back (since 4.3)
	// Stuck is the number of dead letters that the queue still holds because at-least-once
	// dead-lettering waits for their target.
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
	Policy     *string    `json:"policy"` // the name of the policy that the broker applies; nil = unknown; "" = none
}

// Binding is a binding of a queue or an exchange to an exchange.
type Binding struct {
	Source      string     `json:"source"`
	Destination string     `json:"destination"`
	To          string     `json:"destination_type"` // "queue" or "exchange"
	Key         string     `json:"routing_key"`
	Arguments   Definition `json:"arguments"`

	words []string // the words of Key, in a network
}

// Policy is a RabbitMQ policy of either kind: one that users set, or an operator policy.
type Policy struct {
	Name    string `json:"name"`
	Pattern string `json:"pattern"`
	// queues, exchanges, all; from 3.12 on also classic_queues, quorum_queues, streams; "" = all
	ApplyTo    string     `json:"apply-to"`
	Priority   int        `json:"priority"`
	Definition Definition `json:"definition"`

	compiled *compiled // the compiled Pattern, as soon as it was needed once
}

// Figure is a number that a broker may omit. The zero value means that the number is unknown, not
// that it is 0.
type Figure struct {
	N     int64
	Known bool
}

// UnmarshalJSON never fails, because one number that cannot be read must not hide the other fields
// of a queue.
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

// DeliveryFigure is a delivery limit that the broker reports as a number, or as the text
// "unlimited" (4.3.6).
type DeliveryFigure struct{ Figure }

// UnmarshalJSON never fails, as for any Figure.
func (f *DeliveryFigure) UnmarshalJSON(text []byte) error {
	if string(text) == `"unlimited"` {
		f.Figure = Figure{-1, true}
		return nil
	}
	return f.Figure.UnmarshalJSON(text)
}
