package topology_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// TestOneCauseIsOneFinding checks 300 queues that one policy hides from their dead-letter exchange.
func TestOneCauseIsOneFinding(t *testing.T) {
	many := func(change func(s *topology.Snapshot)) []topology.Finding {
		s := site("4.3.6")
		for i := range 299 {
			s.Queues = append(s.Queues, classic(fmt.Sprint("orders.", i)))
		}
		s.Policies[0].Pattern = "^orders"
		change(s)
		return topology.Inspect(s, topology.Options{Inboxes: []string{"dlo.letters"}})
	}
	for kind, change := range map[topology.Kind]func(s *topology.Snapshot){
		topology.PolicyShadowed: func(s *topology.Snapshot) {
			s.Policies = append(s.Policies, policy("limits", `^(?!dlo\.).*`, 20, "max-length", 1000))
		},
		topology.PatternUnknown: func(s *topology.Snapshot) {
			s.Policies = append(s.Policies, policy("limits", `^orders(?R)?`, 20, "max-length", 1000))
		},
		topology.PolicyIgnored: func(s *topology.Snapshot) {
			s.Policies[0] = policy("limits", `^orders`, 20, "dead-letter-exchange", "dlo.dlx", "delivery-limit", 3)
		},
		topology.ExchangeMissing: func(s *topology.Snapshot) {
			s.Policies[0] = policy("limits", `^orders`, 20, "dead-letter-exchange", "gone")
		},
		topology.NoBinding: func(s *topology.Snapshot) {
			s.Exchanges = append(s.Exchanges, topology.Exchange{Name: "dlx", Type: "direct"})
			s.Bindings = append(s.Bindings, bind("dlx", "dlo.letters", "dead"))
			s.Policies[0] = policy(
				"limits", `^orders`, 20, "dead-letter-exchange", "dlx", "dead-letter-routing-key", "daed",
			)
		},
		topology.AtMostOnce: func(s *topology.Snapshot) {
			for i := range s.Queues {
				s.Queues[i].Type = topology.Quorum
			}
		},
		topology.OverflowDrops: func(s *topology.Snapshot) {
			for i := range s.Queues {
				s.Queues[i].Type = topology.Quorum
			}
			s.Policies[0].Definition["dead-letter-strategy"] = "at-least-once"
		},
		topology.RouteUnknown: func(s *topology.Snapshot) {
			behind(s, "x-consistent-hash", nil, bind("dlx", "parked", "1"))
			s.Policies = append(s.Policies, policy("limits", "^parked$", 0, "dead-letter-exchange", "dlo.dlx"))
		},
	} {
		found := many(change)
		if len(found) != 1 || found[0].Kind != kind || len(found[0].Queues()) != 300 {
			t.Errorf("%s: %d findings, the first: %+v", kind, len(found), found[0])
			continue
		}
		f := found[0]
		if !strings.Contains(f.Title, "299 more: orders.0, ") {
			t.Errorf("%s: title %q", kind, f.Title)
		}
		naming := []topology.Kind{
			topology.PolicyShadowed, topology.PatternUnknown, topology.PolicyIgnored, topology.ExchangeMissing,
		}
		if slices.Contains(naming, kind) && !strings.Contains(f.Title+f.Why+f.Loses, "limits") {
			t.Errorf("%s does not name the policy: %+v", kind, f)
		}
		// a reader of one queue sees only that queue
		one := f.Only("orders.7")
		if len(one.More) > 0 || strings.Contains(one.Title, "orders.8") || !strings.Contains(one.Title, "orders.7") ||
			strings.Contains(one.Loses+one.Why+one.Cure, "orders.") {
			t.Errorf("%s for one queue: %+v", kind, one)
		}
	}
}

// TestAFileWithoutAVersion checks that a file that does not say its version is judged for all
// versions, and that a finding that depends on the version says so.
func TestAFileWithoutAVersion(t *testing.T) {
	for key, want := range map[string]string{
		"queue-leader-locator": "On 3.x: ",
		"max-in-memory-length": "On 4.x: ",
		"delivery-limit":       "",
		"max-length":           "none",
	} {
		for version, want := range map[string]string{
			"": want, "3.10.8": strings.Replace(strings.Replace(want, "On 3.x: ", "", 1), "On 4.x: ", "none", 1),
			"4.1.2":  strings.Replace(strings.Replace(want, "On 3.x: ", "none", 1), "On 4.x: ", "", 1),
			"3.13.7": strings.NewReplacer("On 3.x", "If RabbitMQ 3.13.7 does what 3.10 does", "On 4.x", "If RabbitMQ 3.13.7 does what 4.0 does").Replace(want),
		} {
			list, err := topology.ReadDefinitions(fmt.Appendf(nil, `{"rabbit_version": %q,
				"queues": [{"name": "orders", "vhost": "/", "durable": true}, {"name": "dlo.letters", "vhost": "/", "durable": true}],
				"exchanges": [{"name": "dlo.dlx", "vhost": "/", "type": "fanout"}],
				"bindings": [{"source": "dlo.dlx", "vhost": "/", "destination": "dlo.letters", "destination_type": "queue"}],
				"policies": [{"name": "dlx", "vhost": "/", "pattern": "^orders$", "definition": {"dead-letter-exchange": "dlo.dlx", %q: 5}}]}`,
				version, key))
			if err != nil {
				t.Fatal(err)
			}
			got := "none"
			for _, f := range topology.Inspect(&list[0], topology.Options{Inboxes: []string{"dlo.letters"}}) {
				before, _, _ := strings.Cut(f.Title, "orders has no dead-letter exchange, because RabbitMQ does not apply")
				got = before
				if likely := f.Sure == topology.Likely; likely != (before != "") || f.Severity != "page" {
					t.Errorf("%s on %q: %+v", key, version, f)
				}
			}
			if got != want {
				t.Errorf("%s on %q: %q, want %q", key, version, got, want)
			}
			p := topology.MakePlan(&list[0], topology.Want{Queues: []string{"orders"}, Exchange: "dlo.dlx"})
			if depends := strings.Contains(want, ": "); depends != (len(p.Refused) == 1 &&
				strings.Contains(p.Refused[0].Why, "depends on the version")) {
				t.Errorf("%s on %q: plan %+v", key, version, p)
			}
		}
	}
}

// TestOneCauseOfSomeVersions checks a file without a version whose policy RabbitMQ applies to no
// classic queue. One of three queues is classic on 3.x only.
func TestOneCauseOfSomeVersions(t *testing.T) {
	s := site("4.3.6")
	s.Broker, s.Version, s.DefaultType = "", "", topology.Quorum
	s.Queues = append(s.Queues, topology.Queue{Name: "orders.b", Durable: true}, classic("orders.c"))
	s.Policies[0] = policy("limits", "^orders", 20, "dead-letter-exchange", "dlo.dlx", "delivery-limit", 5)
	var got []string
	for _, f := range topology.Inspect(s, topology.Options{Inboxes: []string{"dlo.letters"}}) {
		if f.Kind == topology.PolicyIgnored {
			before, _, _ := strings.Cut(f.Title, " has no")
			got = append(got, before+": "+strings.Join(f.Queues(), " "))
		}
	}
	if want := []string{"orders: orders orders.c", "On 3.x: orders.b: orders.b"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestTheDefaultTypeOfAVHost checks which type a queue of a file gets that does not say one. The
// expected values are what RabbitMQ 3.10.8, 4.0.5 and 4.3.6 declare when they import such a file.
func TestTheDefaultTypeOfAVHost(t *testing.T) {
	const metadata = `{"name": "/", "metadata": {"default_queue_type": %q}}`
	for name, c := range map[string]struct {
		version, vhost, top, queue string
		want                       string
	}{
		"metadata":                        {"4.3.6", fmt.Sprintf(metadata, "quorum"), "", "", "quorum"},
		"metadata, 4.0":                   {"4.0.5", fmt.Sprintf(metadata, "quorum"), "", "", "quorum"},
		"metadata, 3.10":                  {"3.10.8", fmt.Sprintf(metadata, "quorum"), "", "", "classic"},
		"stream":                          {"4.3.6", fmt.Sprintf(metadata, "stream"), "", "", "stream"},
		"undefined":                       {"4.3.6", fmt.Sprintf(metadata, "undefined"), "", "", "classic"},
		"not a type":                      {"4.3.6", `{"name": "/", "metadata": {"default_queue_type": 7}}`, "", "", "classic"},
		"metadata that is not an object":  {"4.3.6", `{"name": "/", "metadata": []}`, "", "", "classic"},
		"a key of the vhost":              {"4.3.6", `{"name": "/", "default_queue_type": "quorum"}`, "", "", "classic"},
		"a key of the file":               {"4.3.6", `{"name": "/"}`, `"default_queue_type": "quorum",`, "", "classic"},
		"an argument":                     {"4.3.6", fmt.Sprintf(metadata, "quorum"), "", `, "arguments": {"x-queue-type": "classic"}`, "classic"},
		"a queue that is not durable":     {"4.3.6", fmt.Sprintf(metadata, "quorum"), "", `, "durable": false`, "classic"},
		"a queue that deletes itself":     {"4.3.6", fmt.Sprintf(metadata, "quorum"), "", `, "auto_delete": true`, "classic"},
		"a type that the export tells us": {"4.3.6", fmt.Sprintf(metadata, "quorum"), "", `, "type": "classic"`, "classic"},
	} {
		list, err := topology.ReadDefinitions(fmt.Appendf(
			nil, `{"rabbitmq_version": %q, %s "vhosts": [%s], "queues": [{"name": "q", "vhost": "/", "durable": true%s}]}`,
			c.version, c.top, c.vhost, c.queue,
		))
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %d %v", name, len(list), err)
		}
		if got := list[0].Queues[0].Kind(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestAPlanTakesNothingAway checks that a plan refuses a queue if dlo does not know what the policy
// that applies to it sets. It checks the same for a queue that keeps a policy when others leave.
func TestAPlanTakesNothingAway(t *testing.T) {
	name := "elsewhere"
	for why, change := range map[string]func(s *topology.Snapshot){
		"cannot evaluate the pattern of policy limits": func(s *topology.Snapshot) {
			s.Policies = []topology.Policy{policy("limits", `^orders(?R)?`, 3, "max-length", 1000)}
		},
		"policy elsewhere applies to it, and dlo could not read that policy": func(s *topology.Snapshot) {
			s.Policies, s.Queues[0].Policy, s.ReadAt = nil, &name, now
		},
		"the broker reports that a policy sets max-length 7": func(s *topology.Snapshot) {
			s.Policies, s.ReadAt = nil, now
			s.Queues[0].Effective = definition("max-length", 7)
		},
		"have the same priority": func(s *topology.Snapshot) {
			s.Policies = append(s.Policies, policy("limits", "^ord", 10, "max-length", 1000))
		},
	} {
		s := site("4.3.6")
		change(s)
		for _, f := range topology.Inspect(s, topology.Options{Inboxes: []string{"dlo.letters"}}) {
			if f.Plannable {
				t.Errorf("%s: a plan is offered for %+v", why, f)
			}
		}
		p := topology.MakePlan(s, topology.Want{Queues: []string{"orders"}, Exchange: "dlo.dlx"})
		if len(p.Policies) > 0 || len(p.Refused) != 1 || !strings.Contains(p.Refused[0].Why, why) ||
			!strings.Contains(p.Refused[0].Why, "take away what it sets") {
			t.Errorf("%s: %+v", why, p)
		}
		if strings.Contains(why, "priority") {
			continue
		}
		dlo := topology.Planned{
			Policy: policy("dlo", "^(orders|left)$", 10, "dead-letter-exchange", "dlo.dlx"),
			Queues: []string{"left", "orders"},
		}
		if _, got := dlo.Without([]string{"left"}, s); !strings.Contains(got, why) {
			t.Errorf("%s: leave: %q", why, got)
		}
	}
}

// TestStuckNamesTheTarget checks that the finding names what is missing.
func TestStuckNamesTheTarget(t *testing.T) {
	for want, change := range map[string]func(s *topology.Snapshot){
		"orders dead-letters to exchange gone, which does not exist.": func(s *topology.Snapshot) {
			s.Policies[0].Definition["dead-letter-exchange"] = "gone"
		},
		"orders dead-letters to queue parked, which does not exist.": func(s *topology.Snapshot) {
			s.Policies[0].Definition = definition("dead-letter-exchange", "", "dead-letter-routing-key", "parked")
		},
		"orders dead-letters to exchange dlo.dlx, which has no binding.": func(s *topology.Snapshot) { s.Bindings = nil },
		"orders dead-letters to exchange dlx, which has no binding for key dead.": func(s *topology.Snapshot) {
			behind(s, "direct", nil, bind("dlx", "dlo.letters", "other"))
			s.Policies[0].Definition["dead-letter-routing-key"] = "dead"
		},
		"The target is full or not available": func(s *topology.Snapshot) {},
	} {
		s := site("4.3.6")
		change(s)
		s.ReadAt = now
		s.Queues[0] = quorum("orders", "x-dead-letter-strategy", "at-least-once", "x-overflow", "reject-publish")
		s.Queues[0].Stuck = topology.Figure{N: 3, Known: true}
		found := topology.Inspect(s, topology.Options{Inboxes: []string{"dlo.letters"}})
		at := slices.IndexFunc(found, func(f topology.Finding) bool { return f.Kind == topology.Stuck })
		if at < 0 || !strings.Contains(found[at].Why, want) {
			t.Errorf("want %q: %+v", want, found)
		}
	}
}

// TestAHostilePatternEnds checks that a pattern that needs very long counts as unknown, and costs
// its time only once.
func TestAHostilePatternEnds(t *testing.T) {
	s := site("4.3.6")
	for i := range 50 {
		s.Queues = append(s.Queues, classic(strings.Repeat("a", 50)+fmt.Sprint("!", i)))
	}
	s.Policies = append(s.Policies, policy("slow", `^(?!b)((a+)+)+$`, 20, "dead-letter-exchange", "gone"))
	found := topology.Inspect(s, topology.Options{Inboxes: []string{"dlo.letters"}})
	if !slices.ContainsFunc(found, func(f topology.Finding) bool {
		return f.Kind == topology.PatternUnknown && len(f.Queues()) == 50
	}) || slices.ContainsFunc(found, func(f topology.Finding) bool { return f.Kind == topology.NoExchange }) {
		t.Errorf("%+v", found)
	}
}
