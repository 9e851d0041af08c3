package topology_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// site returns a vhost without a fault. A policy leads the dead letters of the queue "orders" to
// dlo.dlx, which routes them to the inbox.
func site(version string) *topology.Snapshot {
	s := &topology.Snapshot{Broker: "main", VHost: "/", Version: version}
	s.Queues = []topology.Queue{classic("orders"), quorum("dlo.letters", "x-delivery-limit", -1)}
	s.Exchanges = []topology.Exchange{{Name: "dlo.dlx", Type: "fanout"}}
	s.Bindings = []topology.Binding{{Source: "dlo.dlx", Destination: "dlo.letters", To: "queue"}}
	s.Policies = []topology.Policy{policy("dlo", "^orders$", 10, "dead-letter-exchange", "dlo.dlx")}
	if version[:2] == "3." {
		s.Queues[1].Arguments = definition()
	}
	return s
}

func definition(pairs ...any) topology.Definition {
	d := topology.Definition{}
	for i := 0; i < len(pairs); i += 2 {
		d[pairs[i].(string)] = pairs[i+1]
		if n, ok := pairs[i+1].(int); ok {
			d[pairs[i].(string)] = json.Number(fmt.Sprint(n))
		}
	}
	return d
}

func classic(name string, arguments ...any) topology.Queue {
	return topology.Queue{Name: name, Type: topology.Classic, Durable: true, Arguments: definition(arguments...)}
}

func quorum(name string, arguments ...any) topology.Queue {
	return topology.Queue{Name: name, Type: topology.Quorum, Durable: true, Arguments: definition(arguments...)}
}

func policy(name, pattern string, priority int, keys ...any) topology.Policy {
	return topology.Policy{
		Name: name, Pattern: pattern, ApplyTo: "queues", Priority: priority, Definition: definition(keys...),
	}
}

// applied returns the record of a policy that dlo has set. The parameter "before" holds the
// definition that this policy replaced.
func applied(p topology.Policy, before ...any) topology.Planned {
	planned := topology.Planned{Policy: p}
	old := definition(before...)
	if len(old) > 0 {
		planned.Hides = "limits"
	}
	for key, value := range p.Definition {
		if _, kept := old[key]; !kept {
			planned.Changes = append(planned.Changes, topology.KeyChange{Key: key, After: fmt.Sprintf("%q", value)})
		}
	}
	return planned
}

func bind(source, destination, key string) topology.Binding {
	return topology.Binding{Source: source, Destination: destination, To: "queue", Key: key}
}

// setFigures sets the numbers of messages, consumers and rates of the first queue of a snapshot, as
// if a running broker had reported them.
func setFigures(s *topology.Snapshot, ready, consumers int64, rates topology.Rates) {
	s.ReadAt = now
	q := &s.Queues[0]
	q.Ready, q.Consumers, q.Rates = topology.Figure{N: ready, Known: true}, topology.Figure{
		N: consumers, Known: true,
	}, rates
}

func idleFor(queue string, minutes int) topology.Options {
	return topology.Options{Idle: map[string]time.Time{queue: now.Add(-time.Duration(minutes) * time.Minute)}}
}

// findingText returns a finding in the form that the test cases use: kind, queue, severity and
// sureness.
func findingText(f topology.Finding) string {
	return strings.Join([]string{string(f.Kind), f.Queue, string(f.Severity), string(f.Sure)}, " ")
}

// withoutManagement replaces a snapshot by one that was read without the management API.
func withoutManagement(s *topology.Snapshot) {
	*s = topology.Snapshot{
		Broker:  s.Broker,
		VHost:   s.VHost,
		Passive: true,
		Gaps:    []topology.Gap{{What: "exchanges, bindings, policies and other queues", Why: "no API"}},
		Queues:  []topology.Queue{{Name: "orders"}, {Name: "dlo.letters"}},
	}
}

// bindBehind returns a function that changes a vhost. After the change, the queue "orders" is bound
// to an exchange that does not look at routing keys, and the dead-letter exchange dlx has a binding
// for one key only.
func bindBehind(kind, key string) func(s *topology.Snapshot) {
	return func(s *topology.Snapshot) {
		s.Exchanges = append(s.Exchanges, topology.Exchange{
			Name: "dlx", Type: "direct",
		}, topology.Exchange{Name: "events", Type: kind})
		s.Bindings = append(s.Bindings, bind("events", "orders", ""), bind("dlx", "dlo.letters", key))
		s.Policies[0].Definition = definition("dead-letter-exchange", "dlx")
	}
}

// behind makes the queue "orders" dead-letter to an exchange dlx of the given type.
func behind(s *topology.Snapshot, kind string, arguments topology.Definition, bindings ...topology.Binding) {
	s.Queues = append(s.Queues, classic("parked"))
	s.Exchanges = append(s.Exchanges, topology.Exchange{Name: "dlx", Type: kind, Arguments: arguments})
	s.Bindings = append(s.Bindings, bindings...)
	s.Policies[0].Definition = definition("dead-letter-exchange", "dlx")
}

// byHeaders returns a function that puts a headers exchange behind the queue "orders". Its binding
// has the given arguments.
func byHeaders(arguments ...any) func(s *topology.Snapshot) {
	return func(s *topology.Snapshot) {
		b := bind("dlx", "parked", "")
		b.Arguments = definition(arguments...)
		behind(s, "headers", nil, b)
		s.Queues[2] = classic("parked", "x-dead-letter-exchange", "dlo.dlx")
	}
}

// chained binds the queue "orders" to a topic exchange that gets its messages from another one. The
// queue dead-letters to a topic exchange.
func chained(s *topology.Snapshot, first, second string) {
	behind(s, "topic", nil)
	s.Exchanges = append(
		s.Exchanges, topology.Exchange{Name: "all", Type: "topic"}, topology.Exchange{Name: "some", Type: "topic"},
	)
	s.Bindings = append(s.Bindings, link("all", "some", first), bind("some", "orders", second))
}

// link binds an exchange to another one.
func link(source, destination, key string) topology.Binding {
	return topology.Binding{Source: source, Destination: destination, To: "exchange", Key: key}
}

// linked binds the queue "orders" to an internal exchange that gets its messages from another one.
func linked(s *topology.Snapshot, first, firstKey, second, secondKey string) {
	behind(s, "direct", nil)
	s.Exchanges = append(
		s.Exchanges, topology.Exchange{Name: "all", Type: first},
		topology.Exchange{Name: "some", Type: second, Internal: true},
	)
	s.Bindings = append(s.Bindings, link("all", "some", firstKey), bind("some", "orders", secondKey))
}

// bindDLX routes dead letters with two keys: the given one, and the name of the queue "orders".
func bindDLX(s *topology.Snapshot, key string) {
	s.Bindings = append(s.Bindings, bind("dlx", "parked", key), bind("dlx", "parked", "orders"))
}

// alternate gives the dead-letter exchange no binding, but an alternate exchange by a policy.
func alternate(s *topology.Snapshot, pattern string) {
	s.Exchanges = append(s.Exchanges, topology.Exchange{Name: "dlx", Type: "direct"})
	s.Policies[0].Definition["dead-letter-exchange"] = "dlx"
	s.Policies = append(s.Policies, policy("alternate", pattern, 0, "alternate-exchange", "dlo.dlx"))
	s.Policies[1].ApplyTo = "exchanges"
}

// meshed binds the queue "orders" to the first of many topic exchanges, of which each is bound to
// all others.
func meshed(s *topology.Snapshot) {
	s.Exchanges = append(s.Exchanges, topology.Exchange{Name: "dlx", Type: "topic"})
	s.Bindings = append(s.Bindings, bind("x0", "orders", "a.#"), bind("dlx", "dlo.letters", "b"))
	s.Policies[0].Definition["dead-letter-exchange"] = "dlx"
	for i := range 13 {
		s.Exchanges = append(s.Exchanges, topology.Exchange{Name: fmt.Sprint("x", i), Type: "topic"})
		for j := range 13 {
			if i != j {
				s.Bindings = append(s.Bindings, link(fmt.Sprint("x", i), fmt.Sprint("x", j), []string{"#", "*.#"}[i%2]))
			}
		}
	}
}

// levelsOfDelay adds queues that delay messages by the words of their keys, as some frameworks do:
// each word decides whether a message waits in the queue of its level.
func levelsOfDelay(s *topology.Snapshot) {
	const levels = 12
	s.Exchanges = append(
		s.Exchanges, topology.Exchange{Name: "deliver", Type: "topic"}, topology.Exchange{Name: "sales", Type: "fanout"},
	)
	for n := levels; n >= 0; n-- {
		name, next, before := fmt.Sprint("level.", n), fmt.Sprint("level.", n-1), strings.Repeat("*.", levels-n)
		if n == 0 {
			next = "deliver"
		}
		s.Queues = append(s.Queues, quorum(
			name, "x-message-ttl", 1000<<n, "x-dead-letter-exchange", next, "x-dead-letter-strategy", "at-least-once",
			"x-overflow", "reject-publish",
		))
		s.Exchanges = append(s.Exchanges, topology.Exchange{Name: name, Type: "topic"})
		on := bind(name, next, before+"0.#")
		on.To = "exchange"
		s.Bindings = append(s.Bindings, bind(name, name, before+"1.#"), on)
	}
	last := bind("deliver", "sales", "#.sales")
	last.To = "exchange"
	s.Bindings = append(s.Bindings, bind("sales", "orders", ""), last)
}
