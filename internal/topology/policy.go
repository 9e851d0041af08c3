package topology

import (
	"regexp"
	"slices"
)

// unsupported lists, for each type of queue, the policy keys that it does not support. If a policy
// has one of these keys, RabbitMQ applies no key of the policy to a queue of that type. The source
// is the list of capabilities of the queue types of 3.10.8, 4.0.5 and 4.3.6.
var unsupported = map[string][]string{
	Classic: {
		"max-age", "stream-max-segment-size-bytes", "initial-cluster-size", "delivery-limit", "dead-letter-strategy",
		"target-group-size",
	},
	Quorum: {
		"max-priority", "queue-mode", "ha-mode", "ha-params", "ha-sync-mode", "ha-promote-on-shutdown",
		"ha-promote-on-failure", "queue-master-locator", "max-age", "stream-max-segment-size-bytes",
		"initial-cluster-size",
	},
	Stream: {
		"expires", "message-ttl", "dead-letter-exchange", "dead-letter-routing-key", "dead-letter-strategy",
		"max-length", "max-in-memory-length", "max-in-memory-bytes", "max-priority", "overflow", "queue-mode",
		"delivery-limit", "ha-mode", "ha-params", "ha-sync-mode", "ha-promote-on-shutdown", "ha-promote-on-failure",
		"queue-master-locator", "target-group-size",
	},
}

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
	Classic: {"", "all", "queues", "classic_queues"},
	Quorum:  {"", "all", "queues", "quorum_queues"},
	Stream:  {"", "all", "queues", "streams"},
}

// matchesQueue reports whether a policy matches a queue. The policy then applies unless another one
// has a higher priority. The result "known" is false if dlo cannot evaluate the pattern.
func (p *Policy) matchesQueue(q *Queue) (matches, known bool) {
	if !slices.Contains(applyTo[q.Kind()], p.ApplyTo) {
		return false, true
	}
	for key := range p.Definition {
		if slices.Contains(unsupported[q.Kind()], key) {
			return false, true
		}
	}
	return p.matchesName(q.Name)
}

// matchesName evaluates the pattern as RabbitMQ does: byte by byte, and not anchored. RabbitMQ uses
// PCRE, which has features that Go lacks, for example lookahead. The result "known" is false for a
// pattern with such a feature.
func (p *Policy) matchesName(name string) (matches, known bool) {
	if p.compiled == nil || p.compiled.pattern != p.Pattern {
		re, _ := regexp.Compile(latin1(p.Pattern)) // nil if Go cannot compile the pattern
		p.compiled = &compiled{p.Pattern, re}
	}
	if p.compiled.re == nil {
		return false, false
	}
	return p.compiled.re.MatchString(latin1(name)), true
}

// compiled is the compiled pattern of a policy. It is stored in the policy when it is first used,
// so that it is compiled only once, even if the vhost has thousands of queues. Because matching
// changes the policy in this way, only one goroutine at a time may use a snapshot.
type compiled struct {
	pattern string
	re      *regexp.Regexp
}

// latin1 converts each byte of a string to the character with the same number.
func latin1(s string) string {
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
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
}

// policyFor finds the policy that applies to a queue, which is the matching policy with the highest
// priority (measured on 3.10.8, 4.0.5, 4.3.6). The parameter "applied" is the name of the policy
// that the broker itself reports, "" if it reports that none applies, or nil if that is unknown. If
// the broker reports one, that one applies.
func policyFor(policies []Policy, q *Queue, applied *string) rule {
	var r rule
	var takers []*Policy
	for i := range policies {
		switch takes, known := policies[i].matchesQueue(q); {
		case !known:
			r.unsure = append(r.unsure, &policies[i])
		case takes:
			takers = append(takers, &policies[i])
		}
	}
	slices.SortStableFunc(takers, func(a, b *Policy) int { return b.Priority - a.Priority })
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
		r.decide(policies, *applied)
	}
	return r
}

// decide applies the policy that the broker reports as applied. The patterns that dlo cannot
// evaluate are then no longer needed. A policy that is not in the list has been deleted or created
// in the meantime, so it decides nothing.
func (r *rule) decide(policies []Policy, applied string) {
	at := slices.IndexFunc(policies, func(p Policy) bool { return p.Name == applied })
	switch {
	case at < 0 && applied != "":
		r.unsure = nil
		return
	case r.winner != nil && r.winner.Name == applied:
		r.unsure = nil
		return
	}
	switch unsure := slices.ContainsFunc(r.unsure, func(p *Policy) bool { return p.Name == applied }); {
	case !unsure:
		r.ignored, r.differs = r.winner, r.winner != nil || at >= 0
	case r.winner != nil:
		r.losers = append([]*Policy{r.winner}, r.losers...)
	}
	r.winner, r.tied, r.unsure = nil, nil, nil
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
