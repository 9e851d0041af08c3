package api

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// Finding is a fault of a vhost that loses dead letters or that can lose them.
type Finding struct {
	Kind      string    `json:"kind"` // a stable word, listed in docs/topology.md
	Severity  string    `json:"severity"`
	Broker    string    `json:"broker"` // "" in the check of a file
	VHost     string    `json:"vhost"`
	Queue     string    `json:"queue"` // "" if it is not about one queue
	Title     string    `json:"title"`
	Loses     string    `json:"loses"` // what is lost
	Why       string    `json:"why"`
	Sure      string    `json:"sure"`           // certain or likely
	Since     time.Time `json:"since,omitzero"` // missing if unknown
	Cure      string    `json:"cure"`
	Plannable bool      `json:"plannable"` // a policy cures it
}

// Look is the latest look at one vhost.
type Look struct {
	Broker string    `json:"broker"` // "" in the check of a file
	VHost  string    `json:"vhost"`
	ReadAt time.Time `json:"read_at,omitzero"` // missing if no look succeeded yet
	Failed string    `json:"failed"`           // why the latest look failed; "" if it succeeded
	Queues int       `json:"queues"`           // number of queues
	Gaps   []Gap     `json:"gaps"`
}

// Gap is a part of a vhost that could not be read.
type Gap struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// Topology is the response to GET /topology/findings.
type Topology struct {
	Findings []Finding `json:"findings"` // the most urgent of each vhost first
	Looks    []Look    `json:"looks"`
}

// NewTopology returns the response for reports on vhosts.
func NewTopology(reports []topology.Report) Topology {
	t := Topology{Findings: []Finding{}, Looks: []Look{}}
	for i := range reports {
		r := &reports[i]
		look := Look{Broker: r.Broker, VHost: r.VHost, ReadAt: r.ReadAt, Failed: r.Failed, Queues: r.Queues, Gaps: []Gap{}}
		for _, g := range r.Gaps {
			look.Gaps = append(look.Gaps, Gap{g.What, g.Why})
		}
		t.Looks = append(t.Looks, look)
		for j := range r.Findings {
			f := &r.Findings[j]
			t.Findings = append(t.Findings, Finding{
				Kind: string(f.Kind), Severity: string(f.Severity), Broker: f.Broker, VHost: f.VHost, Queue: f.Queue, Title: f.Title, Loses: f.Loses, Why: f.Why, Sure: string(f.Sure), Since: f.Since, Cure: f.Cure, Plannable: f.Plannable,
			})
		}
	}
	return t
}
