package deadletter

import (
	"context"
	"regexp"
	"slices"
	"sync"
)

// Written is a person's permission in RabbitMQ to write to resources in a vhost of a broker. As in
// RabbitMQ, it is a regular expression that must match a part of the queue's name. An empty
// expression matches no name (RabbitMQ 3.10 to 4.3: rabbit_auth_backend_internal).
type Written struct {
	Broker, VHost string
	Name          string
}

// expressions caches compiled regular expressions. If Go cannot compile an expression, its value is
// nil, and it matches nothing.
var expressions sync.Map

func (w Written) holds(o Origin) bool {
	if w.Broker != o.Broker || w.VHost != o.VHost || w.Name == "" || o.Queue == "" {
		return false
	}
	compiled, known := expressions.Load(w.Name)
	if !known {
		e, _ := regexp.Compile(w.Name)
		compiled, _ = expressions.LoadOrStore(w.Name, e)
	}
	e := compiled.(*regexp.Regexp)
	return e != nil && e.MatchString(o.Queue)
}

// Within returns the grant, limited to a person's permissions in RabbitMQ.
func (g Grant) Within(list []Written) Grant {
	g.Written, g.FromRabbitMQ = slices.Clone(list), true
	return g
}

// PermissionsOf returns a person's permissions to write at all brokers. It leaves out brokers that
// do not respond.
type PermissionsOf = func(ctx context.Context, user string) []Written
