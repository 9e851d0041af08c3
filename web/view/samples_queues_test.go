package view

import (
	"strings"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

func sampleQueues() QueuesPage {
	p := QueuesPage{Shell: sampleShell("Queues", SectionQueues, "/queues")}
	p.Watched = sampleWatched()
	p.Adopted = []topology.Adopted{
		{
			ID:     7,
			Broker: "main",
			VHost:  "/",
			Policy: topology.Policy{Name: "dlo-3fa1b2c4"},
			Queues: []string{"emails", "invoices"},
			At:     now.Add(-3 * time.Hour),
			By:     "Lena Sato",
		},
	}
	p.Looks = []topology.Report{{Broker: "main", VHost: "/", ReadAt: now.Add(-8 * time.Second), Queues: 11}}
	none := topology.Finding{
		Severity: deadletter.SeverityNotify,
		Title:    "thumbnails has no dead-letter exchange",
		Loses:    "every message that a consumer rejects",
		Why:      "If a queue has no dead-letter exchange, the broker deletes each message that a consumer rejects without requeue.",
		Cure:     "Set a policy with a dead-letter exchange. The queue stays as it is: no argument changes, so no consumer gets a 406 when it declares the queue.",
	}
	other := none
	other.Title = "avatars has no dead-letter exchange"
	p.Faults = []Fault{
		{
			Same: []topology.Finding{{
				Severity: deadletter.SeverityPage,
				Title:    "audit-export dead-letters to exchange dlx.audit, which has no binding",
				Loses:    "every dead letter of this queue",
				Since:    now.Add(-3 * time.Hour),
				Why:      "The broker drops a message without a trace if the exchange cannot route it.",
				Cure:     "Bind a dead-letter queue to the exchange dlx.audit.",
			}},
		},
		{
			Same: []topology.Finding{none, other},
			Plan: topology.Plan{
				Broker: "main",
				VHost:  "/",
				Drops:  []topology.Drop{{Queue: "thumbnails", Limit: "message-ttl 60000", PerDay: new(int64(4000))}},
				Rule:   "rules:\n  - name: dropped by design\n    match: {queue: [\"thumbnails\"], reason: [expired, maxlen]}\n    discard: true\n",
				Policies: []topology.Planned{{
					Policy: topology.Policy{
						Name:       "dlo-3fa1b2c4",
						Pattern:    "^(avatars|thumbnails)$",
						ApplyTo:    "queues",
						Priority:   10,
						Definition: topology.Definition{"dead-letter-exchange": "dlo.dlx"},
					},
					Queues: []string{"avatars", "thumbnails"},
					Hides:  "limits",
					Changes: []topology.KeyChange{
						{Key: "dead-letter-exchange", After: `"dlo.dlx"`}, {Key: "dead-letter-routing-key", Before: `"k"`},
					},
				}},
			},
			Sum: "1a2b3c4d5e6f7a8b",
		},
		{
			Same: []topology.Finding{{
				Severity: deadletter.SeverityDigest,
				Title:    "billing-invoices can lose dead letters in a crash",
				Loses:    "dead letters that are on their way when a node fails",
				Sure:     topology.Likely,
				Why:      "Quorum queues dead-letter at most once unless the strategy at-least-once is set.",
				Cure:     "Set dead-letter-strategy at-least-once and overflow reject-publish in the policy.",
			}},
		},
	}
	return p
}

// sampleConnection returns the page of a broker whose management API was found.
func sampleConnection() ConnectionPage {
	p := ConnectionPage{Shell: sampleShell("Connection", SectionQueues, "/connection")}
	p.Inboxes = []deadletter.Inbox{
		{
			Origin:    deadletter.Origin{Broker: "main", VHost: "/", Queue: "dlo.letters"},
			Connected: true,
			Draining:  true,
			Depth:     3,
		},
		{
			Origin:    deadletter.Origin{Broker: "main", VHost: "/", Queue: "orders_error"},
			Connected: true,
			Note:      "it has a delivery limit that can delete letters; accept_limited allows that",
			Depth:     deadletter.UnknownAmount,
		},
	}
	right := func(operation, resource, use string, state deadletter.RightState) deadletter.Right {
		return deadletter.Right{Operation: operation, Resource: resource, For: use, State: state}
	}
	p.Brokers[0].Managed, p.Brokers[0].User = false, "dlo"
	p.Brokers[0].ManagementFound = "http://rabbit:15672"
	p.Brokers[0].Rights = []deadletter.Right{
		right("write", "amq.default", "sending retries and requeues", deadletter.RightRefused),
		right(
			"configure", "dlo.epoch.*",
			"noticing a restart of the broker, and keeping a second dlo out of the same inbox", deadletter.RightProved,
		),
		right("read", "orders_error", "taking letters in", deadletter.RightAssumed),
	}
	return p
}

const sampleAway = "main is not connected: letters wait until it is back"

// queuePages returns samples of the page of queues, each in another state. It also returns samples
// of the list of letters of one group whose retries are paused.
func queuePages() map[string]templ.Component {
	none := QueuesPage{Shell: sampleShell("Queues", SectionQueues, "/queues")}
	refused := sampleQueues()
	refused.Problem = "the retries of queue sms-queue of broker main are paused already; to pause them for another reason, resume them first"
	refused.Several, refused.Watched.Total, refused.Watched.ShowOwn = true, 230, true
	refused.Faults, refused.Looks = nil, []topology.Report{
		{Broker: "main", VHost: "/", Failed: "the API answered 500"},
		{
			Broker: "second", VHost: "shop", ReadAt: now, Queues: 3,
			Gaps: []topology.Gap{{What: "bindings", Why: "the API answered 500"}},
		},
	}
	for i := range refused.Watched.Queues {
		refused.Watched.Queues[i].State.Away = sampleAway
	}
	two := sampleConnection()
	two.Brokers = append(two.Brokers, deadletter.BrokerStatus{Name: "second", VHost: "shop", Reason: "connection refused"})
	two.Inboxes = append(two.Inboxes, deadletter.Inbox{
		Origin: deadletter.Origin{Broker: "second", VHost: "shop", Queue: "dlo.letters"},
		Why:    "connection refused",
		Depth:  deadletter.UnknownAmount,
	})
	group := func(own, queue deadletter.Guard) templ.Component {
		p := sampleLetters()
		p.Query = "group:G-402"
		p.Shell.Path = LettersURL(p.Query, "", "")
		p.Retries = &GroupGuard{Group: 402, Guard: own, Queue: queue}
		return Letters(p)
	}
	paused, tripped := samplePaused(), sampleTripped()
	tripped.Origin.Queue = "webhook-queue"
	return map[string]templ.Component{
		"queue": Queue(sampleQueue()),
		"queue-unknown": Queue(QueuePage{
			Shell: sampleShell("Queue gone", SectionQueues, "/queues/one?queue=gone"),
			Queue: WatchedQueue{
				Origin:    deadletter.Origin{Broker: "main", VHost: "/", Queue: "gone"},
				Described: topology.Described{Published: -1},
				Gone:      true,
			},
			Letters: "/letters",
			Triage:  "/triage",
			Audit:   "/audit",
		}),
		"connection": Connection(sampleConnection()), "connection-two": Connection(two),
		"queues": Queues(sampleQueues()), "queues-empty": Queues(none), "queues-refused": Queues(refused),
		"letters-group":               group(deadletter.Guard{}, deadletter.Guard{}),
		"letters-group-paused":        group(paused, deadletter.Guard{}),
		"letters-group-queue-tripped": group(deadletter.Guard{}, tripped),
	}
}

func samplePaused() deadletter.Guard {
	return deadletter.Guard{
		State: deadletter.GuardPaused, By: "Lena Sato", Why: "the bank is down until noon",
		Since: now.Add(-22 * time.Minute),
	}
}

func sampleTripped() deadletter.Guard {
	return deadletter.Guard{
		State: deadletter.GuardTripped, By: "dlo", Why: "49 of 50 letters came back within 10 min",
		Since: now.Add(-6 * time.Minute), Until: now.Add(4 * time.Minute),
	}
}

// sampleWatched returns the panel that lists all queues. The list contains, among others, a queue
// that loses letters, a queue that no longer exists, and a queue whose name contains HTML and
// control characters.
func sampleWatched() WatchedQueues {
	origin := func(name string) deadletter.Origin { return deadletter.Origin{Broker: "main", VHost: "/", Queue: name} }
	hostile := "\x1b[2J<b>" + strings.Repeat("x", 240) + "\u202e"
	known := func(n int64) topology.Figure { return topology.Figure{N: n, Known: true} }
	state := func(name string, scheduled, dead, held int, retries deadletter.Guard) deadletter.Queue {
		return deadletter.Queue{Origin: origin(name), Scheduled: scheduled, Dead: dead, Held: held, Retries: retries}
	}
	groups := state("mail", 31, 88, 12, deadletter.Guard{})
	groups.Groups = []deadletter.Guard{{
		State: deadletter.GuardPaused, By: "Priya Nair", Why: "wants the new template", Since: now.Add(-3 * time.Hour),
		Group: 418, Title: `template "welcome_v3" not found`,
	}}
	ramping := deadletter.Guard{State: deadletter.GuardRamping, By: "dlo", Since: now.Add(-time.Minute)}
	return WatchedQueues{Total: 64, From: 30, PageSize: 30, Filter: "*e*", Only: OnlyLetters, Own: 4, Queues: []WatchedQueue{
		{
			Origin: origin("billing.invoices"),
			Described: topology.Described{
				Kind: "quorum", Ready: known(18), Unacked: known(64), Consumers: known(12), Published: 41, Acked: 3.25,
				Policy: "dlo-billing",
				Route: topology.Route{
					Known:     true,
					Judged:    true,
					Set:       true,
					Exchange:  "dlo.dlx",
					From:      "policy dlo-billing",
					Queues:    []string{"dlo.letters"},
					Guarantee: "at-least-once",
				},
			},
			Rule:     "billing",
			Week:     312,
			Observed: true,
			State:    state("billing.invoices", 46, 9, 2, samplePaused()),
		},
		{
			Origin: origin("webhook-queue"),
			Described: topology.Described{
				Kind: "quorum", Ready: known(6), Unacked: known(40), Consumers: known(8), Published: 58, Acked: 58,
				Route: topology.Route{
					Known: true, Judged: true, Set: true, Exchange: "dlo.dlx", Queues: []string{"dlo.letters"},
					From: "policy dlo", Guarantee: "at-least-once",
				},
			},
			Rule:  "webhooks",
			State: state("webhook-queue", 1341, 1284, 0, sampleTripped()),
		},
		{
			Origin: origin("sms"),
			Described: topology.Described{
				Kind: "classic", Ready: known(50000), Unacked: known(0), Consumers: known(0),
				Route: topology.Route{Known: true, Judged: true, Lost: "no dead-letter exchange"},
			},
			Rule:  "default",
			State: state("sms", 57, 0, 0, ramping),
		},
		{
			Origin: origin("mail"),
			Described: topology.Described{
				Kind: "quorum", Ready: known(3), Unacked: known(1), Consumers: known(1),
				Route: topology.Route{
					Known:     true,
					Judged:    true,
					Set:       true,
					Key:       "mail",
					Fixed:     true,
					From:      "an argument of the queue",
					Queues:    []string{"a", "b"},
					More:      3,
					Guarantee: "at-most-once",
				},
			},
			Rule:  "default",
			State: groups,
		},
		{
			Origin:    origin(hostile),
			Described: topology.Described{Kind: "stream", Published: -1, Route: topology.Route{Known: true}},
		},
		{
			Origin: origin("dlo.letters"),
			Described: topology.Described{
				Kind: "quorum", Own: true, Inbox: true, Ready: known(0), Unacked: known(0), Consumers: known(0),
				Route: topology.Route{Known: true, Judged: true},
			},
		},
		{Origin: origin("gone"), Described: topology.Described{Published: -1}, Gone: true, Week: 3},
	}}
}

func sampleQueue() QueuePage {
	p := QueuePage{
		Shell: sampleShell("Queue billing.invoices", SectionQueues, "/queues/one?queue=billing.invoices"),
		Queue: sampleWatched().Queues[0], Look: topology.Report{ReadAt: now.Add(-8 * time.Second)},
		Faults:  sampleQueues().Faults[:1],
		Letters: "/letters?q=queue%3Abilling.invoices", Triage: "/triage", Audit: "/audit", More: true,
		Arrived: sampleOverview().Arrivals,
	}
	p.Groups = sampleTriaged()[:2]
	p.Past = []AuditRow{
		{
			Act: deadletter.Act{
				ID:      1,
				At:      now,
				Kind:    deadletter.ActRetriesPaused,
				Actor:   "local",
				Through: deadletter.WayPage,
				Targets: []deadletter.Target{{Kind: deadletter.TargetQueue, Name: "billing.invoices"}},
				Asked:   1,
				Done:    1,
			},
			Links: []string{""},
		},
	}
	return p
}
