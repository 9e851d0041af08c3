package topology

import (
	"maps"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Shovel is a dynamic shovel. It moves messages between queues or exchanges, which may be on other
// brokers.
type Shovel struct {
	Name string
	From string // the queue from which the shovel takes messages; "" = no queue of this vhost
	To   string // the queue into which the shovel puts messages; "" = no queue of this vhost

	// FromAt is the host in the source address of the shovel, and ToAt is the host in its
	// destination address. The host "" means this broker. Any other host may be this broker or
	// another one.
	FromAt, ToAt string
}

// federated is the list of the keys of a policy that link a queue or an exchange with other
// brokers.
var federated = []string{"federation-upstream", "federation-upstream-set"}

// checkMoved reports shovels and federation links that move messages into or out of a queue. It
// does not say whether messages are lost, because the snapshot does not show where they go.
func (in *inspector) checkMoved(v *view) {
	for _, s := range in.s.Shovels {
		if s.From != v.Name && s.To != v.Name {
			continue
		}
		does, at := "takes messages out of", s.FromAt
		if s.From != v.Name {
			does, at = "puts messages into", s.ToAt
		}
		sure, of := Certain, safeName(v.Name)
		if at != "" {
			sure, of = Likely, textf("a queue %s at %s, which may be this broker or another one", v.Name, at)
		}
		in.add(Finding{
			Kind: Moved, Queue: v.Name, Sure: sure,
			Title: textf("The shovel %s %s %s", s.Name, does, of),
			Loses: "nothing that dlo can see",
			Why:   "A shovel moves messages without a rejection, so dlo does not see what happens to them afterwards.",
			Cure:  "If the shovel takes dead letters somewhere else, dlo can drain the queue instead: see docs/adopting.md.",
		})
	}
	for _, p := range []*Policy{v.operator.winner, v.policy.winner} {
		if !p.federates() {
			continue
		}
		in.add(Finding{
			Kind: Moved, Queue: v.Name, cause: p.Name,
			Title: textf("Policy %s federates %s", p.Name, v.Name),
			Loses: "nothing that dlo can see",
			Why:   "A federated queue gets messages of other brokers while it has consumers. A message that is rejected here dies here.",
			Cure:  "Nothing has to change here. Adopt the queue on the other brokers as well.",
		})
	}
}

// federates reports whether a policy links queues or exchanges with other brokers. The policy may
// be nil.
func (p *Policy) federates() bool {
	return p != nil && slices.ContainsFunc(federated, func(key string) bool { return p.Definition[key] != nil })
}

// exchangesFederated reports exchanges that have bindings and that get messages from other brokers.
func (in *inspector) exchangesFederated() {
	exchanges := map[*Policy][]string{}
	for _, name := range slices.Sorted(maps.Keys(in.net.from)) {
		if x := in.net.exchanges[name]; x != nil && !x.Internal {
			p := in.net.ruleOf(x).winner
			exchanges[p] = append(exchanges[p], name)
		}
	}
	for i := range in.s.Policies {
		p := &in.s.Policies[i]
		if names := exchanges[p]; len(names) > 0 && p.federates() {
			in.add(Finding{
				Kind: Moved,
				Title: textf(
					"Policy %s federates %s: %s", p.Name, deadletter.Plural(len(names), "exchange", "exchanges"),
					nameList(names),
				),
				Loses: "nothing that dlo can see",
				Why:   "A federated exchange gets messages of other brokers as well. A message that is rejected here dies here.",
				Cure:  "Nothing has to change here. Adopt the queues on the other brokers as well.",
			})
		}
	}
}

// isFederation reports whether a queue belongs to a federation link, which declares and deletes the
// queue.
func (q *Queue) isFederation() bool {
	_, internal := q.Arguments.Text("x-internal-purpose")
	return internal || strings.HasPrefix(q.Name, "federation: ")
}
