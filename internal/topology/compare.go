package topology

import (
	"reflect"
	"slices"
)

// Same reports whether two policies are equal in everything that a broker stores about them.
func (p *Policy) Same(other *Policy) bool {
	return p.Name == other.Name && p.Pattern == other.Pattern && p.ApplyTo == other.ApplyTo &&
		p.Priority == other.Priority && string(p.Definition.JSON()) == string(other.Definition.JSON())
}

// Words returns the policy as one line of text, so that people can compare two policies.
func (p *Policy) Words() string {
	return textf(
		"pattern %s, apply-to %s, priority %d, definition %s", p.Pattern, p.ApplyTo, p.Priority, p.Definition.JSON(),
	)
}

// Differences compares the plan p with the plan in the parameter "now", which was made a moment
// ago. It returns one sentence for each difference. If it returns none, p can be applied as it was
// shown.
func (p *Plan) Differences(now *Plan) []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, textf(format, args...)) }
	for _, old := range p.Policies {
		j := slices.IndexFunc(now.Policies, func(n Planned) bool { return n.Name == old.Name })
		if j < 0 {
			add("policy %s for %s is not planned any more%s", old.Name, nameList(old.Queues), now.whyRefused(old.Queues))
			continue
		}
		fresh := &now.Policies[j]
		switch {
		case !old.Same(&fresh.Policy):
			add("policy %s is now planned with %s; before, it was planned with %s", old.Name, fresh.Words(), old.Words())
		case old.Hides != fresh.Hides || !reflect.DeepEqual(old.Changes, fresh.Changes) ||
			!slices.Equal(old.Queues, fresh.Queues):
			add("policy %s now changes other keys, applies to other queues, or hides another policy", old.Name)
		}
	}
	for _, n := range now.Policies {
		if !slices.ContainsFunc(p.Policies, func(o Planned) bool { return o.Name == n.Name }) {
			add("policy %s for %s is planned now, but was not planned before", n.Name, nameList(n.Queues))
		}
	}
	return list
}

// whyRefused returns the first reason why the plan refuses one of the given queues.
func (p *Plan) whyRefused(queues []string) string {
	for _, r := range p.Refused {
		if slices.Contains(queues, r.Queue) {
			return textf(": queue %s: %s", r.Queue, r.Why)
		}
	}
	return ""
}

// Queues returns all queues of the plan's policies.
func (p *Plan) Queues() []string {
	var list []string
	for i := range p.Policies {
		list = append(list, p.Policies[i].Queues...)
	}
	return list
}
