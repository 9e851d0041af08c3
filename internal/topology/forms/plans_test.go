package forms

import (
	"encoding/json"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// plans returns plans for the cases that a real site can have: policies with further keys, a quorum
// queue that dead-letters at least once, and names with characters that must be escaped.
func plans(version string) map[string]topology.Plan {
	durable := func(kind string, names ...string) []topology.Queue {
		var list []topology.Queue
		for _, name := range names {
			list = append(list, topology.Queue{Name: name, Type: kind, Durable: true})
		}
		return list
	}
	snapshot := func(queues []topology.Queue, policies ...topology.Policy) *topology.Snapshot {
		return &topology.Snapshot{
			Version:   version,
			VHost:     "/",
			Queues:    append(queues, durable("quorum", "dlo.letters")...),
			Policies:  policies,
			Exchanges: []topology.Exchange{{Name: "dlo.dlx", Type: "fanout"}},
			Bindings:  []topology.Binding{{Source: "dlo.dlx", Destination: "dlo.letters", To: "queue"}},
		}
	}
	limits := topology.Policy{
		Name:     "limits",
		Pattern:  "",
		Priority: 3,
		ApplyTo:  "queues",
		Definition: topology.Definition{
			"max-length": json.Number("1000"), "message-ttl": json.Number("86400000"), "overflow": "reject-publish",
			"queue-mode": "lazy",
		},
	}
	plan := func(s *topology.Snapshot, atLeastOnce bool) topology.Plan {
		want := topology.Want{Exchange: "dlo.dlx", AtLeastOnce: atLeastOnce}
		for _, q := range s.Queues[:len(s.Queues)-1] {
			want.Queues = append(want.Queues, q.Name)
		}
		return topology.MakePlan(s, want)
	}
	return map[string]topology.Plan{
		"plain":     plan(snapshot(durable("classic", "orders", "mail")), false),
		"keys kept": plan(snapshot(durable("classic", "orders", "mail"), limits), false),
		"quorum":    plan(snapshot(durable("quorum", "billing")), true),
		"names": plan(
			snapshot(durable("classic", "a b", `back\slash`, `quote"s`, "${dollar}", "%{percent}", "bäume 樹", "a.b*c[d]{2}(e|f)^$+?", "#tag: x", "- dash", "x'y")),
			false,
		),
	}
}

// inTwoVHosts returns a plan together with two copies of it, one for another vhost and one for
// another broker.
func inTwoVHosts(plan *topology.Plan) []topology.Plan {
	elsewhere, away := *plan, *plan
	elsewhere.VHost, away.Broker = plan.VHost+"2", "away"
	return []topology.Plan{*plan, elsewhere, away}
}
