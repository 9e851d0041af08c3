package deadletter

import (
	"context"
	"encoding/json"
	"slices"
)

// Scope describes where a request may see letters, and where it may also read them. Both are the
// places of the grants that permit it. The zero value has no limits.
type Scope struct {
	limited bool
	grants  []Grant // grants that permit seeing letters
}

// Sees returns the scope in which p may see and read letters.
func (p Principal) Sees() Scope {
	s := Scope{limited: true}
	for _, g := range p.Grants {
		switch {
		case g.includes(VerbRead) && g.everywhere():
			return Scope{}
		case g.includes(VerbView):
			s.grants = append(s.grants, g)
		}
	}
	return s
}

// ScopeFor returns the scope of a receiver that may see and read letters in the given places.
func ScopeFor(p Places) Scope {
	return Principal{Grants: []Grant{{Role: RoleReader, Places: p}}}.Sees()
}

// Everywhere reports whether letters can be seen everywhere.
func (s Scope) Everywhere() bool {
	return !s.limited || slices.ContainsFunc(s.grants, Grant.everywhere)
}

// ReadsAll reports whether all letters that can be seen can be read.
func (s Scope) ReadsAll() bool {
	return !slices.ContainsFunc(s.grants, func(g Grant) bool { return !g.includes(VerbRead) })
}

// ReadsSomewhere reports whether the letters of some queue can be read, even if no letter has died
// in that queue.
func (s Scope) ReadsSomewhere() bool {
	return !s.limited || slices.ContainsFunc(s.grants, func(g Grant) bool { return g.includes(VerbRead) })
}

// Reads returns true if letters of a queue can be read.
func (s Scope) Reads(o Origin) bool {
	return !s.limited || slices.ContainsFunc(s.grants, func(g Grant) bool { return g.includes(VerbRead) && g.holds(o) })
}

// Includes reports whether the scope includes a queue. Something that belongs to no queue is
// included only if the scope has no limits for queues. The same applies to vhosts and brokers.
func (s Scope) Includes(o Origin) bool {
	return !s.limited || slices.ContainsFunc(s.grants, func(g Grant) bool { return g.holds(o) })
}

// Touches returns true if the scope includes some queue of a vhost. An empty vhost means any vhost
// of the broker.
func (s Scope) Touches(broker, vhost string) bool {
	return !s.limited || slices.ContainsFunc(s.grants, func(g Grant) bool {
		return holds(g.Brokers, broker) && (vhost == "" || holds(g.VHosts, vhost)) &&
			(!g.FromRabbitMQ || slices.ContainsFunc(g.Written, func(w Written) bool { return w.Broker == broker && (vhost == "" || w.VHost == vhost) && w.Name != "" }))
	})
}

// Key returns a text that is equal for equal scopes, and "" for a scope without limits.
func (s Scope) Key() string {
	if s.Everywhere() {
		return ""
	}
	places := make([]Places, len(s.grants))
	for i, g := range s.grants {
		places[i] = g.Places
	}
	text, _ := json.Marshal(places) // texts always encode
	return string(text)
}

type scopeKey struct{}

// Within stores a scope in the context of a request. The request can then read from the store only
// what is within that scope.
func Within(ctx context.Context, s Scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

// ScopeOf returns the scope of the request that a context belongs to. Work that dlo starts on its
// own has a scope without limits.
func ScopeOf(ctx context.Context) Scope {
	s, _ := ctx.Value(scopeKey{}).(Scope)
	return s
}
