package topology_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// TestTheWayOfDeadLetters checks the Route of queues. Each case changes a correct vhost in one way.
func TestTheWayOfDeadLetters(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s *topology.Snapshot)
		want   string // the expected Route of the queue orders
	}{
		"healthy": {want: "dlo.dlx by policy dlo -> dlo.letters"},
		"none":    {func(s *topology.Snapshot) { s.Policies = nil }, "lost: no dead-letter exchange"},
		"missing": {
			func(s *topology.Snapshot) { s.Exchanges = nil },
			"dlo.dlx by policy dlo -> lost: the exchange does not exist",
		},
		"no route": {
			func(s *topology.Snapshot) { s.Bindings = nil },
			"dlo.dlx by policy dlo -> lost: the exchange has no binding",
		},
		"one key": {func(s *topology.Snapshot) {
			s.Exchanges[0].Type, s.Bindings[0].Key = "direct", "orders"
			s.Exchanges = append(s.Exchanges, topology.Exchange{Name: "events", Type: "direct"})
			s.Bindings = append(s.Bindings, bind("events", "orders", "other"))
		}, "dlo.dlx by policy dlo -> dlo.letters lost: those with key other reach no queue"},
		"expired messages only, and messages wait": {func(s *topology.Snapshot) {
			byHeaders("x-match", "all-with-x", "x-first-death-reason", "expired")(s)
			s.Queues[0].Arguments = definition("x-message-ttl", 1000)
		}, "dlx by policy dlo -> parked"},
		"expired messages only, and a consumer may reject some": {func(s *topology.Snapshot) {
			byHeaders("x-match", "all-with-x", "x-first-death-reason", "expired")(s)
			s.Queues[0].Arguments = definition("x-message-ttl", 1000)
			s.Queues[0].Consumers = topology.Figure{N: 1, Known: true}
		}, "dlx by policy dlo -> parked lost: rejected messages reach no queue"},
		"argument": {func(s *topology.Snapshot) {
			s.Queues[0] = classic("orders", "x-dead-letter-exchange", "", "x-dead-letter-routing-key", "dlo.letters")
		}, " by an argument of the queue key dlo.letters -> dlo.letters"},
		"at most once": {
			func(s *topology.Snapshot) { s.Queues[0] = quorum("orders") },
			"dlo.dlx by policy dlo -> dlo.letters at-most-once",
		},
		"at least once": {func(s *topology.Snapshot) {
			s.Queues[0] = quorum("orders")
			s.Policies[0] = policy(
				"dlo", "^orders$", 1, "dead-letter-exchange", "dlo.dlx", "dead-letter-strategy", "at-least-once",
				"overflow", "reject-publish",
			)
		}, "dlo.dlx by policy dlo -> dlo.letters at-least-once"},
		"many": {func(s *topology.Snapshot) {
			for i := range 7 {
				s.Queues = append(s.Queues, classic(fmt.Sprint("copy", i)))
				s.Bindings = append(s.Bindings, bind("dlo.dlx", fmt.Sprint("copy", i), ""))
			}
		}, "dlo.dlx by policy dlo -> dlo.letters copy0 copy1 copy2 copy3 and 3"},
		"unread": {
			func(s *topology.Snapshot) { s.Gaps = []topology.Gap{{What: topology.PartBindings}} },
			"dlo.dlx by policy dlo -> unknown",
		},
		"churn": {func(s *topology.Snapshot) {
			s.Gaps = []topology.Gap{{What: "some queues"}}
			s.Policies[0].Definition = definition("dead-letter-exchange", "", "dead-letter-routing-key", "parked")
		}, " by policy dlo key parked -> unknown"},
		"exclusive": {
			func(s *topology.Snapshot) { s.Queues[0].Exclusive = true }, "dlo.dlx by policy dlo -> not judged",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := site("4.3.6")
			if c.change != nil {
				c.change(s)
			}
			for _, d := range topology.ReportOn(s, topology.Options{Inboxes: []string{"dlo.letters"}}).All {
				switch got := wayOf(&d.Route); {
				case d.Name == "orders" && got != c.want:
					t.Errorf("%q, want %q", got, c.want)
				case d.Name == "dlo.letters" && (!d.Inbox || !d.Own || d.Route.Lost != ""):
					t.Errorf("the inbox: %+v", d)
				}
			}
		})
	}
}

// wayOf writes a route on one line.
func wayOf(r *topology.Route) string {
	var parts []string
	if r.Set {
		parts = append(parts, r.Exchange+" by "+r.From)
		if r.Fixed {
			parts = append(parts, "key "+r.Key)
		}
		parts = append(parts, "->")
	}
	parts = append(parts, r.Queues...)
	if r.More > 0 {
		parts = append(parts, fmt.Sprint("and ", r.More))
	}
	switch {
	case !r.Known:
		parts = append(parts, "unknown")
	case !r.Judged:
		parts = append(parts, "not judged")
	case r.Lost != "":
		parts = append(parts, "lost: "+r.Lost)
	}
	if r.Guarantee != "" {
		parts = append(parts, r.Guarantee)
	}
	return strings.Join(parts, " ")
}
