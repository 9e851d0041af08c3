package topology_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// apply returns a snapshot in which the policies of a plan are set.
func apply(s *topology.Snapshot, p topology.Plan) *topology.Snapshot {
	after := *s
	after.Policies = slices.Clone(s.Policies)
	for _, planned := range p.Policies {
		after.Policies = append(after.Policies, planned.Policy)
	}
	after.Queues = slices.Clone(s.Queues)
	for i := range after.Queues {
		after.Queues[i].Policy, after.Queues[i].Effective = nil, nil // the broker reports what applies now
	}
	return &after
}

// TestAPlanCures makes a plan for each queue with a finding that a policy can remove. It checks
// that the plan removes this finding and causes no other one. Verify must then find no difference.
func TestAPlanCures(t *testing.T) {
	planned := 0
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.version == "" {
				c.version = "4.3.6"
			}
			s := site(c.version)
			if c.change != nil {
				c.change(s)
			}
			c.options.Inboxes = []string{"dlo.letters"}
			before := topology.Inspect(s, c.options)
			for _, f := range before {
				if !f.Plannable {
					continue
				}
				if f.Kind == topology.NoBinding && len(s.Bindings) == 0 {
					continue // in this case, dlo.dlx has no binding
				}
				if f.Kind == topology.QueueMissing && s.Bindings[0].Destination == "gone" {
					continue
				}
				planned++
				p := topology.MakePlan(s, topology.Want{
					Queues:      []string{f.Queue},
					Exchange:    "dlo.dlx",
					AtLeastOnce: f.Kind == topology.AtMostOnce || f.Kind == topology.OverflowDrops,
				})
				if len(p.Policies) != 1 || len(p.Refused) > 0 {
					t.Fatalf("%s: %+v", f.Kind, p)
				}
				after := apply(s, p)
				if wrong := p.Verify(after); len(wrong) > 0 {
					t.Errorf("%s: not as planned: %q", f.Kind, wrong)
				}
				if wrong := p.Verify(s); len(wrong) == 0 {
					t.Errorf("%s: the plan is verified before it is applied", f.Kind)
				}
				for _, left := range topology.Inspect(after, c.options) {
					known := func(b topology.Finding) bool { return b.Kind == left.Kind && b.Queue == left.Queue }
					if known(f) || !slices.ContainsFunc(before, known) {
						t.Errorf("%s: with the plan there is %s", f.Kind, findingText(left))
					}
				}
			}
		})
	}
	if planned < 10 {
		t.Errorf("only %d findings were planned", planned)
	}
}

// TestAPlanKeepsTheOtherKeys checks queues that already have a policy. The policy of the plan has a
// higher priority and replaces that policy. Therefore it must repeat the other keys. The plan must
// list its changes.
func TestAPlanKeepsTheOtherKeys(t *testing.T) {
	s := site("4.3.6")
	s.Queues = append(s.Queues, classic("a.b"), quorum("c"), classic("d"))
	s.Policies = []topology.Policy{
		policy("limits", ".*", 3, "max-length", 1000, "dead-letter-exchange", "gone", "dead-letter-routing-key", "k"),
	}
	p := topology.MakePlan(s, topology.Want{
		Queues:      []string{"c", "orders", "a.b", "a.b"},
		Exchange:    "dlo.dlx",
		AtLeastOnce: true,
	})
	var got []string
	for _, planned := range p.Policies {
		text, err := json.Marshal(planned)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(text))
	}
	want := []string{
		`{"name":"dlo-0e2f9a2a","pattern":"^(a\\.b|orders|dlo\\.probe\\.baad86da)$","apply-to":"queues","priority":4,"definition":{"dead-letter-exchange":"dlo.dlx","max-length":1000},"queues":["a.b","orders"],"type":"classic","hides":"limits","changes":[{"key":"dead-letter-exchange","before":"\"gone\"","after":"\"dlo.dlx\""},{"key":"dead-letter-routing-key","before":"\"k\"","after":""}]}`,
		`{"name":"dlo-2a5a5a5a","pattern":"^(c|dlo\\.probe\\.2e7d2c03)$","apply-to":"queues","priority":4,"definition":{"dead-letter-exchange":"dlo.dlx","dead-letter-strategy":"at-least-once","max-length":1000,"overflow":"reject-publish"},"queues":["c"],"type":"quorum","hides":"limits","changes":[{"key":"dead-letter-exchange","before":"\"gone\"","after":"\"dlo.dlx\""},{"key":"dead-letter-routing-key","before":"\"k\"","after":""},{"key":"dead-letter-strategy","before":"","after":"\"at-least-once\""},{"key":"overflow","before":"","after":"\"reject-publish\""}]}`,
	}
	for i := range want { // the names of the policies are hashes of their queues
		if i < len(got) {
			want[i] = strings.Replace(want[i], want[i][9:21], got[i][9:21], 1)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(p.Refused) > 0 {
		t.Errorf("refused: %+v", p.Refused)
	}
}

// TestThePlanOfBrokerRetries checks which queues get delayed retry, and what is set for them.
func TestThePlanOfBrokerRetries(t *testing.T) {
	const keys = `"delayed-retry-max":300000,"delayed-retry-min":5000,"delayed-retry-type":"failed"`
	for _, c := range []struct {
		version string
		queue   topology.Queue
		want    string // part of the definition, or of the reason
	}{
		{"4.3.6", quorum("q"), keys},
		{"4.3.1", quorum("q", "x-delivery-limit", 5), keys},
		{"4.3.0", quorum("q"), "policies can set delayed retry since RabbitMQ 4.3.1, and this is 4.3.0"},
		{"", quorum("q"), "policies can set delayed retry since RabbitMQ 4.3.1, and this is an unknown version"},
		{"4.0.5", quorum("q"), "policies can set delayed retry since RabbitMQ 4.3.1, and this is 4.0.5"},
		{"4.3.6", quorum("q", "x-delivery-limit", -1), "it has no delivery limit"},
		{"4.3.6", quorum("q", "x-delayed-retry-type", "all", "x-delayed-retry-min", 100), `{"dead-letter-exchange":"dlo.dlx"}`},
		{"4.0.5", classic("q"), `{"dead-letter-exchange":"dlo.dlx"}`},
	} {
		s := site("4.3.6")
		s.Version, s.Broker = c.version, ""
		s.Queues = append(s.Queues, c.queue)
		p := topology.MakePlan(s, topology.Want{Queues: []string{"q"}, Exchange: "dlo.dlx", BrokerRetries: true})
		text := fmt.Sprint(p.Refused)
		if len(p.Policies) > 0 {
			b, err := json.Marshal(p.Policies[0].Definition)
			if err != nil {
				t.Fatal(err)
			}
			text = string(b)
		}
		if !strings.Contains(text, c.want) {
			t.Errorf("%+v: %s", c, text)
		}
	}
}

// TestAPlanRefuses checks the reason for each queue that a plan refuses.
func TestAPlanRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		queue  string
		change func(s *topology.Snapshot)
		want   string
	}{
		"a missing queue":       {"nowhere", nil, "there is no such queue"},
		"a queue that is right": {"orders", nil, "already go to dlo.dlx"},
		"no exchange of dlo": {
			"orders", func(s *topology.Snapshot) { s.Exchanges, s.Policies = nil, nil }, "does not exist",
		},
		"no binding of dlo": {
			"orders", func(s *topology.Snapshot) { s.Bindings, s.Policies = nil, nil }, "does not route every key",
		},
		"an argument": {
			"orders", func(s *topology.Snapshot) { s.Queues[0].Arguments["x-dead-letter-exchange"] = "gone" },
			"overrides every policy",
		},
		"an operator policy": {"orders", func(s *topology.Snapshot) {
			s.Operators = []topology.Policy{policy("caps", ".*", 0, "dead-letter-exchange", "gone")}
		}, "operator policy caps"},
		"an argument against at-least-once": {"orders", func(s *topology.Snapshot) {
			s.Queues[0] = quorum("orders", "x-overflow", "drop-head")
		}, "argument x-overflow drop-head"},
		"an argument against at-least-once, and no exchange": {"orders", func(s *topology.Snapshot) {
			s.Queues[0], s.Policies = quorum("orders", "x-dead-letter-strategy", "at-most-once"), nil
		}, "argument x-dead-letter-strategy at-most-once"},
		"a stream": {
			"orders", func(s *topology.Snapshot) { s.Queues[0].Type = topology.Stream }, "does not dead-letter",
		},
		"exclusive": {
			"orders", func(s *topology.Snapshot) { s.Queues[0].Exclusive = true }, "deleted with its connection",
		},
		"another path": {"orders", func(s *topology.Snapshot) { parkElsewhere(s) }, "already go to parked"},
		"a line feed": {
			"orders", func(s *topology.Snapshot) { s.Policies = nil; s.Queues = append(s.Queues, classic("orders\n")) },
			"line feed",
		},
		"not UTF-8": {
			"a\xff", func(s *topology.Snapshot) { s.Queues = append(s.Queues, classic("a\xff")) }, "UTF-8",
		},
		"invisible": {
			"a\u202eb", func(s *topology.Snapshot) { s.Queues = append(s.Queues, classic("a\u202eb")) },
			"invisible characters",
		},
		"no priority": {"orders", func(s *topology.Snapshot) {
			s.Policies = []topology.Policy{policy("top", ".*", 1<<31-1, "max-length", 5)}
		}, "cannot have a higher one"},
		"a queue of dlo": {"dlo.letters", nil, "queue of dlo"},
		"federation": {
			"federation: x -> y",
			func(s *topology.Snapshot) { s.Queues = append(s.Queues, classic("federation: x -> y")) },
			"federation link",
		},
		"its own target": {
			"parked", func(s *topology.Snapshot) { parkElsewhere(s); s.Bindings[0].Destination = "parked" },
			"leads to it",
		},
		"an unread part": {
			"orders", func(s *topology.Snapshot) { s.Gaps = []topology.Gap{{What: topology.PartPolicies}} },
			"could not read all",
		},
	} {
		s := site("4.3.6")
		if c.change != nil {
			c.change(s)
		}
		p := topology.MakePlan(s, topology.Want{Queues: []string{c.queue}, Exchange: "dlo.dlx", AtLeastOnce: true})
		if len(p.Policies) > 0 || len(p.Refused) != 1 || p.Refused[0].Queue != c.queue ||
			!strings.Contains(p.Refused[0].Why, c.want) {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

func parkElsewhere(s *topology.Snapshot) {
	s.Queues = append(s.Queues, classic("parked"))
	s.Exchanges = append(s.Exchanges, topology.Exchange{Name: "dlx", Type: "fanout"})
	s.Bindings = append(s.Bindings, bind("dlx", "parked", ""))
	s.Policies[0].Definition["dead-letter-exchange"] = "dlx"
}

// hostile contains queue names with characters that have a special meaning in patterns, shells, HCL
// or YAML.
var hostile = []string{
	`a.b*(c)|[d]^$+?{2}\d`, "with space", "it's", `"quoted"`, "$HOME`id`", "${x} %{y}", "ünïcode €", "-dash",
	"#hash: {y: 1}", strings.Repeat("x", 255),
}

// TestAPlanMatchesOnlyItsQueues checks that patterns match exactly the chosen queues, whatever
// their names are. It also checks that a large number of queues is divided into several policies.
func TestAPlanMatchesOnlyItsQueues(t *testing.T) {
	s := site("3.10.8")
	chosen := slices.Clone(hostile)
	for i := range 250 {
		chosen = append(chosen, fmt.Sprintf("q%d", i))
	}
	for _, name := range chosen {
		s.Queues = append(s.Queues, classic(name), classic(name+"x"), classic("x"+name))
	}
	s.Queues = append(s.Queues, classic("a_b*(c)|[d]^$+?{2}\\d"))
	p := topology.MakePlan(s, topology.Want{Queues: chosen, Exchange: "dlo.dlx"})
	if len(p.Refused) > 0 || len(p.Policies) < 3 || len(p.Policies) > 4 {
		t.Fatalf("%d policies, refused %+v", len(p.Policies), p.Refused)
	}
	after := apply(s, p)
	if wrong := p.Verify(after); len(wrong) > 0 {
		t.Error(wrong)
	}
	left := topology.Inspect(after, topology.Options{Inboxes: []string{"dlo.letters"}})
	if want := 2*len(chosen) + 1; len(left) != 1 || len(left[0].Queues()) != want {
		t.Errorf("%d findings are left, the first for %d queues, want %d", len(left), len(left[0].Queues()), want)
	}
	names := map[string]bool{}
	for _, planned := range p.Policies {
		if names[planned.Name] {
			t.Errorf("two policies have the name %s", planned.Name)
		}
		names[planned.Name] = true
	}
}

// TestTheFormsOfAPlan checks the forms of a plan. The names in the plan are hostile. The test runs
// one form with a shell, and parses the other as a definitions file.
func TestTheFormsOfAPlan(t *testing.T) {
	s := site("4.3.6")
	s.VHost = `it's a "vhost"`
	for _, name := range hostile {
		s.Queues = append(s.Queues, classic(name))
	}
	p := topology.MakePlan(s, topology.Want{Queues: hostile, Exchange: "dlo.dlx"})
	if len(p.Policies) != 1 {
		t.Fatalf("%+v", p)
	}
	want := p.Policies[0]
	definition, err := json.Marshal(want.Definition)
	if err != nil {
		t.Fatal(err)
	}

	words, err := exec.Command(
		"sh", "-c",
		"rabbitmqctl() { printf '%s\\0' \"$@\"; }\n"+topology.Render([]topology.Plan{p}, topology.FormCommands),
	).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got, expected := strings.Split(strings.TrimSuffix(string(words), "\x00"), "\x00"), []string{
		"set_policy", "--vhost", s.VHost, "--priority", "0", "--apply-to", "queues", want.Name, want.Pattern,
		string(definition),
	}; !slices.Equal(got, expected) {
		t.Errorf("a shell reads %q, want %q", got, expected)
	}

	file, err := topology.ReadDefinitions([]byte(topology.Render([]topology.Plan{p}, topology.FormDefinitions)))
	if err != nil || len(file) != 1 || file[0].VHost != s.VHost || file[0].Policies[0].Pattern != want.Pattern ||
		file[0].Policies[0].Name != want.Name {
		t.Errorf("definitions: %+v %v", file, err)
	}
}

// TestVerifyChecksTheGuarantee covers a queue that somebody deletes and declares again while a plan
// is applied. The new queue has an argument that prevents it from dead-lettering at least once. The
// planned policy applies to the queue, but Verify must report that the queue does not dead-letter
// at least once.
func TestVerifyChecksTheGuarantee(t *testing.T) {
	s := site("4.3.6")
	s.Queues[0] = quorum("orders")
	p := topology.MakePlan(s, topology.Want{Queues: []string{"orders"}, Exchange: "dlo.dlx", AtLeastOnce: true})
	after := apply(s, p)
	if wrong := p.Verify(after); len(p.Policies) != 1 || len(wrong) > 0 {
		t.Fatalf("%+v %q", p, wrong)
	}
	after.Queues[0] = quorum("orders", "x-overflow", "drop-head")
	if wrong := p.Verify(after); len(wrong) != 1 ||
		!strings.Contains(wrong[0], "orders does not dead-letter at least once") {
		t.Errorf("%q", wrong)
	}
}

// TestTheFormsOfTwoVHosts plans the same queues in two vhosts and on two brokers. Comments
// must say to which broker and vhost each command belongs.
func TestTheFormsOfTwoVHosts(t *testing.T) {
	var plans []topology.Plan
	for _, at := range [][2]string{{"main", "a"}, {"main", "b\nc"}, {"other", "a"}, {"", "a"}} {
		s := site("4.3.6")
		s.Broker, s.VHost, s.Policies = at[0], at[1], nil
		plans = append(plans, topology.MakePlan(s, topology.Want{Queues: []string{"orders"}, Exchange: "dlo.dlx"}))
	}
	// no plan contains such a vhost, because MakePlan refuses it
	plans[1].VHost, plans[1].Policies = "b\nc", plans[0].Policies
	text := topology.Render(plans, topology.FormCommands)
	for _, comment := range []string{"# broker main, vhost a\n", "# broker other, vhost a\n", "# vhost a\n"} {
		if !strings.Contains(text, comment) {
			t.Errorf("no %q in\n%s", comment, text)
		}
	}
	if strings.Contains(text, "\nc\n") {
		t.Errorf("a vhost ends the comment:\n%s", text)
	}
}

// TestTheRestOfAPolicy removes a queue from a policy while other policies exist. The policy of the
// remaining queues must apply to them, and it must not hide the keys of another policy.
func TestTheRestOfAPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		other    topology.Policy
		priority int
		refused  string
	}{
		"alone":                         {policy("x", "^other$", 9, "max-length", 5), 1, ""},
		"a policy for dlo's own queues": {policy("own", `^dlo\.`, 9, "overflow", "drop-head"), 11, ""},
		"a lower policy":                {policy("low", ".*", -3, "max-length", 5), 1, ""},
		"a policy above it": {
			policy("dlo-b", "^b$", 1, "dead-letter-exchange", "dlo.dlx", "overflow", "reject-publish"), 0,
			"policy dlo-b applies to queue b",
		},
		"a policy of the same priority": {
			policy("dlo-b", "^b$", 0, "dead-letter-exchange", "dlo.dlx", "overflow", "reject-publish"), 0,
			"policy dlo-b applies to queue b",
		},
		"a policy above the one that leaves": {policy("dlo-a", "^a$", 1, "dead-letter-exchange", "dlo.dlx"), 1, ""},
	} {
		s := site("4.3.6")
		s.Policies, s.Queues = nil, append(s.Queues, classic("a"), classic("b"), classic("c"))
		s.Policies = append(s.Policies, policy("low2", "^nothing$", 0, "max-length", 1))
		if c.priority == 11 {
			s.Policies = append(s.Policies, c.other)
		}
		p := topology.MakePlan(s, topology.Want{Queues: []string{"a", "b", "c"}, Exchange: "dlo.dlx"})
		if len(p.Policies) != 1 {
			t.Fatalf("%s: %+v", name, p)
		}
		s = apply(s, p)
		if c.priority != 11 {
			s.Policies = append(s.Policies, c.other)
		}
		rest, why := p.Policies[0].Without([]string{"a"}, s)
		if c.refused != "" {
			if !strings.Contains(why, c.refused) {
				t.Errorf("%s: %q", name, why)
			}
			continue
		}
		after := apply(s, topology.Plan{Policies: []topology.Planned{rest}})
		wrong := (&topology.Plan{Policies: []topology.Planned{rest}}).Verify(after)
		if why != "" || rest.Priority != c.priority || len(wrong) > 0 ||
			!slices.Equal(rest.Queues, []string{"b", "c"}) {
			t.Errorf("%s: %+v %q %q", name, rest, why, wrong)
		}
	}
}

// TestChoose checks which queues are chosen for a plan.
func TestChoose(t *testing.T) {
	s := site("4.3.6")
	s.Queues = append(
		s.Queues, classic("a.1"), classic("a.2"), quorum("safe"), classic("star*"), classic("start"),
		classic("federation: a.1 -> b"), topology.Queue{
			Name: "a.tmp", Exclusive: true,
		},
	)
	s.Policies = append(s.Policies, policy("safe", "^safe$", 0, "dead-letter-exchange", "dlo.dlx"))
	found := topology.Inspect(s, topology.Options{Inboxes: []string{"dlo.letters"}})
	for _, c := range []struct {
		globs       []string
		atLeastOnce bool
		want        []string
	}{
		{nil, false, []string{"a.1", "a.2", "star*", "start"}},
		{nil, true, []string{"a.1", "a.2", "star*", "start", "safe"}},
		{[]string{"a.*"}, false, []string{"a.1", "a.2"}},
		{[]string{"*"}, false, []string{"orders", "a.1", "a.2", "safe", "star*", "start"}},
		{[]string{"a.tmp", "none*"}, false, []string{"a.tmp", "none*"}},
		{[]string{"star*"}, false, []string{"star*"}},
	} {
		if got := topology.Choose(s, found, c.globs, c.atLeastOnce); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.globs, got, c.want)
		}
	}
}

// TestAPlanAppliesToItsProbeQueue covers a vhost that has a policy for dlo's own queues. In the
// probe queue, a temporary queue of dlo, a test message proves that the planned policy works. The
// planned policy must therefore have priority there over the policy for dlo's own queues.
func TestAPlanAppliesToItsProbeQueue(t *testing.T) {
	s := site("4.3.6")
	s.Policies = []topology.Policy{policy("dlo-own", `^dlo\.`, 1000, "overflow", "drop-head")}
	p := topology.MakePlan(s, topology.Want{Queues: []string{"orders"}, Exchange: "dlo.dlx"})
	if len(p.Policies) != 1 || p.Policies[0].Priority != 1001 {
		t.Errorf("%+v", p)
	}
	s.Policies[0].Priority = 1<<31 - 1
	if p := topology.MakePlan(s, topology.Want{
		Queues:   []string{"orders"},
		Exchange: "dlo.dlx",
	}); len(p.Policies) > 0 || len(p.Refused) != 1 {
		t.Errorf("%+v", p)
	}
}
