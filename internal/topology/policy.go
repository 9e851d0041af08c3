package topology

import "slices"

// KnownKeys are the settings of classic and quorum queues whose effect on an inbox dlo knows, in
// the spelling of policies. The source is the list of queue arguments and policy keys of 3.10.8,
// 4.0.5 and 4.3.6.
var KnownKeys = []string{
	"queue-type", "expires", "message-ttl", "dead-letter-exchange", "dead-letter-routing-key", "dead-letter-strategy",
	"max-length", "max-length-bytes",
	"max-in-memory-length", "max-in-memory-bytes", "overflow", "single-active-consumer", "max-priority", "queue-mode",
	"queue-version", "queue-master-locator",
	"queue-leader-locator", "quorum-initial-group-size", "initial-cluster-size", "quorum-target-group-size",
	"target-group-size", "delivery-limit", "consumer-timeout",
	"consumer-disconnected-timeout", "delayed-retry-type", "delayed-retry-min", "delayed-retry-max", "ha-mode",
	"ha-params", "ha-sync-mode", "ha-sync-batch-size",
	"ha-promote-on-shutdown", "ha-promote-on-failure", "federation-upstream", "federation-upstream-set",
	"federation-upstream-pattern", "internal-purpose", "internal-owner",
}

// applyTo lists, for each type of queue, the values of apply-to that include it.
var applyTo = map[string][]string{
	ofExchanges: {"", "all", "exchanges"},
	Classic:     {"", "all", "queues", "classic_queues"},
	Quorum:      {"", "all", "queues", "quorum_queues"},
	Stream:      {"", "all", "queues", "streams"},
}

// ofExchanges stands for a type of queue where policies of exchanges are found.
const ofExchanges = "exchange"

// matchesQueue reports whether a policy matches a queue. The policy then applies unless another one
// has a higher priority. The result "known" is false if dlo cannot evaluate the pattern.
func (s *Snapshot) matchesQueue(p *Policy, q *Queue) (matches, known bool) {
	if !slices.Contains(applyTo[q.Kind()], p.ApplyTo) {
		return false, true
	}
	return p.matchesName(q.Name, s.timeToMatch())
}

// rule says which policy of a list applies to a queue.
type rule struct {
	winner *Policy // the policy that applies; nil = none
	// the policy that dlo computes, if the broker applies another one or none; nil = dlo computes
	// none
	ignored *Policy
	differs bool // the broker applies another policy than dlo computes
	// other policies that match the queue at the same priority, so that the broker may apply any of
	// them
	tied   []*Policy
	losers []*Policy // policies that match the queue at lower priorities
	unsure []*Policy // policies whose pattern cannot be evaluated
	// policies that match the queue, but have a key that its type does not support, so that
	// RabbitMQ applies none of their keys; the highest priority first
	unfit []*Policy
	// unread is the name of a policy that the broker applies, but that is not among the policies;
	// "" = there is none
	unread string
}

// policyFor finds the policy that applies to a queue, which is the matching policy with the highest
// priority (measured on 3.10.8, 4.0.5, 4.3.6). The parameter "applied" is the name of the policy
// that the broker itself reports, "" if it reports that none applies, or nil if that is unknown. If
// the broker reports one, that one applies.
func (s *Snapshot) policyFor(policies []Policy, q *Queue, applied *string) rule {
	var r rule
	version := s.behaves()
	var takers []*Policy
	for i := range policies {
		p := &policies[i]
		takes, known := s.matchesQueue(p, q)
		unfit := p.unsupported(version, q.Kind()) != ""
		switch {
		case unfit && takes:
			r.unfit = append(r.unfit, p)
		case unfit:
		case !known:
			r.unsure = append(r.unsure, p)
		case takes:
			takers = append(takers, p)
		}
	}
	higher := func(a, b *Policy) int { return b.Priority - a.Priority }
	slices.SortStableFunc(takers, higher)
	slices.SortStableFunc(r.unfit, higher)
	for _, p := range takers {
		switch {
		case r.winner == nil:
			r.winner = p
		case p.Priority < r.winner.Priority:
			r.losers = append(r.losers, p)
		case applied != nil && *applied == p.Name:
			r.winner, r.tied = p, append(r.tied, r.winner)
		default:
			r.tied = append(r.tied, p)
		}
	}
	if applied != nil {
		r.decide(policies, version, *applied)
	}
	return r
}

// decide applies the policy that the broker reports as applied. The patterns that dlo cannot
// evaluate are then no longer needed. A policy that is not in the list has been deleted or created
// in the meantime, so it decides nothing.
func (r *rule) decide(policies []Policy, version, applied string) {
	at := slices.IndexFunc(policies, func(p Policy) bool { return p.Name == applied })
	switch {
	case at < 0 && applied != "":
		r.unsure, r.unread = nil, applied
		return
	case r.winner != nil && r.winner.Name == applied:
		r.unsure = nil
		return
	}
	named := func(p *Policy) bool { return p.Name == applied }
	// of a version between two measured ones, dlo does not know the keys for certain
	fits := slices.ContainsFunc(r.unfit, named) && len(measuredAround(version)) > 1
	switch unsure := slices.ContainsFunc(r.unsure, named); {
	case !unsure && !fits:
		r.ignored, r.differs = r.winner, r.winner != nil || at >= 0
	case r.winner != nil:
		r.losers = append([]*Policy{r.winner}, r.losers...)
	}
	r.winner, r.tied, r.unsure = nil, nil, nil
	r.unfit = slices.DeleteFunc(r.unfit, named)
	if at < 0 {
		r.losers = nil
		return
	}
	r.winner = &policies[at]
	r.losers = slices.DeleteFunc(r.losers, func(p *Policy) bool { return p == r.winner })
}

// definition returns the definition of a policy, or nil if the policy is nil.
func (p *Policy) definition() Definition {
	if p == nil {
		return nil
	}
	return p.Definition
}
