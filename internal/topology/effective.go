package topology

import (
	"maps"
	"slices"
	"strings"
)

// Effect is one queue together with the policies that match it. Its arguments and these policies
// decide how the queue behaves.
type Effect struct {
	Queue    *Queue
	policy   rule
	operator rule
	reported Definition // the keys that apply according to the broker; nil = the broker does not say
}

// EffectOf returns the Effect of a queue. If the broker says what applies to the queue, that
// counts. Otherwise EffectOf computes it from the patterns, priorities and keys of the policies.
func (s *Snapshot) EffectOf(q *Queue) Effect {
	return Effect{q, s.policyFor(s.Policies, q, q.Policy), s.policyFor(s.Operators, q, nil), q.Effective}
}

// Policy returns the policy that applies, or nil.
func (e *Effect) Policy() *Policy { return e.policy.winner }

// Operator returns the operator policy that applies, or nil.
func (e *Effect) Operator() *Policy { return e.operator.winner }

// byPolicies returns what the policies of a queue set for a key: the value that the broker reports,
// or else the values of the operator policy and the policy. The field Policy is empty if no known
// policy sets the value that the broker reports.
func (e *Effect) byPolicies(key string) []Setting {
	var list []Setting
	add := func(p *Policy, from string) {
		if of, ok := p.definition()[key]; ok {
			list = append(list, Setting{From: from, Policy: p.Name, of: of})
		}
	}
	add(e.operator.winner, FromOperator)
	add(e.policy.winner, FromPolicy)
	if e.reported == nil {
		return list
	}
	reported, ok := e.reported[key]
	if !ok {
		return nil
	}
	for _, s := range list {
		if compact(s.of) == compact(reported) {
			return []Setting{s}
		}
	}
	return []Setting{{From: FromPolicy, of: reported}}
}

// unknownKeys returns the keys that the broker reports with values that no known policy sets.
func (e *Effect) unknownKeys() []string {
	keys := slices.Sorted(maps.Keys(e.reported))
	return slices.DeleteFunc(keys, func(key string) bool { return e.byPolicies(key)[0].Policy != "" })
}

// Keys returns the settings of a queue that an argument, a policy or the broker's default sets, in
// the spelling of policies.
func (e *Effect) Keys() []string {
	set := map[string]bool{}
	for key := range e.Queue.Arguments {
		set[strings.TrimPrefix(key, "x-")] = true
	}
	by := e.reported
	if by == nil {
		by = e.policy.winner.definition().With(e.operator.winner.definition())
	}
	for key := range by {
		set[key] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// These are the values of the field From of a Setting.
const (
	FromArgument = "an argument of the queue"
	FromOperator = "operator policy"
	FromPolicy   = "policy"
)

// Setting is the value of one setting of a queue, together with what sets it.
type Setting struct {
	Text   string
	N      int64
	From   string // one of the constants above; "" = the default of the broker
	Policy string // the name of the policy that sets it; "" = an argument, or a policy that dlo does not know

	of any // the value of the policy
}

// Text returns the value of a setting that is a text, such as dead-letter-exchange. An argument
// takes precedence over a policy (measured on 3.10.8, 4.0.5, 4.3.6). The result "ok" is false if
// nothing sets the value.
func (e *Effect) Text(key string) (v Setting, ok bool) {
	if s, ok := e.Queue.Arguments.Text("x-" + key); ok {
		return Setting{Text: s, From: FromArgument}, true
	}
	return e.policyText(key)
}

// policyText returns the value that the policies of a queue set for a key. An operator policy takes
// precedence.
func (e *Effect) policyText(key string) (v Setting, ok bool) {
	for _, v := range e.byPolicies(key) {
		if v.Text, ok = v.of.(string); ok {
			return v, true
		}
	}
	return Setting{}, false
}

// Least returns the value of a setting that is a number, such as max-length. The argument, the
// policy and the operator policy can each set it, and the smallest value applies (measured on
// 3.10.8, 4.0.5, 4.3.6). The result "ok" is false if nothing sets it.
func (e *Effect) Least(key string) (least Setting, ok bool) {
	for _, s := range e.numbers(key) {
		if !ok || s.N < least.N {
			least, ok = s, true
		}
	}
	return least, ok
}

// numbers returns the values that the argument, the policy and the operator policy of a queue set
// for a key.
func (e *Effect) numbers(key string) []Setting {
	var list []Setting
	if n, ok := e.Queue.Arguments.Number("x-" + key); ok {
		list = append(list, Setting{N: n, From: FromArgument})
	}
	for _, s := range e.byPolicies(key) {
		var ok bool
		if s.N, ok = (Definition{key: s.of}).Number(key); ok {
			list = append(list, s)
		}
	}
	return list
}

// droppingLimits returns the limits that make the broker remove messages from a queue
// automatically. These are the time-to-live and the length limits. Length limits do not count if
// the full queue refuses new messages.
func (e *Effect) droppingLimits() []Limit {
	var list []Limit
	if v, ok := e.Least("message-ttl"); ok {
		list = append(list, Limit{"message-ttl", v})
	}
	if e.dropsOld() {
		list = append(list, e.lengthLimits()...)
	}
	return list
}

// lengthLimits returns the length limits of a queue.
func (e *Effect) lengthLimits() []Limit {
	var list []Limit
	for _, key := range []string{"max-length", "max-length-bytes"} {
		if v, ok := e.Least(key); ok {
			list = append(list, Limit{key, v})
		}
	}
	return list
}

// Limit is a setting together with its name.
type Limit struct {
	Key string
	Setting
}

// dropsOld reports whether a full queue removes old messages for new ones. If not, it refuses new
// messages.
func (e *Effect) dropsOld() bool {
	how, _ := e.Text("overflow")
	return how.Text != "reject-publish"
}

// atLeastOnce returns two results. The result "isSet" is true if the queue is set to keep a dead
// letter until the target has confirmed it. The result "works" is true if the setting also has an
// effect, which requires a quorum queue with overflow reject-publish (measured on 3.10.8, 4.0.5,
// 4.3.6).
func (e *Effect) atLeastOnce() (isSet, works bool) {
	strategy, _ := e.Text("dead-letter-strategy")
	isSet = e.Queue.Kind() == Quorum && strategy.Text == "at-least-once"
	return isSet, isSet && !e.dropsOld()
}

// atLeastOnceKeys are the keys of a policy that make a quorum queue dead-letter at least once.
var atLeastOnceKeys = Definition{"dead-letter-strategy": "at-least-once", "overflow": "reject-publish"}

// atLeastOnceHindrance looks for a setting that prevents a queue from dead-lettering at least once,
// and that no policy can override. Such a setting is an argument or an operator policy that gives
// one of the atLeastOnceKeys another value.
func (e *Effect) atLeastOnceHindrance() (key string, s Setting, found bool) {
	for _, key := range slices.Sorted(maps.Keys(atLeastOnceKeys)) {
		if s, ok := e.Text(key); ok && s.From != FromPolicy && s.Text != atLeastOnceKeys[key] {
			return key, s, true
		}
	}
	return "", Setting{}, false
}
