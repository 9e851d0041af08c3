package api

import (
	"encoding/json"
	"time"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// Finding is one fault of a vhost that loses dead letters or that can lose them.
type Finding struct {
	Kind      string    `json:"kind"` // one of the words in docs/topology.md, which never change
	Severity  string    `json:"severity"`
	Broker    string    `json:"broker"` // "" = the finding is about a file
	VHost     string    `json:"vhost"`
	Queue     string    `json:"queue"` // "" if the finding is not about one queue
	Title     string    `json:"title"`
	Loses     string    `json:"loses"` // what is lost
	Why       string    `json:"why"`
	Sure      string    `json:"sure"`  // "certain" or "likely"
	Since     time.Time `json:"since"` // null = unknown
	Cure      string    `json:"cure"`
	Plannable bool      `json:"plannable"` // a policy cures it
}

// Look says when dlo last read one vhost, and which parts of the vhost it could not read.
type Look struct {
	Broker string    `json:"broker"` // "" = the look was at a file
	VHost  string    `json:"vhost"`
	ReadAt time.Time `json:"read_at,omitzero"` // missing = no look has succeeded yet
	Failed string    `json:"failed"`           // why the latest look failed; "" = it succeeded
	Queues int       `json:"queues"`           // number of queues in the vhost
	Gaps   []Gap     `json:"gaps"`
}

// Gap is a part of a vhost that could not be read.
type Gap struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// Topology is the response to GET /topology/findings.
type Topology struct {
	Findings []Finding `json:"findings"` // sorted by vhost; in each vhost, the most urgent first
	Looks    []Look    `json:"looks"`
}

// NewTopology returns the response for the reports on all vhosts.
func NewTopology(reports []topology.Report) Topology {
	t := Topology{Findings: []Finding{}, Looks: []Look{}}
	for i := range reports {
		r := &reports[i]
		look := Look{
			Broker: r.Broker,
			VHost:  r.VHost,
			ReadAt: r.ReadAt,
			Failed: r.Failed,
			Queues: r.Queues,
			Gaps:   []Gap{},
		}
		for _, g := range r.Gaps {
			look.Gaps = append(look.Gaps, Gap{g.What, g.Why})
		}
		t.Looks = append(t.Looks, look)
		for j := range r.Findings {
			f := &r.Findings[j]
			t.Findings = append(t.Findings, Finding{
				Kind:      string(f.Kind),
				Severity:  string(f.Severity),
				Broker:    f.Broker,
				VHost:     f.VHost,
				Queue:     f.Queue,
				Title:     f.Title,
				Loses:     f.Loses,
				Why:       f.Why,
				Sure:      string(f.Sure),
				Since:     f.Since,
				Cure:      f.Cure,
				Plannable: f.Plannable,
			})
		}
	}
	return t
}

// PlanRequest is the body of POST /topology/plan.
type PlanRequest struct {
	Broker string `json:"broker,omitzero"` // "" = all brokers
	VHost  string `json:"vhost,omitzero"`  // "" = all vhosts
	// names or globs; none = all queues with a finding that a policy cures
	Queues      []string `json:"queues,omitzero"`
	AtLeastOnce bool     `json:"at_least_once,omitzero"` // quorum queues should dead-letter at least once
}

// Plans is the response to POST /topology/plan.
type Plans struct {
	Plans []TopologyPlan    `json:"plans"` // one plan for each vhost
	Forms map[string]string `json:"forms"` // all plans in each of the formats rabbitmqctl and definitions
}

// TopologyPlan is a set of policies for one vhost.
type TopologyPlan struct {
	Broker      string    `json:"broker"`
	VHost       string    `json:"vhost"`
	AtLeastOnce bool      `json:"at_least_once"`
	Policies    []Planned `json:"policies"`
	Refused     []Refusal `json:"refused"`
	Drops       []Drop    `json:"drops,omitzero"` // planned queues that drop messages by design
	// YAML of the rule that discards the messages that these queues drop by design; missing if they
	// drop nothing
	Rule string `json:"rule,omitzero"`
}

// Drop is a queue that drops messages on purpose, for example because the messages expire, or
// because the queue has a length limit.
type Drop struct {
	Queue  string `json:"queue"`
	Limit  string `json:"limit"`   // for example message-ttl 60000
	PerDay *int64 `json:"per_day"` // expected number of messages per day; null = unknown
}

// Planned is one policy of a plan.
type Planned struct {
	Name       string          `json:"name"`
	Pattern    string          `json:"pattern"`
	ApplyTo    string          `json:"apply_to"`
	Priority   int             `json:"priority"`
	Definition json.RawMessage `json:"definition"` // the keys of the policy
	Queues     []string        `json:"queues"`     // queues to which the policy applies, without the queue dlo.probe.*
	Type       string          `json:"type"`       // type of the queues: classic or quorum
	// the policy whose keys the planned policy repeats; "" = no policy applies now
	Hides   string      `json:"hides"`
	Changes []KeyChange `json:"changes"` // changes of the keys that apply to the queues
}

// KeyChange says how a policy changes one key. Before and After are JSON, or "" if the key is not
// set.
type KeyChange struct {
	Key    string `json:"key"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Refusal is a queue that a plan does not change, and the reason.
type Refusal struct {
	Queue string `json:"queue"`
	Why   string `json:"why"`
}

// NewPlans returns the response for a list of plans.
func NewPlans(plans []topology.Plan) Plans {
	out := Plans{Plans: []TopologyPlan{}, Forms: map[string]string{}}
	for i := range plans {
		p := TopologyPlan{
			Broker:      plans[i].Broker,
			VHost:       plans[i].VHost,
			AtLeastOnce: plans[i].AtLeastOnce,
			Policies:    []Planned{},
			Refused:     []Refusal{},
		}
		for _, planned := range plans[i].Policies {
			one := Planned{
				Name:       planned.Name,
				Pattern:    planned.Pattern,
				ApplyTo:    planned.ApplyTo,
				Priority:   planned.Priority,
				Definition: planned.Definition.JSON(),
				Queues:     planned.Queues,
				Type:       planned.Type,
				Hides:      planned.Hides,
				Changes:    []KeyChange{},
			}
			for _, c := range planned.Changes {
				one.Changes = append(one.Changes, KeyChange(c))
			}
			p.Policies = append(p.Policies, one)
		}
		for _, r := range plans[i].Refused {
			p.Refused = append(p.Refused, Refusal(r))
		}
		for _, d := range plans[i].Drops {
			drop := Drop{Queue: d.Queue, Limit: d.Limit}
			if d.PerDay >= 0 {
				drop.PerDay = &d.PerDay
			}
			p.Drops = append(p.Drops, drop)
		}
		p.Rule = plans[i].Rule()
		out.Plans = append(out.Plans, p)
	}
	for _, f := range topology.Forms {
		out.Forms[string(f)] = topology.Render(plans, f)
	}
	return out
}
