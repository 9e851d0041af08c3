package topology_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/topology"
)

var now = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

var cases = map[string]struct {
	version string // RabbitMQ version; "" = 4.3.6
	change  func(s *topology.Snapshot)
	options topology.Options
	want    []string
}{
	"nothing": {},
	"without management, all is well": {
		change:  func(s *topology.Snapshot) { withoutManagement(s); setFigures(s, 5, 1, topology.Rates{}) },
		options: idleFor("orders", 20),
	},
	"without management, nobody reads a queue in which letters died": {
		change:  func(s *topology.Snapshot) { withoutManagement(s); setFigures(s, 5, 0, topology.Rates{}) },
		options: idleFor("orders", 20),
		want:    []string{"no_consumers orders notify certain"},
	},
	"as dlo set it": {
		options: topology.Options{
			Applied: []topology.Planned{applied(policy("dlo", "^orders$", 10, "dead-letter-exchange", "dlo.dlx"))},
		},
	},
	"a changed policy of dlo": {
		options: topology.Options{
			Applied: []topology.Planned{
				applied(policy("dlo", "^orders$", 11, "dead-letter-exchange", "dlo.dlx")),
				applied(policy("gone", "^a$", 1, "dead-letter-exchange", "dlo.dlx")),
			},
		},
		want: []string{"policy_changed  notify certain", "policy_changed  notify certain"},
	},
	"a change of the policy that a policy of dlo hides": {
		change: func(s *topology.Snapshot) {
			s.Policies = []topology.Policy{
				policy("dlo", "^orders$", 10, "dead-letter-exchange", "dlo.dlx", "max-length", 1000),
				policy("limits", "orders", 1, "max-length", 7),
			}
		},
		options: topology.Options{
			Applied: []topology.Planned{
				applied(
					policy("dlo", "^orders$", 10, "dead-letter-exchange", "dlo.dlx", "max-length", 1000), "max-length",
					1000,
				),
			},
		},
		want: []string{"hidden_changed orders notify certain"},
	},
	"the policy that a policy of dlo hides is gone": {
		change: func(s *topology.Snapshot) {
			s.Policies = []topology.Policy{
				policy("dlo", "^orders$", 10, "dead-letter-exchange", "dlo.dlx", "max-length", 1000),
			}
		},
		options: topology.Options{
			Applied: []topology.Planned{
				applied(
					policy("dlo", "^orders$", 10, "dead-letter-exchange", "dlo.dlx", "max-length", 1000), "max-length",
					1000,
				),
			},
		},
		want: []string{"hidden_changed orders notify certain"},
	},
	"a queue leaves a policy of dlo, and the policy for the others is set already": {
		change: func(s *topology.Snapshot) {
			s.Policies = []topology.Policy{
				policy("dlo", "^orders$", 11, "dead-letter-exchange", "dlo.dlx"),
				policy("dlo-two", "^(orders|jobs)$", 10, "dead-letter-exchange", "dlo.dlx"),
			}
		},
		options: topology.Options{
			Applied: []topology.Planned{
				applied(policy("dlo", "^orders$", 11, "dead-letter-exchange", "dlo.dlx")),
				applied(policy("dlo-two", "^(orders|jobs)$", 10, "dead-letter-exchange", "dlo.dlx")),
			},
		},
	},
	"the policy that a policy of dlo hides is as before": {
		change: func(s *topology.Snapshot) {
			s.Policies = []topology.Policy{
				policy("dlo", "^orders$", 10, "dead-letter-exchange", "dlo.dlx", "max-length", 1000),
				policy("other", "orders", 1, "max-length", 1000),
			}
		},
		options: topology.Options{
			Applied: []topology.Planned{
				applied(
					policy("dlo", "^orders$", 10, "dead-letter-exchange", "dlo.dlx", "max-length", 1000), "max-length",
					1000,
				),
			},
		},
	},
	"nothing, 3.10": {version: "3.10.8"},
	"no exchange": {
		change: func(s *topology.Snapshot) { s.Policies = nil },
		want:   []string{"no_exchange orders notify certain"},
	},
	"its exchange is missing": {
		change: func(s *topology.Snapshot) { s.Policies[0].Definition["dead-letter-exchange"] = "dlx.orders" },
		want:   []string{"exchange_missing orders page certain"},
	},
	"its exchange is predeclared": {
		change: func(s *topology.Snapshot) {
			s.Policies[0].Definition["dead-letter-exchange"] = "amq.fanout"
			s.Bindings[0].Source = "amq.fanout"
		},
	},
	"no binding": {
		change: func(s *topology.Snapshot) { s.Bindings = nil },
		want:   []string{"no_binding orders page certain"},
	},
	"no binding, and an alternate exchange": {
		change: func(s *topology.Snapshot) {
			s.Exchanges = append(s.Exchanges, topology.Exchange{
				Name: "dlx", Type: "direct", Arguments: definition("alternate-exchange", "dlo.dlx"),
			})
			s.Policies[0].Definition["dead-letter-exchange"] = "dlx"
		},
	},
	"no binding for one of its keys": {
		change: func(s *topology.Snapshot) {
			s.Exchanges = append(s.Exchanges, topology.Exchange{Name: "dlx", Type: "direct"}, topology.Exchange{
				Name: "events", Type: "topic",
			})
			s.Bindings = append(
				s.Bindings, bind("events", "orders", "order.*"), bind("events", "orders", "refund"),
				bind("dlx", "dlo.letters", "refund"), bind("dlx", "dlo.letters", "orders"),
			)
			s.Policies[0].Definition["dead-letter-exchange"] = "dlx"
		},
		want: []string{"no_binding orders page likely"},
	},
	"no binding for the key that the queue sets": {
		change: func(s *topology.Snapshot) {
			s.Exchanges = append(s.Exchanges, topology.Exchange{Name: "dlx", Type: "direct"})
			s.Bindings = append(s.Bindings, bind("dlx", "dlo.letters", "other"))
			s.Policies[0].Definition = definition("dead-letter-exchange", "dlx", "dead-letter-routing-key", "dead")
		},
		want: []string{"no_binding orders page certain"},
	},
	"the queue of its key is missing": {
		change: func(s *topology.Snapshot) {
			s.Policies[0].Definition = definition("dead-letter-exchange", "", "dead-letter-routing-key", "orders.dead")
		},
		want: []string{"queue_missing orders page certain"},
	},
	"a binding to a queue that the file lacks": {
		change: func(s *topology.Snapshot) { s.Bindings[0].Destination = "gone" },
		want:   []string{"queue_missing orders page certain"},
	},
	"a binding to a queue that was declared while dlo read the vhost": {
		change: func(s *topology.Snapshot) { s.Bindings[0].Destination, s.ReadAt = "new", now },
	},
	"one of the keys leads to a queue that the file lacks": {
		change: func(s *topology.Snapshot) {
			s.Exchanges = append(s.Exchanges, topology.Exchange{Name: "dlx", Type: "direct"}, topology.Exchange{
				Name: "events", Type: "direct",
			})
			s.Bindings = append(
				s.Bindings, bind("events", "orders", "refund"), bind("dlx", "gone", "refund"),
				bind("dlx", "dlo.letters", "orders"),
			)
			s.Policies[0].Definition["dead-letter-exchange"] = "dlx"
		},
		want: []string{"queue_missing orders page certain"},
	},
	"queues changed while dlo read them, and the dead-letter queue is not among them": {
		change: func(s *topology.Snapshot) {
			s.ReadAt, s.Gaps = now, []topology.Gap{{What: "some queues", Why: "churn"}}
			s.Policies[0].Definition = definition("dead-letter-exchange", "", "dead-letter-routing-key", "parked")
		},
	},
	"its dead-letter queue is full": {
		change: func(s *topology.Snapshot) {
			s.Queues = append(s.Queues, classic("parked", "x-max-length", 10))
			s.Queues[2].Ready = topology.Figure{N: 10, Known: true}
			s.Bindings[0].Destination = "parked"
		},
		want: []string{"queue_full orders page certain", "letters_deleted parked notify certain"},
	},
	"its dead-letter queue is full by bytes": {
		change: func(s *topology.Snapshot) {
			s.Queues = append(s.Queues, classic("parked", "x-max-length", 10, "x-max-length-bytes", 1000))
			s.Queues[2].Ready, s.Queues[2].Bytes = topology.Figure{N: 3, Known: true}, topology.Figure{
				N: 1000, Known: true,
			}
			s.Bindings[0].Destination = "parked"
		},
		want: []string{"queue_full orders page certain", "letters_deleted parked notify certain"},
	},
	"its dead-letter queue will refuse letters": {
		change: func(s *topology.Snapshot) {
			s.Queues = append(s.Queues, classic("parked", "x-max-length", 10, "x-overflow", "reject-publish"))
			s.Queues[2].Ready = topology.Figure{N: 9, Known: true}
			s.Bindings[0].Destination = "parked"
		},
		want: []string{"letters_deleted parked notify certain"},
	},
	"its dead-letter queue is full and refuses letters": {
		change: func(s *topology.Snapshot) {
			s.Queues = append(s.Queues, classic("parked", "x-max-length", 10, "x-overflow", "reject-publish"))
			s.Queues[2].Ready = topology.Figure{N: 10, Known: true}
			s.Bindings[0].Destination = "parked"
		},
		want: []string{"queue_full orders page certain", "letters_deleted parked notify certain"},
	},
	"at-least-once, and its dead-letter queue is full and refuses letters": {
		change: func(s *topology.Snapshot) {
			s.Queues = append(s.Queues, classic("parked", "x-max-length", 10, "x-overflow", "reject-publish"))
			s.Queues[0] = quorum("orders", "x-dead-letter-strategy", "at-least-once", "x-overflow", "reject-publish")
			s.Queues[0].Stuck = topology.Figure{N: 3, Known: true}
			s.Queues[2].Ready = topology.Figure{N: 10, Known: true}
			s.Bindings[0].Destination = "parked"
		},
		want: []string{"stuck orders notify likely"},
	},
	"at-least-once, and its full dead-letter queue pushes letters out": {
		change: func(s *topology.Snapshot) {
			s.Queues = append(s.Queues, classic("parked", "x-max-length", 10))
			s.Queues[0] = quorum("orders", "x-dead-letter-strategy", "at-least-once", "x-overflow", "reject-publish")
			s.Queues[2].Ready = topology.Figure{N: 10, Known: true}
			s.Bindings[0].Destination = "parked"
		},
		want: []string{"queue_full orders page certain", "letters_deleted parked notify certain"},
	},
	"behind a fanout exchange, and only its name is bound": {
		change: bindBehind("fanout", "orders"),
		want:   []string{"no_binding orders notify likely"},
	},
	"behind a headers exchange, and only its name is bound": {
		change: bindBehind("headers", "orders"),
		want:   []string{"no_binding orders notify likely"},
	},
	"behind a fanout exchange, and another key is bound as well": {change: func(s *topology.Snapshot) {
		bindBehind("fanout", "orders")(s)
		s.Bindings = append(s.Bindings, bind("dlx", "dlo.letters", "order.created"))
	}},
	"behind a fanout exchange, and its key is fixed": {change: func(s *topology.Snapshot) {
		bindBehind("fanout", "orders")(s)
		s.Policies[0].Definition["dead-letter-routing-key"] = "orders"
	}},
	"behind a fanout exchange, and its exchange has an alternate exchange": {change: func(s *topology.Snapshot) {
		bindBehind("fanout", "orders")(s)
		s.Exchanges[1].Arguments = definition("alternate-exchange", "dlo.dlx")
	}},
	"behind a fanout exchange, and messages only wait there": {change: func(s *topology.Snapshot) {
		bindBehind("fanout", "orders")(s)
		s.Queues[0].Arguments = definition("x-message-ttl", 1000)
	}},
	"behind a fanout exchange, and only another key is bound": {
		change: bindBehind("fanout", "order.created"),
		want:   []string{"second_death_lost orders page certain"},
	},
	"behind a fanout exchange, and a key of its direct exchange is bound": {
		change: func(s *topology.Snapshot) {
			bindBehind("fanout", "orders")(s)
			s.Exchanges = append(s.Exchanges, topology.Exchange{Name: "direct", Type: "direct"})
			s.Bindings = append(s.Bindings, bind("direct", "orders", "orders"))
		},
		want: []string{"no_binding orders notify likely"},
	},
	"a second death": {
		change: func(s *topology.Snapshot) {
			s.Exchanges = append(s.Exchanges, topology.Exchange{Name: "dlx", Type: "direct"}, topology.Exchange{
				Name: "events", Type: "direct",
			})
			s.Bindings = append(s.Bindings, bind("events", "orders", "order"), bind("dlx", "dlo.letters", "order"))
			s.Policies[0].Definition["dead-letter-exchange"] = "dlx"
		},
		want: []string{"second_death_lost orders page certain"},
	},
	"a second death that dlo does not see": {
		change: func(s *topology.Snapshot) {
			s.Exchanges = append(s.Exchanges, topology.Exchange{Name: "dlx", Type: "direct"}, topology.Exchange{
				Name: "events", Type: "direct",
			})
			s.Queues = append(s.Queues, classic("parked"))
			s.Bindings = append(s.Bindings, bind("events", "orders", "order"), bind("dlx", "parked", "order"))
			s.Policies[0].Definition["dead-letter-exchange"] = "dlx"
		},
	},
	"levels of delay": {change: levelsOfDelay},
	"levels of delay, and the last one leads nowhere": {
		change: func(s *topology.Snapshot) {
			levelsOfDelay(s)
			s.Bindings[len(s.Bindings)-1].Key = "x.y.z.#.sales"
			s.Bindings[len(s.Bindings)-1].Source = "elsewhere"
		},
		want: []string{"no_binding level.0 page certain"},
	},
	"a chain of topic exchanges": {
		change: func(s *topology.Snapshot) {
			chained(s, "#", "*.orders")
			s.Bindings = append(s.Bindings, bind("dlx", "parked", "*.orders"))
		},
	},
	"a chain of topic exchanges, and the first one lets through few keys": {
		change: func(s *topology.Snapshot) {
			chained(s, "eu.#", "*.orders")
			s.Bindings = append(s.Bindings, bind("dlx", "parked", "eu.#"))
		},
	},
	"a chain of topic exchanges, and its keys are not bound": {
		change: func(s *topology.Snapshot) {
			chained(s, "eu.#", "*.orders")
			s.Bindings = append(s.Bindings, bind("dlx", "parked", "us.#"))
		},
		want: []string{"no_binding orders page likely", "no_exchange parked notify certain"},
	},
	"a chain through an exchange whose other messages do not fit": {
		change: func(s *topology.Snapshot) {
			chained(s, "audit.#", "order.*")
			s.Bindings = append(s.Bindings, bind("dlx", "parked", "refund"))
		},
		want: []string{"no_binding orders page likely", "no_exchange parked notify certain"},
	},
	"a topic pattern, and some of its keys are bound": {
		change: func(s *topology.Snapshot) {
			chained(s, "#", "order.*")
			s.Bindings = append(s.Bindings, bind("dlx", "parked", "order.created"))
		},
		want: []string{"no_binding orders notify likely"},
	},
	"a topic pattern of one word, and the key is empty": {
		change: func(s *topology.Snapshot) {
			behind(s, "topic", nil, bind("dlx", "parked", "*"), bind("dlx", "parked", "*.#"))
			s.Policies[0].Definition["dead-letter-routing-key"] = ""
		},
		want: []string{"no_binding orders page certain", "no_exchange parked notify certain"},
	},
	"a topic pattern of any words, and the key is empty": {
		change: func(s *topology.Snapshot) {
			behind(s, "topic", nil, bind("dlx", "parked", "#"))
			s.Policies[0].Definition["dead-letter-routing-key"] = ""
		},
	},
	"behind a fanout exchange, and the default exchange gets any key": {
		change: func(s *topology.Snapshot) {
			bindBehind("fanout", "orders")(s)
			s.Policies[0].Definition["dead-letter-exchange"] = ""
		},
		want: []string{"no_binding orders notify likely"},
	},
	"behind a fanout exchange that gets only one key, which is not bound": {
		change: func(s *topology.Snapshot) { linked(s, "direct", "created", "fanout", ""); bindDLX(s, "other") },
		want:   []string{"no_binding orders page likely"},
	},
	"behind a fanout exchange that gets only one key, which is bound": {
		change: func(s *topology.Snapshot) { linked(s, "direct", "created", "fanout", ""); bindDLX(s, "created") },
	},
	"a key that does not come through an internal exchange": {
		change: func(s *topology.Snapshot) {
			linked(s, "topic", "eu.#", "direct", "us.orders")
			s.Bindings = append(s.Bindings, bind("some", "orders", "eu.orders"))
			bindDLX(s, "eu.orders")
		},
	},
	"a key that does not come through an internal topic exchange": {
		change: func(s *topology.Snapshot) {
			linked(s, "topic", "eu.#", "topic", "us.orders")
			s.Bindings = append(s.Bindings, bind("some", "orders", "eu.orders"))
			bindDLX(s, "eu.orders")
		},
	},
	"keys from many exchanges in circles": {change: meshed, want: []string{"no_binding orders page likely"}},
	"a policy of unknown pattern may set an alternate exchange": {
		change: func(s *topology.Snapshot) { alternate(s, `^dlx(?:\x{41})?$`) },
		want:   []string{"route_unknown orders digest likely"},
	},
	"a policy of unknown pattern sets an alternate exchange, as the broker says": {
		change: func(s *topology.Snapshot) {
			alternate(s, `^dlx(?:\x{41})?$`)
			s.Exchanges[1].Policy = &s.Policies[1].Name
		},
	},
	"one of two policies sets an alternate exchange": {
		change: func(s *topology.Snapshot) {
			alternate(s, "^dlx$")
			s.Policies = append(s.Policies, policy("other", "^dlx$", 0, "federation-upstream-set", "all"))
			s.Policies[2].ApplyTo = "exchanges"
		},
		want: []string{"route_unknown orders digest likely"},
	},
	"two policies set the same alternate exchange": {
		change: func(s *topology.Snapshot) {
			alternate(s, "^dlx$")
			s.Policies = append(s.Policies, s.Policies[1])
			s.Policies[2].Name = "other"
		},
	},
	"a way that is not known, beside one that is": {
		change: func(s *topology.Snapshot) {
			behind(s, "fanout", nil, link("dlx", "hash", ""), link("dlx", "every", ""), link("hash", "every", "1"))
			s.Exchanges = append(s.Exchanges, topology.Exchange{Name: "hash", Type: "x-consistent-hash"},
				topology.Exchange{Name: "every", Type: "fanout"})
			s.Bindings = append(s.Bindings, bind("every", "dlo.letters", ""))
		},
		want: []string{"no_exchange parked notify certain"},
	},
	"the exchange routes by headers that each dead letter has": {
		change: byHeaders("x-match", "all", "x-first-death-reason", "expired"),
	},
	"the exchange routes by headers, and has no arguments": {change: byHeaders()},
	"the exchange routes by headers, and ignores those that dead letters have": {
		change: byHeaders("x-match", "any", "x-first-death-reason", "rejected"),
		want:   []string{"no_binding orders page likely"},
	},
	"the exchange routes by the reason of the death": {
		change: byHeaders("x-match", "any-with-x", "x-first-death-reason", "rejected"),
	},
	"the exchange routes by another reason of the death": {
		change: byHeaders("x-match", "all-with-x", "x-first-death-reason", "expired"),
		want:   []string{"no_binding orders page likely"},
	},
	"the exchange routes by another queue of the death, and messages have any key": {
		change: func(s *topology.Snapshot) {
			byHeaders("x-match", "all-with-x", "x-first-death-queue", "invoices")(s)
			s.Exchanges = append(s.Exchanges, topology.Exchange{Name: "events", Type: "fanout"})
			s.Bindings = append(s.Bindings, bind("events", "orders", ""))
		},
		want: []string{"no_binding orders page likely"},
	},
	"the exchange routes only expired messages, and messages expire": {
		change: func(s *topology.Snapshot) {
			byHeaders("x-match", "all-with-x", "x-first-death-reason", "expired")(s)
			s.Queues[0].Arguments["x-message-ttl"] = json.Number("1000")
		},
		want: []string{"no_binding orders notify likely"},
	},
	"the exchange routes only expired messages, messages expire at once, and dlo sees no consumer": {
		change: func(s *topology.Snapshot) {
			byHeaders("x-match", "all-with-x", "x-first-death-reason", "expired")(s)
			s.Queues[0].Arguments["x-message-ttl"] = json.Number("0")
			setFigures(s, 5, 0, topology.Rates{})
		},
		want: []string{"no_binding orders notify likely"},
	},
	"the exchange routes only expired messages, messages expire by policy, and the queue is quorum": {
		change: func(s *topology.Snapshot) {
			byHeaders("x-match", "all-with-x", "x-first-death-reason", "expired")(s)
			s.Queues[0] = quorum("orders", "x-dead-letter-strategy", "at-least-once", "x-overflow", "reject-publish")
			s.Policies[0].Definition["message-ttl"] = json.Number("1000")
		},
		want: []string{"no_binding orders notify likely"},
	},
	"the exchange routes only expired messages by their latest death, and there is a length limit": {
		change: func(s *topology.Snapshot) {
			byHeaders("x-match", "any-with-x", "x-last-death-reason", "expired")(s)
			s.Queues[0] = classic("orders", "x-message-ttl", 1000, "x-max-length", 100)
		},
		want: []string{"no_binding orders notify likely"},
	},
	"the exchange routes only messages above a length limit": {
		change: func(s *topology.Snapshot) {
			byHeaders("x-match", "all-with-x", "x-first-death-reason", "maxlen")(s)
			s.Queues[0].Arguments["x-max-length"] = json.Number("100")
		},
		want: []string{"no_binding orders notify likely"},
	},
	"the exchange routes only messages above a length limit, and messages expire": {
		change: func(s *topology.Snapshot) {
			byHeaders("x-match", "all-with-x", "x-first-death-reason", "maxlen")(s)
			s.Queues[0] = classic("orders", "x-message-ttl", 1000, "x-max-length", 100)
		},
		want: []string{"no_binding orders page likely"},
	},
	"the exchange routes only expired messages, and a consumer may reject some": {
		change: func(s *topology.Snapshot) {
			byHeaders("x-match", "all-with-x", "x-first-death-reason", "expired")(s)
			s.Queues[0].Arguments["x-message-ttl"] = json.Number("1000")
			setFigures(s, 0, 1, topology.Rates{})
		},
		want: []string{"no_binding orders page likely"},
	},
	"the exchange routes only expired messages, and the full queue refuses messages": {
		change: func(s *topology.Snapshot) {
			byHeaders("x-match", "all-with-x", "x-first-death-reason", "expired")(s)
			s.Queues[0] = classic("orders", "x-max-length", 100, "x-overflow", "reject-publish")
		},
		want: []string{"no_binding orders page likely"},
	},
	"the exchange routes no expired messages, and messages expire": {
		change: func(s *topology.Snapshot) {
			byHeaders("x-match", "all-with-x", "x-first-death-reason", "rejected")(s)
			s.Queues[0].Arguments["x-message-ttl"] = json.Number("1000")
		},
		want: []string{"no_binding orders notify likely"},
	},
	"the exchange routes no expired messages, and messages wait without a consumer": {
		change: func(s *topology.Snapshot) {
			byHeaders("x-match", "all-with-x", "x-first-death-reason", "rejected")(s)
			s.Queues[0].Arguments["x-message-ttl"] = json.Number("1000")
			setFigures(s, 0, 0, topology.Rates{})
		},
		options: idleFor("orders", 20),
		want:    []string{"no_binding orders page likely"},
	},
	"the exchange routes only messages beyond the delivery limit": {
		change: func(s *topology.Snapshot) {
			byHeaders("x-match", "all-with-x", "x-first-death-reason", "delivery_limit")(s)
			s.Queues[0] = quorum("orders", "x-dead-letter-strategy", "at-least-once", "x-overflow", "reject-publish")
		},
		want: []string{"no_binding orders page likely"},
	},
	"the exchange routes by another queue of the death": {
		change: byHeaders("x-match", "all-with-x", "x-first-death-queue", "invoices"),
		want:   []string{"no_binding orders page likely"},
	},
	"the exchange routes by headers of messages": {
		change: byHeaders("tenant", "a"),
		want:   []string{"route_unknown orders digest likely"},
	},
	"a delayed exchange, and its key is not bound": {
		change: func(s *topology.Snapshot) {
			behind(s, "x-delayed-message", definition("x-delayed-type", "direct"), bind("dlx", "parked", "dead.order"))
			s.Policies[0].Definition["dead-letter-routing-key"] = "dead.orders"
		},
		want: []string{"no_binding orders page certain", "no_exchange parked notify certain"},
	},
	"a delayed exchange": {
		change: func(s *topology.Snapshot) {
			behind(s, "x-delayed-message", definition("x-delayed-type", "fanout"), bind("dlx", "parked", ""))
		},
	},
	"an exchange of a type that dlo does not know": {
		change: func(s *topology.Snapshot) { behind(s, "x-random", nil, bind("dlx", "parked", "")) },
		want:   []string{"route_unknown orders digest likely"},
	},
	"an argument beats the policy": {
		change: func(s *topology.Snapshot) {
			s.Queues[0].Arguments["x-dead-letter-exchange"] = "old"
			s.Queues = append(s.Queues, classic("old.dead"))
			s.Exchanges = append(s.Exchanges, topology.Exchange{Name: "old", Type: "fanout"})
			s.Bindings = append(s.Bindings, bind("old", "old.dead", ""))
		},
		want: []string{"argument_wins orders notify certain"},
	},
	"an argument agrees with the policy": {
		change: func(s *topology.Snapshot) { s.Queues[0].Arguments["x-dead-letter-exchange"] = "dlo.dlx" },
	},
	"a policy hides another": {
		change: func(s *topology.Snapshot) {
			s.Policies = append(s.Policies, policy("limits", ".*", 20, "max-length", 1000))
		},
		want: []string{"letters_deleted dlo.letters page certain", "policy_shadowed orders page certain"},
	},
	"a policy that does not fit the type hides nothing": {
		change: func(s *topology.Snapshot) {
			s.Policies = append(s.Policies, policy("quorum", "^orders$", 20, "delivery-limit", 5))
		},
	},
	"tied policies": {
		change: func(s *topology.Snapshot) {
			s.Policies = append(s.Policies, policy("limits", "^ord", 10, "max-length", 1000))
		},
		want: []string{"policy_tied orders notify certain"},
	},
	"tied policies with the same exchange": {
		change: func(s *topology.Snapshot) {
			s.Policies = append(
				s.Policies, policy("limits", "^ord", 10, "max-length", 1000, "dead-letter-exchange", "dlo.dlx"),
			)
		},
	},
	"a shovel": {
		change: func(s *topology.Snapshot) {
			s.Shovels = []topology.Shovel{
				{Name: "to the archive", From: "orders"},
				{Name: "elsewhere"},
				{Name: "in", To: "orders"},
			}
		},
		want: []string{"moved orders digest certain", "moved orders digest certain"},
	},
	"shovels of other brokers and vhosts": {
		change: func(s *topology.Snapshot) {
			for i, value := range []string{
				`{"src-uri":"amqp://","src-queue":"orders","dest-uri":"amqp://","dest-queue":"orders2"}`,
				`{"src-uri":["amqp://user:secret@localhost:5672/%2f"],"src-queue":"orders","dest-uri":"amqp://elsewhere","dest-queue":"archive"}`,
				`{"src-uri":"amqps://user:secret@elsewhere:5671/%2f","src-queue":"orders","dest-uri":"amqp:///other","dest-queue":"orders"}`,
				`{"src-uri":"amqp:///other","src-queue":"orders","dest-uri":["amqp://user:secret@one","amqp://two"],"dest-queue":"orders"}`,
				`{"src-uri":"amqp://","src-queue":"orders"}`, `[]`, `{"src-uri":7,"src-address":"orders"}`,
			} {
				s.AddShovel(fmt.Sprint(i), json.RawMessage(value))
			}
		},
		want: []string{
			"moved orders digest certain", "moved orders digest certain", "moved orders digest likely",
			"moved orders digest likely", "moved orders digest certain",
		},
	},
	"a federated exchange": {
		change: func(s *topology.Snapshot) {
			s.Exchanges = append(s.Exchanges, topology.Exchange{Name: "events", Type: "fanout"}, topology.Exchange{
				Name: "unbound", Type: "fanout",
			})
			s.Bindings = append(s.Bindings, bind("events", "orders", ""))
			s.Policies = append(s.Policies, topology.Policy{
				Name: "all", Pattern: "^(events|unbound)$", ApplyTo: "exchanges", Priority: 99,
				Definition: definition("federation-upstream-set", "all"),
			})
		},
		want: []string{"moved  digest certain"},
	},
	"exchanges that one policy federates": {
		change: func(s *topology.Snapshot) {
			s.Exchanges = append(
				s.Exchanges, topology.Exchange{Name: "events", Type: "fanout"}, topology.Exchange{Name: "logs", Type: "fanout"},
			)
			s.Bindings = append(s.Bindings, bind("events", "orders", ""), bind("logs", "orders", ""))
			s.Policies = append(s.Policies, policy("all", "^(events|logs)$", 99, "federation-upstream-set", "all"))
			s.Policies[1].ApplyTo = "exchanges"
		},
		want: []string{"moved  digest certain"},
	},
	"queues of federation links": {
		change: func(s *topology.Snapshot) {
			s.Queues = append(
				s.Queues, classic("federation: events -> b:/:events", "x-expires", 1000, "x-message-ttl", 1000),
				classic(
					"link", "x-internal-purpose", "federation", "x-message-ttl", 1000, "x-dead-letter-exchange", "",
				),
			)
		},
	},
	"a federated queue": {
		change: func(s *topology.Snapshot) {
			s.Policies = append(
				s.Policies,
				policy("all", "^orders$", 99, "federation-upstream-set", "all", "dead-letter-exchange", "dlo.dlx"),
			)
		},
		want: []string{"moved orders digest certain"},
	},
	"the broker does not apply a policy": {
		change: func(s *topology.Snapshot) { s.Queues[0].Policy = new(string) },
		want:   []string{"policy_ignored orders page certain"},
	},
	"the broker applies another policy than the one of the highest priority": {
		change: func(s *topology.Snapshot) {
			s.Policies = append(s.Policies, policy("other", "^nothing$", 1, "dead-letter-exchange", "dlo.dlx"))
			s.Queues[0].Policy = &s.Policies[1].Name
		},
		want: []string{"policy_ignored orders notify certain"},
	},
	"the broker applies no key of a policy": {
		change: func(s *topology.Snapshot) { s.Queues[0].Effective = topology.Definition{} },
		want:   []string{"policy_ignored orders page certain"},
	},
	"the broker applies an operator policy that dlo does not expect": {
		change: func(s *topology.Snapshot) {
			s.Queues[0].Effective = topology.Definition{
				"dead-letter-exchange": "dlo.dlx", "max-length": json.Number("7"),
			}
		},
		want: []string{"policy_ignored orders notify certain"},
	},
	"the broker applies another value than the policy has": {
		change: func(s *topology.Snapshot) {
			s.Queues[0].Effective = topology.Definition{"dead-letter-exchange": "gone"}
		},
		want: []string{"exchange_missing orders page certain", "policy_ignored orders notify certain"},
	},
	"a key that classic queues of 3.10 do not support": {
		version: "3.10.8",
		change:  func(s *topology.Snapshot) { s.Policies[0].Definition["queue-leader-locator"] = "balanced" },
		want:    []string{"policy_ignored orders page certain"},
	},
	"the same key on 4.0": {
		version: "4.0.5",
		change:  func(s *topology.Snapshot) { s.Policies[0].Definition["queue-leader-locator"] = "balanced" },
	},
	"a key that classic queues of 4.x do not support": {
		change: func(s *topology.Snapshot) {
			s.Policies[0].Definition["max-in-memory-length"] = json.Number("1000")
		},
		want: []string{"policy_ignored orders page certain"},
	},
	"the same key on 3.10": {
		version: "3.10.8",
		change: func(s *topology.Snapshot) {
			s.Policies[0].Definition["max-in-memory-length"] = json.Number("1000")
		},
	},
	"a key that quorum queues of 3.x do not support": {
		version: "3.10.8",
		change: func(s *topology.Snapshot) {
			s.Queues[0] = quorum("orders", "x-dead-letter-strategy", "at-least-once", "x-overflow", "reject-publish")
			s.Policies[0].Definition["ha-mode"] = "all"
		},
		want: []string{"policy_ignored orders page certain"},
	},
	"a key that the type does not support, and another policy with an exchange": {
		change: func(s *topology.Snapshot) {
			s.Policies = append(s.Policies, policy(
				"quorum", "^orders$", 20, "delivery-limit", 5, "dead-letter-exchange", "dlo.dlx",
			))
		},
	},
	"a policy that may not apply, which the broker says it does not": {
		version: "3.13.7",
		change: func(s *topology.Snapshot) {
			s.ReadAt, s.Queues[0].Policy = now, new(string)
			s.Policies[0].Definition["queue-leader-locator"] = "balanced"
		},
		want: []string{"policy_ignored orders page certain"},
	},
	"a policy that may not apply, which the broker says it does": {
		version: "3.13.7",
		change: func(s *topology.Snapshot) {
			s.ReadAt, s.Queues[0].Policy = now, &s.Policies[0].Name
			s.Policies[0].Definition["queue-leader-locator"] = "balanced"
		},
	},
	"three policies of one name": {
		change: func(s *topology.Snapshot) {
			s.Policies = append(s.Policies, s.Policies[0], s.Policies[0])
		},
		want: []string{"policy_twice  notify certain"},
	},
	"two policies of one name": {
		change: func(s *topology.Snapshot) {
			s.Policies = append(s.Policies, policy("dlo", "^emails$", 10, "dead-letter-exchange", "dlo.dlx"))
		},
		want: []string{"policy_twice  notify certain"},
	},
	"an exchange with two inboxes": {
		change: func(s *topology.Snapshot) {
			s.Queues = append(s.Queues, topology.Queue{Name: "orders.dlq", Durable: true, Type: topology.Classic})
			s.Bindings = append(s.Bindings, topology.Binding{Source: "dlo.dlx", Destination: "orders.dlq", To: "queue"})
		},
		options: topology.Options{Inboxes: []string{"dlo.letters", "orders.dlq"}},
		want:    []string{"taken_twice  notify certain"},
	},
	"an exchange with an inbox and another queue": {
		change: func(s *topology.Snapshot) {
			s.Queues = append(s.Queues, topology.Queue{Name: "copies", Durable: true, Type: topology.Classic})
			s.Bindings = append(s.Bindings, topology.Binding{Source: "dlo.dlx", Destination: "copies", To: "queue"})
		},
	},
	"a pattern that only PCRE knows": {
		change: func(s *topology.Snapshot) { s.Policies[0].Pattern = `^orders(?R)?$` },
		want:   []string{"pattern_unknown orders digest likely"},
	},
	"two patterns that only PCRE knows": {
		change: func(s *topology.Snapshot) {
			s.Policies[0].Pattern = `^orders(?R)?$`
			s.Policies = append(s.Policies, policy("other", `^orders(?R)?`, 0, "max-length", 1000))
		},
		want: []string{"pattern_unknown orders digest likely", "pattern_unknown orders digest likely"},
	},
	"a pattern that needs too long": {
		change: func(s *topology.Snapshot) {
			s.Queues[0].Name = strings.Repeat("a", 60) + "!"
			s.Policies[0].Pattern = `^a+!$`
			s.Policies = append(s.Policies, policy("slow", `^(?!b)((a+)+)+$`, 20, "max-length", 5))
		},
		want: []string{
			"pattern_unknown " + strings.Repeat("a", 60) + "! notify likely",
		},
	},
	"a lookahead": {
		change: func(s *topology.Snapshot) { s.Policies[0].Pattern = "^(?!amq\\.)(?!dlo).*" },
	},
	"a lookahead that excludes the queue": {
		change: func(s *topology.Snapshot) { s.Policies[0].Pattern = "^(?!amq\\.|orders).*" },
		want:   []string{"no_exchange orders notify certain"},
	},
	"a lookahead of a policy that hides another": {
		change: func(s *topology.Snapshot) {
			s.Policies = append(s.Policies, policy("limits", "^(?!dlo)(?!amq\\.).*", 20, "max-length", 1000))
		},
		want: []string{"policy_shadowed orders page certain"},
	},
	"a pattern that only PCRE knows, and the broker's own answer": {
		change: func(s *topology.Snapshot) {
			s.Policies[0].Pattern = "^(?!emails)orders$"
			name := "dlo"
			s.Queues[0].Policy = &name
		},
	},
	"an operator policy lowers a limit": {
		change: func(s *topology.Snapshot) {
			s.Policies[0].Definition["max-length"] = json.Number("1000")
			s.Operators = []topology.Policy{policy("caps", "^orders$", 0, "max-length", 10)}
		},
		want: []string{"operator_caps orders digest certain"},
	},
	"an operator policy sets a limit that is higher": {
		change: func(s *topology.Snapshot) {
			s.Policies[0].Definition["max-length"] = json.Number("10")
			s.Operators = []topology.Policy{policy("caps", "^orders$", 0, "max-length", 1000)}
		},
	},
	"expired messages go in a circle": {
		change: func(s *topology.Snapshot) {
			s.Queues = append(
				s.Queues,
				classic(
					"wait", "x-message-ttl", 1000, "x-dead-letter-exchange", "", "x-dead-letter-routing-key", "orders",
				),
			)
			s.Policies[0].Definition = definition(
				"dead-letter-exchange", "", "dead-letter-routing-key", "wait", "message-ttl", 500,
			)
		},
		want: []string{"cycle orders notify certain"},
	},
	"a retry recipe": {
		change: func(s *topology.Snapshot) {
			s.Queues = append(
				s.Queues,
				classic(
					"wait", "x-message-ttl", 30000, "x-dead-letter-exchange", "", "x-dead-letter-routing-key", "orders",
				),
			)
			s.Policies[0].Definition = definition("dead-letter-exchange", "", "dead-letter-routing-key", "wait")
		},
		want: []string{"retry_recipe orders digest certain"},
	},
	"a retry recipe of a queue with a length limit": {
		change: func(s *topology.Snapshot) {
			s.Queues = append(
				s.Queues,
				classic(
					"wait", "x-message-ttl", 30000, "x-dead-letter-exchange", "", "x-dead-letter-routing-key", "orders",
				),
			)
			s.Policies[0].Definition = definition(
				"dead-letter-exchange", "", "dead-letter-routing-key", "wait", "max-length", 10000,
			)
		},
		want: []string{"retry_recipe orders digest certain"},
	},
	"wait queues of dlo": {
		change: func(s *topology.Snapshot) {
			for _, name := range []string{"dlo.wait.5000", "dlo.wait.30000"} {
				s.Queues = append(
					s.Queues,
					quorum(name, "x-dead-letter-exchange", "", "x-overflow", "reject-publish", "x-message-ttl", 5000),
				)
				s.Exchanges = append(s.Exchanges, topology.Exchange{Name: name, Type: "fanout"})
				s.Bindings = append(s.Bindings, bind(name, name, ""))
			}
		},
	},
	"a delay queue that is bound to a fanout exchange": {
		change: func(s *topology.Snapshot) {
			s.Queues = append(s.Queues, classic("later", "x-message-ttl", 5000, "x-dead-letter-exchange", ""))
			s.Exchanges = append(s.Exchanges, topology.Exchange{Name: "delay", Type: "fanout"})
			s.Bindings = append(s.Bindings, bind("delay", "later", ""))
		},
	},
	"a delay queue that sends messages back to itself": {
		change: func(s *topology.Snapshot) {
			s.Queues = append(s.Queues, classic("later", "x-message-ttl", 5000, "x-dead-letter-exchange", ""))
		},
		want: []string{"cycle later notify certain"},
	},
	"a retry recipe with one wait queue for several queues": {
		change: func(s *topology.Snapshot) {
			s.Queues = append(
				s.Queues, classic("emails"), classic("wait", "x-message-ttl", 5000, "x-dead-letter-exchange", ""),
			)
			s.Exchanges = append(s.Exchanges, topology.Exchange{Name: "retry", Type: "fanout"})
			s.Bindings = append(s.Bindings, bind("retry", "wait", ""))
			s.Policies = []topology.Policy{policy("retry", "^(orders|emails)$", 1, "dead-letter-exchange", "retry")}
		},
		want: []string{"retry_recipe orders digest certain"},
	},
	"a queue that delays messages": {
		change: func(s *topology.Snapshot) {
			s.Queues = append(
				s.Queues,
				classic(
					"later", "x-message-ttl", 30000, "x-dead-letter-exchange", "", "x-dead-letter-routing-key",
					"orders",
				),
			)
		},
	},
	"a quorum queue dead-letters at most once": {
		change: func(s *topology.Snapshot) { s.Queues[0] = quorum("orders") },
		want:   []string{"at_most_once orders digest certain"},
	},
	"at-least-once": {
		change: func(s *topology.Snapshot) {
			s.Queues[0] = quorum("orders", "x-dead-letter-strategy", "at-least-once", "x-overflow", "reject-publish")
		},
	},
	"at-least-once without reject-publish": {
		change: func(s *topology.Snapshot) {
			s.Queues[0] = quorum("orders", "x-dead-letter-strategy", "at-least-once")
		},
		want: []string{"overflow_drops orders notify certain"},
	},
	"at-least-once, which an argument prevents": {
		change: func(s *topology.Snapshot) {
			s.Queues[0] = quorum("orders", "x-overflow", "drop-head")
			s.Policies[0] = policy(
				"dlo", "^orders$", 10, "dead-letter-exchange", "dlo.dlx", "dead-letter-strategy", "at-least-once",
				"overflow", "reject-publish",
			)
		},
		want: []string{"overflow_drops orders notify certain"},
	},
	"at-least-once holds letters back": {
		change: func(s *topology.Snapshot) {
			s.Queues[0] = quorum("orders", "x-dead-letter-strategy", "at-least-once", "x-overflow", "reject-publish")
			s.Queues[0].Stuck = topology.Figure{N: 3, Known: true}
		},
		want: []string{"stuck orders notify likely"},
	},
	"the dead-letter queue has a time-to-live": {
		change: func(s *topology.Snapshot) { s.Queues[1].Arguments["x-message-ttl"] = json.Number("1000") },
		want:   []string{"letters_deleted dlo.letters page certain"},
	},
	"the inbox expires": {
		change: func(s *topology.Snapshot) { s.Queues[1].Arguments["x-expires"] = json.Number("60000") },
		want:   []string{"letters_deleted dlo.letters page certain"},
	},
	"the inbox is deleted automatically": {
		change: func(s *topology.Snapshot) { s.Queues[1].AutoDelete = true },
		want:   []string{"letters_deleted dlo.letters page certain"},
	},
	"the inbox is exclusive": {
		change: func(s *topology.Snapshot) { s.Queues[1].Exclusive = true },
		want:   []string{"letters_deleted dlo.letters page certain"},
	},
	// A dead-letter queue may itself have a dead-letter exchange. This loses no letters, because
	// dlo never rejects a letter. Therefore even a missing exchange has no effect on an inbox.
	"the inbox has a dead-letter exchange of its own": {
		change: func(s *topology.Snapshot) { s.Queues[1].Arguments["x-dead-letter-exchange"] = "gone" },
	},
	"another dead-letter queue has a dead-letter exchange of its own": {
		change: func(s *topology.Snapshot) {
			s.Queues = append(s.Queues, classic("parked", "x-dead-letter-exchange", "dlo.dlx"))
			s.Policies[0].Definition = definition("dead-letter-exchange", "", "dead-letter-routing-key", "parked")
		},
	},
	"the dead-letter exchange of another dead-letter queue is missing": {
		change: func(s *topology.Snapshot) {
			s.Queues = append(s.Queues, classic("parked", "x-dead-letter-exchange", "gone"))
			s.Policies[0].Definition = definition("dead-letter-exchange", "", "dead-letter-routing-key", "parked")
		},
		want: []string{"exchange_missing parked page certain"},
	},
	"the inbox passes letters on": {
		change: func(s *topology.Snapshot) {
			s.Queues[1].Arguments = definition(
				"x-delivery-limit", -1, "x-message-ttl", 1000, "x-dead-letter-exchange", "",
				"x-dead-letter-routing-key", "parked",
			)
			s.Queues = append(s.Queues, classic("parked"))
		},
		want: []string{"letters_deleted dlo.letters page certain"},
	},
	"another dead-letter queue passes letters on": {
		change: func(s *topology.Snapshot) {
			s.Queues = append(
				s.Queues, classic("first.dead", "x-message-ttl", 1000, "x-dead-letter-exchange", "dlo.dlx"),
			)
			s.Policies[0].Definition = definition("dead-letter-exchange", "", "dead-letter-routing-key", "first.dead")
		},
	},
	"the inbox has the default delivery limit": {
		change: func(s *topology.Snapshot) { s.Queues[1].Arguments = definition() },
		want:   []string{"delivery_limit dlo.letters page certain"},
	},
	"another dead-letter queue has the default delivery limit": {
		change: func(s *topology.Snapshot) {
			s.Queues = append(s.Queues, quorum("parked"))
			s.Bindings[0].Destination = "parked"
		},
		want: []string{"delivery_limit parked digest certain"},
	},
	"the inbox has a delivery limit of -1 on 3.10": {
		version: "3.10.8",
		change:  func(s *topology.Snapshot) { s.Queues[1].Arguments = definition("x-delivery-limit", -1) },
		want:    []string{"delivery_limit dlo.letters page certain"},
	},
	"a policy of 5 overrides the -1 of the inbox": {
		change: func(s *topology.Snapshot) {
			s.Policies = append(s.Policies, policy("letters", "^dlo", 1, "delivery-limit", 5))
		},
		want: []string{"delivery_limit dlo.letters page certain"},
	},
	"a policy of -1 does not override the 5 of the inbox": {
		change: func(s *topology.Snapshot) {
			s.Queues[1].Arguments = definition("x-delivery-limit", 5)
			s.Policies = append(s.Policies, policy("letters", "^dlo", 1, "delivery-limit", -1))
		},
		want: []string{"delivery_limit dlo.letters page certain"},
	},
	"a policy of -1 for the inbox": {
		change: func(s *topology.Snapshot) {
			s.Queues[1].Arguments = definition()
			s.Policies = append(s.Policies, policy("letters", "^dlo", 1, "delivery-limit", -1))
		},
	},
	"an operator policy limits deliveries that were unlimited": {
		change: func(s *topology.Snapshot) {
			s.Queues[0] = quorum(
				"orders", "x-delivery-limit", -1, "x-dead-letter-strategy", "at-least-once", "x-overflow",
				"reject-publish",
			)
			s.Operators = []topology.Policy{policy("caps", "^orders$", 0, "delivery-limit", 5)}
		},
		want: []string{"operator_caps orders digest certain"},
	},
	"an operator policy of -1 lowers no delivery limit": {
		change: func(s *topology.Snapshot) {
			s.Queues[0] = quorum(
				"orders", "x-delivery-limit", 5, "x-dead-letter-strategy", "at-least-once", "x-overflow",
				"reject-publish",
			)
			s.Operators = []topology.Policy{policy("caps", "^orders$", 0, "delivery-limit", -1)}
		},
	},
	"no consumer for 20 minutes": {
		change: func(s *topology.Snapshot) {
			setFigures(s, 5, 0, topology.Rates{Publish: topology.Rate{PerSecond: 2}})
		},
		options: idleFor("orders", 20),
		want:    []string{"no_consumers orders notify certain"},
	},
	"no consumer for 14 minutes": {
		change: func(s *topology.Snapshot) {
			setFigures(s, 5, 0, topology.Rates{Publish: topology.Rate{PerSecond: 2}})
		},
		options: idleFor("orders", 14),
	},
	"no consumer, and nothing to read": {
		change:  func(s *topology.Snapshot) { setFigures(s, 0, 0, topology.Rates{}) },
		options: idleFor("orders", 60),
	},
	"left behind": {
		change:  func(s *topology.Snapshot) { setFigures(s, 5, 0, topology.Rates{}) },
		options: idleFor("orders", 20),
		want:    []string{"left_behind orders notify certain"},
	},
	"no consumer, and the broker reports no rates": {
		change:  func(s *topology.Snapshot) { setFigures(s, 5, 0, topology.Rates{}); s.NoRates = true },
		options: idleFor("orders", 20),
		want:    []string{"no_consumers orders notify certain"},
	},
	"some redeliveries, beside consumers that need not acknowledge": {
		change: func(s *topology.Snapshot) {
			setFigures(s, 5, 1, topology.Rates{
				Redeliver:    topology.Rate{PerSecond: 30},
				DeliverNoAck: topology.Rate{PerSecond: 300},
			})
		},
	},
	"a redelivery storm": {
		change: func(s *topology.Snapshot) {
			setFigures(s, 5, 1, topology.Rates{
				Redeliver: topology.Rate{PerSecond: 300},
				Ack:       topology.Rate{PerSecond: 1},
			})
		},
		want: []string{"redelivery_storm orders notify likely"},
	},
	"some redeliveries": {
		change: func(s *topology.Snapshot) {
			setFigures(s, 5, 1, topology.Rates{
				Redeliver: topology.Rate{PerSecond: 30},
				Ack:       topology.Rate{PerSecond: 300},
			})
		},
	},
	"streams, exclusive and auto-delete queues": {
		change: func(s *topology.Snapshot) {
			s.Queues = append(s.Queues, topology.Queue{
				Name: "log", Type: topology.Stream,
			}, topology.Queue{Name: "reply", Exclusive: true}, topology.Queue{Name: "watch", AutoDelete: true})
		},
	},
	"bindings are unknown": {
		change: func(s *topology.Snapshot) {
			s.Bindings, s.Gaps = nil, []topology.Gap{{What: topology.PartBindings, Why: "500"}}
		},
	},
	"bindings are unknown, and another dead-letter queue": {
		change: func(s *topology.Snapshot) {
			parkElsewhere(s)
			s.Bindings, s.Gaps = nil, []topology.Gap{{What: topology.PartBindings, Why: "500"}}
		},
	},
	"one queue is unknown": {
		change: func(s *topology.Snapshot) {
			s.Gaps = []topology.Gap{{What: "queue gone", Why: "500"}}
			s.Policies[0].Definition = definition("dead-letter-exchange", "", "dead-letter-routing-key", "gone")
		},
	},
	"shovels are unknown": {
		change: func(s *topology.Snapshot) {
			s.Gaps = []topology.Gap{{What: topology.PartShovels, Why: "500"}}
			s.Policies[0].Definition = definition("dead-letter-exchange", "", "dead-letter-routing-key", "gone")
		},
		want: []string{"queue_missing orders page certain"},
	},
	"a storm, and nothing else is known": {
		change: func(s *topology.Snapshot) {
			setFigures(s, 5, 1, topology.Rates{Redeliver: topology.Rate{PerSecond: 300}})
			s.Gaps = []topology.Gap{{What: topology.PartPolicies, Why: "500"}}
		},
		want: []string{"redelivery_storm orders notify likely"},
	},
	"policies are unknown": {
		change: func(s *topology.Snapshot) {
			s.Policies, s.Gaps = nil, []topology.Gap{{What: topology.PartPolicies, Why: "500"}}
		},
	},
}
