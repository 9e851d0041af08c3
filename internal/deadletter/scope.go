package deadletter

import (
	"context"
	"encoding/json"
	"slices"
)

// Scope is where a request may see letters: in the places of the grants that permit it. The zero
// value is everywhere.
type Scope struct {
	bounded bool
	grants  []Grant
}

// Sees returns where p may see letters.
func (p Principal) Sees() Scope {
	s := Scope{bounded: true}
	for _, g := range p.Grants {
		if !g.includes(VerbView) {
			continue
		}
		if len(g.Queues)+len(g.VHosts)+len(g.Brokers) == 0 {
			return Scope{}
		}
		s.grants = append(s.grants, g)
	}
	return s
}

// Everywhere reports whether the scope has no bounds.
func (s Scope) Everywhere() bool { return !s.bounded }

// Includes reports whether the scope includes a queue. What belongs to no queue is included in
// scopes without bounds for queues, and so on.
func (s Scope) Includes(o Origin) bool {
	return !s.bounded || slices.ContainsFunc(s.grants, func(g Grant) bool { return g.holds(o) })
}

// Touches reports whether the scope includes some queue of a vhost. An empty vhost stands for each
// vhost of the broker.
func (s Scope) Touches(broker, vhost string) bool {
	return !s.bounded || slices.ContainsFunc(s.grants, func(g Grant) bool {
		return holds(g.Brokers, broker) && (vhost == "" || holds(g.VHosts, vhost))
	})
}

// Key returns a text that is equal for equal scopes, and "" for a scope without bounds.
func (s Scope) Key() string {
	if !s.bounded {
		return ""
	}
	places := make([][3][]string, len(s.grants))
	for i, g := range s.grants {
		places[i] = [3][]string{g.Brokers, g.VHosts, g.Queues}
	}
	text, _ := json.Marshal(places) // texts always encode
	return string(text)
}

type scopeKey struct{}

// Within stores a scope in the context of a request. Everything that the request reads from the
// store is then within that scope.
func Within(ctx context.Context, s Scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

// ScopeOf returns the scope of the request that a context belongs to. What dlo does on its own has
// a scope without bounds.
func ScopeOf(ctx context.Context) Scope {
	s, _ := ctx.Value(scopeKey{}).(Scope)
	return s
}
