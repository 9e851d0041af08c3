package topology

import (
	"maps"
	"slices"
)

// Effect is what applies to one queue: its arguments, and the policies that match it.
type Effect struct {
	Queue    *Queue
	policy   rule
	operator rule
}

// effect computes the Effect of a queue.
func (s *Snapshot) effect(q *Queue) Effect {
	return Effect{q, ruling(s.Policies, q, q.Policy), ruling(s.Operators, q, nil)}
}

// Policy returns the policy that applies; nil = none.
func (e *Effect) Policy() *Policy { return e.policy.winner }

// Sources of a value.
const (
	FromArgument = "an argument of the queue"
	FromOperator = "operator policy"
	FromPolicy   = "policy"
)

// Setting is a value that applies to a queue, and where it comes from.
type Setting struct {
	Text   string
	N      int64
	From   string // one of the sources
	Policy string // the name of the policy that sets it
}

// Text returns a setting that is a text, such as dead-letter-exchange. An argument takes precedence
// over a policy (measured on 3.10.8, 4.0.5, 4.3.6). ok is false if nothing sets it.
func (e *Effect) Text(key string) (v Setting, ok bool) {
	if s, ok := e.Queue.Arguments.Text("x-" + key); ok {
		return Setting{Text: s, From: FromArgument}, true
	}
	if p := e.operator.winner; p != nil {
		if s, ok := p.Definition.Text(key); ok {
			return Setting{Text: s, From: FromOperator, Policy: p.Name}, true
		}
	}
	if p := e.policy.winner; p != nil {
		if s, ok := p.Definition.Text(key); ok {
			return Setting{Text: s, From: FromPolicy, Policy: p.Name}, true
		}
	}
	return Setting{}, false
}

// Least returns a setting that is a number, such as max-length. Of the argument, the policy and the
// operator policy, the smallest value applies (measured on 3.10.8, 4.0.5, 4.3.6). ok is false if
// nothing sets it.
func (e *Effect) Least(key string) (least Setting, ok bool) {
	for _, s := range e.numbers(key) {
		if !ok || s.N < least.N {
			least, ok = s, true
		}
	}
	return least, ok
}

// numbers returns what the argument, the policy and the operator policy set for a key.
func (e *Effect) numbers(key string) []Setting {
	var list []Setting
	if n, ok := e.Queue.Arguments.Number("x-" + key); ok {
		list = append(list, Setting{N: n, From: FromArgument})
	}
	if p := e.policy.winner; p != nil {
		if n, ok := p.Definition.Number(key); ok {
			list = append(list, Setting{N: n, From: FromPolicy, Policy: p.Name})
		}
	}
	if p := e.operator.winner; p != nil {
		if n, ok := p.Definition.Number(key); ok {
			list = append(list, Setting{N: n, From: FromOperator, Policy: p.Name})
		}
	}
	return list
}

// drops lists the limits by which the broker automatically takes messages out of a queue: time, and
// length unless the full queue refuses new messages.
func (e *Effect) drops() []Limit {
	var list []Limit
	if v, ok := e.Least("message-ttl"); ok {
		list = append(list, Limit{"message-ttl", v})
	}
	if e.overflows() {
		list = append(list, e.lengths()...)
	}
	return list
}

// lengths lists the length limits of a queue.
func (e *Effect) lengths() []Limit {
	var list []Limit
	for _, key := range []string{"max-length", "max-length-bytes"} {
		if v, ok := e.Least(key); ok {
			list = append(list, Limit{key, v})
		}
	}
	return list
}

// Limit is a setting with its name.
type Limit struct {
	Key string
	Setting
}

// overflows reports whether a full queue pushes messages out, rather than refusing new ones.
func (e *Effect) overflows() bool {
	how, _ := e.Text("overflow")
	return how.Text != "reject-publish"
}

// atLeastOnce reports whether the queue should keep a dead letter until its target has confirmed
// it, and whether this works. Only quorum queues do so, and only with overflow reject-publish
// (measured on 3.10.8, 4.0.5, 4.3.6).
func (e *Effect) atLeastOnce() (asked, works bool) {
	strategy, _ := e.Text("dead-letter-strategy")
	asked = e.Queue.Kind() == Quorum && strategy.Text == "at-least-once"
	return asked, asked && !e.overflows()
}

// atLeastOnceKeys are the keys with which a policy makes a quorum queue dead-letter at least once.
var atLeastOnceKeys = Definition{"dead-letter-strategy": "at-least-once", "overflow": "reject-publish"}

// hinders returns the setting that keeps every policy from making a queue dead-letter at least
// once. Such a setting is an argument or an operator policy that sets one of the keys to something
// else.
func (e *Effect) hinders() (key string, s Setting, found bool) {
	for _, key := range slices.Sorted(maps.Keys(atLeastOnceKeys)) {
		if s, ok := e.Text(key); ok && s.From != FromPolicy && s.Text != atLeastOnceKeys[key] {
			return key, s, true
		}
	}
	return "", Setting{}, false
}
