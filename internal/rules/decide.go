package rules

import (
	"cmp"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Decide returns the decision of the first rule that matches a letter. A letter that expired, or
// that was pushed out of a full queue, was not rejected by a worker. Such a letter waits for a
// person, unless the rule has its own retry.
func (s *Set) Decide(f Facts) Decision { return s.decide(s.firstMatch(f), f) }

func (s *Set) decide(rule *Rule, f Facts) Decision {
	d := Decision{
		Rule:     rule.Name,
		Outcome:  deadletter.RuleDead,
		Severity: cmp.Or(rule.Severity, s.Default.Severity),
		Group:    rule.Group,
	}
	if d.Notify = rule.Notify; d.Notify == nil {
		d.Notify = s.Default.Notify
	}
	s.fillOutcome(rule, f, &d)
	if rule != &s.Default {
		d.Why = fmt.Sprintf("rule %s: %s", rule.Name, d.Why)
	}
	return d
}

// firstMatch returns the first rule that matches a letter. If no rule matches, it returns the
// default rule.
func (s *Set) firstMatch(f Facts) *Rule {
	for i := range s.Rules {
		if s.Rules[i].Match.matches(&f) {
			return &s.Rules[i]
		}
	}
	return &s.Default
}

// fillOutcome fills in two fields of a decision: the outcome for the letter, and the reason for it.
func (s *Set) fillOutcome(rule *Rule, f Facts, d *Decision) {
	retry := s.Retries(rule, f.Reason)
	retries, used := retry.Count(), f.usedAttempts()
	switch {
	case rule.Discard:
		d.Outcome, d.Why = deadletter.RuleDiscard, "discarded as known noise"
	case !s.hasOwnRetry(rule) && diedUnrejected(f.Reason) && rule != &s.Default:
		d.Why = fmt.Sprintf("reason %s: no retry, because the rule has none of its own", f.Reason)
	case !s.hasOwnRetry(rule) && diedUnrejected(f.Reason):
		d.Why = fmt.Sprintf("reason %s: no retry unless a rule says so", f.Reason)
	case used < retries:
		d.Outcome, d.Delay, d.Waiter = deadletter.RuleRetry, retry.Draw(used, s.Seed, f.Serial), cmp.Or(
			retry.Waiter, WaiterStore,
		)
		d.Rest = retry.Rest(used)
		d.Why = fmt.Sprintf("retry %d of %d in %s", used+1, retries, d.Delay)
	case retries == 0:
		d.Why = "no retries"
	default:
		d.Why = fmt.Sprintf("retries used up: %d of %d", retries, retries)
		if used > retries { // people also requeued the letter, so there were more attempts than retries
			d.Why += fmt.Sprintf(", sent %d times in total", used)
		}
	}
}

// Retries returns the back-off of a rule for letters that died for the given reason. It never
// returns nil.
func (s *Set) Retries(rule *Rule, reason string) *Retry {
	if rule.Discard || !s.hasOwnRetry(rule) && diedUnrejected(reason) {
		return &Retry{}
	}
	return cmp.Or(rule.Retry, s.Default.Retry, &Retry{})
}

// hasOwnRetry reports whether a rule has its own back-off. A back-off of its own applies to all
// letters of the rule, whatever the reason of their death is.
func (s *Set) hasOwnRetry(rule *Rule) bool { return rule.Retry != nil && rule != &s.Default }

// diedUnrejected reports whether a letter died although no worker rejected it. Such a letter waited
// too long, or its queue was full.
func diedUnrejected(reason string) bool { return reason == "expired" || reason == "maxlen" }

// Explain checks every rule for a letter. For each rule, it returns whether the rule matches, and
// the result of each clause. The rules are in order, with the default rule last.
func (s *Set) Explain(f Facts) []Step {
	steps := make([]Step, 0, len(s.Rules)+1)
	applied := false
	for i := range s.Rules {
		step := Step{Rule: s.Rules[i].Name, Clauses: s.Rules[i].Match.Clauses(f), Matched: true}
		for _, c := range step.Clauses {
			step.Matched = step.Matched && c.Fits
		}
		step.Applies = step.Matched && !applied
		applied = applied || step.Matched
		steps = append(steps, step)
	}
	return append(steps, Step{Rule: s.Default.Name, Matched: true, Applies: !applied})
}
