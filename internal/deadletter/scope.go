package deadletter

import (
	"context"
	"encoding/json"
	"slices"
)

// Scope says where a request may see letters, and where it may also read their contents. It
// consists of the places of the grants that permit this. The zero value has no limits.
type Scope struct {
	limited bool
	grants  []Grant // grants that permit the request to see letters
}

// Sees returns the scope in which a principal may see and read letters.
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

// ScopeFor returns the scope of a receiver who may see and read letters in the given places.
func ScopeFor(p Places) Scope {
	return Principal{Grants: []Grant{{Role: RoleReader, Places: p}}}.Sees()
}

// Everywhere reports whether letters of all places can be seen.
func (s Scope) Everywhere() bool {
	return !s.limited || slices.ContainsFunc(s.grants, Grant.everywhere)
}

// ReadsAll reports whether all letters that can be seen can also be read.
func (s Scope) ReadsAll() bool {
	return !slices.ContainsFunc(s.grants, func(g Grant) bool { return !g.includes(VerbRead) })
}

// ReadsSomewhere reports whether letters can be read in at least one place, even if no letter has
// died there.
func (s Scope) ReadsSomewhere() bool {
	return !s.limited || slices.ContainsFunc(s.grants, func(g Grant) bool { return g.includes(VerbRead) })
}

// Reads reports whether the letters of a queue can be read.
func (s Scope) Reads(o Origin) bool {
	return !s.limited || slices.ContainsFunc(s.grants, func(g Grant) bool { return g.includes(VerbRead) && g.holds(o) })
}

// Includes reports whether the scope includes a queue. If a grant is limited to some queues, it
// does not include things that belong to no queue. In the same way, a grant that is limited to some
// vhosts or brokers does not include things that belong to no vhost or broker.
func (s Scope) Includes(o Origin) bool {
	return !s.limited || slices.ContainsFunc(s.grants, func(g Grant) bool { return g.holds(o) })
}

// Touches reports whether at least one queue of a vhost may be within the scope. If the vhost is
// "", this may be a queue of any vhost of the broker.
func (s Scope) Touches(broker, vhost string) bool {
	return !s.limited || slices.ContainsFunc(s.grants, func(g Grant) bool {
		return anyGlobMatches(g.Brokers, broker) && (vhost == "" || anyGlobMatches(g.VHosts, vhost)) &&
			(!g.FromRabbitMQ || slices.ContainsFunc(
				g.Written,
				func(w Written) bool { return w.Broker == broker && (vhost == "" || w.VHost == vhost) && w.Name != "" },
			))
	})
}

// Key returns the same text for equal scopes. For a scope without limits, it returns "".
func (s Scope) Key() string {
	if s.Everywhere() {
		return ""
	}
	places := make([]Places, len(s.grants))
	for i, g := range s.grants {
		places[i] = g.Places
	}
	text, _ := json.Marshal(places) // json.Marshal cannot fail, because the places are all texts
	return string(text)
}

type scopeKey struct{}

// Within returns a context that contains the scope of a request. With this context, the request can
// read from the store only what is within the scope.
func Within(ctx context.Context, s Scope) context.Context {
	return context.WithValue(ctx, scopeKey{}, s)
}

// ScopeOf returns the scope that Within stored in a context. If there is none, as for work that dlo
// starts itself, the scope has no limits.
func ScopeOf(ctx context.Context) Scope {
	s, _ := ctx.Value(scopeKey{}).(Scope)
	return s
}
