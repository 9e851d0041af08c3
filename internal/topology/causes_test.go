package topology_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// causes has, for each kind of finding, a function that adds a queue with such a fault to a vhost.
// The parameter "cause" names the exchange, the policy or the queue that is at fault.
var causes = map[topology.Kind]func(s *topology.Snapshot, queue, cause string){
	topology.NoExchange: func(s *topology.Snapshot, queue, cause string) {
		addByPolicy(s, classic(queue), cause, 5, "max-length", 1000)
	},
	topology.ExchangeMissing: func(s *topology.Snapshot, queue, cause string) {
		if queue == "second" { // whatever names the exchange
			s.Queues = append(s.Queues, classic(queue, "x-dead-letter-exchange", cause))
			return
		}
		addByPolicy(s, classic(queue), cause, 5, "dead-letter-exchange", cause)
	},
	topology.NoBinding: func(s *topology.Snapshot, queue, cause string) {
		s.Exchanges = append(s.Exchanges, topology.Exchange{Name: cause, Type: "direct"})
		s.Queues = append(s.Queues, classic(queue, "x-dead-letter-exchange", cause))
		s.Bindings = append(s.Bindings, bind(cause, "dlo.letters", "other"))
	},
	topology.RouteUnknown: func(s *topology.Snapshot, queue, cause string) {
		s.Exchanges = append(s.Exchanges, topology.Exchange{Name: cause, Type: "x-random"})
		s.Queues = append(s.Queues, classic(queue, "x-dead-letter-exchange", cause))
		s.Bindings = append(s.Bindings, bind(cause, "dlo.letters", ""))
	},
	topology.QueueMissing: func(s *topology.Snapshot, queue, cause string) {
		if queue == "second" { // whatever way leads to the queue
			s.Exchanges = append(s.Exchanges, topology.Exchange{Name: "dead", Type: "fanout"})
			s.Bindings = append(s.Bindings, bind("dead", cause, ""))
			s.Queues = append(s.Queues, classic(queue, "x-dead-letter-exchange", "dead"))
			return
		}
		s.Queues = append(
			s.Queues, classic(queue, "x-dead-letter-exchange", "", "x-dead-letter-routing-key", cause),
		)
	},
	topology.QueueFull: func(s *topology.Snapshot, queue, cause string) {
		full := classic(cause, "x-max-length", 1)
		full.Ready = topology.Figure{N: 1, Known: true}
		s.Queues = append(
			s.Queues, full, classic(queue, "x-dead-letter-exchange", "", "x-dead-letter-routing-key", cause),
		)
	},
	topology.SecondDeathLost: func(s *topology.Snapshot, queue, cause string) {
		s.Exchanges = append(
			s.Exchanges, topology.Exchange{Name: cause, Type: "direct"}, topology.Exchange{Name: "in", Type: "direct"},
		)
		s.Queues = append(s.Queues, classic(queue, "x-dead-letter-exchange", cause))
		s.Bindings = append(s.Bindings, bind("in", queue, "order"), bind(cause, "dlo.letters", "order"))
	},
	topology.ArgumentWins: func(s *topology.Snapshot, queue, cause string) {
		addByPolicy(s, classic(queue, "x-dead-letter-exchange", "dlo.dlx"), cause, 5, "dead-letter-exchange", "other")
	},
	topology.PolicyShadowed: func(s *topology.Snapshot, queue, cause string) {
		addByPolicy(s, classic(queue), cause, 5, "max-length", 1000)
		addByPolicy(s, classic(queue), "hidden."+queue, 4, "dead-letter-exchange", "dlo.dlx")
	},
	topology.PolicyTied: func(s *topology.Snapshot, queue, cause string) {
		addByPolicy(s, classic(queue), cause, 5, "max-length", 1000)
		addByPolicy(s, classic(queue), "tied", 5, "dead-letter-exchange", "dlo.dlx")
	},
	topology.PolicyIgnored: func(s *topology.Snapshot, queue, cause string) {
		kind := classic(queue)
		if queue == "second" {
			kind = quorum(queue)
		}
		addByPolicy(s, kind, cause, 5, "dead-letter-exchange", "dlo.dlx", "max-age", "1h")
	},
	topology.OperatorCaps: func(s *topology.Snapshot, queue, cause string) {
		limits := map[string][]any{"first": {"x-max-length", 100}, "second": {"x-max-length", 200, "x-message-ttl", 99}}
		q := classic(queue, append(limits[queue], "x-dead-letter-exchange", "dlo.dlx")...)
		addByPolicy(s, q, cause, 5, "max-length", 10, "message-ttl", 10)
		last := len(s.Policies) - 1
		s.Policies, s.Operators = s.Policies[:last], append(s.Operators, s.Policies[last])
	},
	topology.AtMostOnce: func(s *topology.Snapshot, queue, cause string) {
		addByPolicy(s, quorum(queue), cause, 5, "dead-letter-exchange", "dlo.dlx")
	},
	topology.OverflowDrops: func(s *topology.Snapshot, queue, cause string) {
		addByPolicy(
			s, quorum(queue), cause, 5, "dead-letter-exchange", "dlo.dlx", "dead-letter-strategy", "at-least-once",
		)
	},
	topology.Stuck: func(s *topology.Snapshot, queue, cause string) {
		q := quorum(
			queue, "x-dead-letter-exchange", cause, "x-dead-letter-strategy", "at-least-once", "x-overflow",
			"reject-publish",
		)
		q.Stuck = topology.Figure{N: int64(len(queue)), Known: true}
		s.Queues = append(s.Queues, q)
	},
	topology.LettersDeleted: func(s *topology.Snapshot, queue, cause string) {
		addByPolicy(s, classic(queue), cause, 5, "message-ttl", 1000)
		s.Bindings = append(s.Bindings, bind("dlo.dlx", queue, ""))
	},
	topology.DeliveryLimit: func(s *topology.Snapshot, queue, cause string) {
		addByPolicy(s, quorum(queue), cause, 5, "delivery-limit", 3)
		s.Bindings = append(s.Bindings, bind("dlo.dlx", queue, ""))
	},
	topology.RetryRecipe: func(s *topology.Snapshot, queue, cause string) {
		s.Queues = append(
			s.Queues, classic(cause, "x-message-ttl", 1000, "x-dead-letter-exchange", ""),
			classic(queue, "x-dead-letter-exchange", "to "+cause),
		)
		s.Exchanges = append(s.Exchanges, topology.Exchange{Name: "to " + cause, Type: "fanout"})
		s.Bindings = append(s.Bindings, bind("to "+cause, cause, ""))
	},
	topology.HiddenChanged: func(s *topology.Snapshot, queue, cause string) {
		addByPolicy(s, classic(queue), cause, 5, "dead-letter-exchange", "dlo.dlx", "max-length", 5)
	},
	topology.Moved: func(s *topology.Snapshot, queue, cause string) {
		q := classic(queue, "x-dead-letter-exchange", "dlo.dlx")
		addByPolicy(s, q, cause, 5, "federation-upstream-set", "all")
	},
}

// ownCauses are the kinds of findings of which each has a cause of its own: the consumers of the
// queue, a circle of queues, an exchange, or a policy that any queue may match.
var ownCauses = []topology.Kind{
	topology.NoConsumers, topology.LeftBehind, topology.RedeliveryStorm, topology.Cycle, topology.TakenTwice,
	topology.PolicyTwice, topology.PolicyChanged, topology.PatternUnknown,
}

// addByPolicy adds a queue, and a policy that applies to it and to the other queues of the policy.
func addByPolicy(s *topology.Snapshot, q topology.Queue, name string, priority int, keys ...any) {
	if !slices.ContainsFunc(s.Queues, func(have topology.Queue) bool { return have.Name == q.Name }) {
		s.Queues = append(s.Queues, q)
	}
	pattern := "^" + q.Name + "$"
	for _, list := range []*[]topology.Policy{&s.Policies, &s.Operators} {
		*list = slices.DeleteFunc(*list, func(p topology.Policy) bool {
			if p.Name == name {
				pattern = p.Pattern + "|" + pattern
			}
			return p.Name == name
		})
	}
	s.Policies = append(s.Policies, policy(name, pattern, priority, keys...))
}

// TestOneCauseOfEachKind checks that two queues with one cause are one finding, which names both,
// and that two causes are two findings.
func TestOneCauseOfEachKind(t *testing.T) {
	for _, kind := range topology.Kinds() {
		add := causes[kind]
		if slices.Contains(ownCauses, kind) != (add == nil) {
			t.Errorf("%s is in none or both of the lists of this test", kind)
		}
		for _, second := range []string{"a.cause", "b.cause"} {
			if add == nil {
				break
			}
			s := site("4.3.6")
			add(s, "first", "a.cause")
			add(s, "second", second)
			got := findingsOf(s, kind)
			want := []string{"first second"}
			if second == "b.cause" {
				want = []string{"first", "second"}
			}
			var queues []string
			for _, f := range got {
				queues = append(queues, strings.Join(f.Queues(), " "))
				checkOthers(t, s, f)
			}
			if !slices.Equal(queues, want) {
				t.Errorf("%s, then %s: %q, want %q: %+v", kind, second, queues, want, got)
			}
		}
	}
}

// findingsOf returns the findings of a kind.
func findingsOf(s *topology.Snapshot, kind topology.Kind) []topology.Finding {
	o := topology.Options{Inboxes: []string{"dlo.letters"}}
	for _, p := range s.Policies {
		if kind == topology.HiddenChanged && strings.HasSuffix(p.Name, ".cause") {
			o.Applied = append(o.Applied, applied(p, "max-length", 5)) // and now there is no other policy
		}
	}
	found := topology.Inspect(s, o)
	return slices.DeleteFunc(found, func(f topology.Finding) bool { return f.Kind != kind })
}

// TestAJoinedFindingSaysWhatIsTrueOfEachQueue checks that a finding of several queues says what is
// lost and why for each of them, and that a part of it says nothing about the others.
func TestAJoinedFindingSaysWhatIsTrueOfEachQueue(t *testing.T) {
	s := site("4.3.6")
	causes[topology.ExchangeMissing](s, "first", "gone")
	causes[topology.ExchangeMissing](s, "second", "gone")
	found := findingsOf(s, topology.ExchangeMissing)
	if len(found) != 1 {
		t.Fatalf("%+v", found)
	}
	f := found[0]
	if !strings.Contains(f.Why, "The policy gone names exchange gone") ||
		!strings.Contains(f.Why, "An argument of the queue names exchange gone") {
		t.Errorf("why: %s", f.Why)
	}
	// a policy cannot change the argument of the second queue
	if got := topology.Choose(s, found, nil, false); !slices.Equal(got, []string{"first"}) {
		t.Errorf("a plan chooses %q", got)
	}
	one := f.Only("second")
	if one.Plannable || strings.Contains(one.Why+one.Title, "policy") || strings.Contains(one.Title, "first") {
		t.Errorf("for the second queue: %+v", one)
	}
}
