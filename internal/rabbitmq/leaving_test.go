package rabbitmq

import (
	"slices"
	"testing"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// TestWhatStillUsesDlo checks that the list of what dlo would remove also names every object that
// still sends messages to objects of dlo.
func TestWhatStillUsesDlo(t *testing.T) {
	t.Parallel()
	base := topology.Snapshot{
		Queues: []topology.Queue{
			{Name: "orders", Type: "classic"},
			{Name: "dlo.letters", Type: "quorum"},
			{Name: "dlo.wait.1000", Arguments: topology.Definition{"x-dead-letter-exchange": ""}},
			{Name: "dlo.epoch.lock", Exclusive: true},
			{Name: "team.dlq"},
			{Name: "other"},
		},
		Exchanges: []topology.Exchange{
			{Name: "dlo.dlx", Type: "fanout"},
			{Name: "dlo.wait.1000", Type: "fanout"},
			{Name: "shop", Type: "topic"},
			{Name: "team.dlx", Type: "fanout"},
		},
		Bindings: []topology.Binding{
			{Source: "", Destination: "dlo.letters", To: "queue", Key: "dlo.letters"},
			{Source: "dlo.dlx", Destination: "dlo.letters", To: "queue"},
			{Source: "dlo.wait.1000", Destination: "dlo.wait.1000", To: "queue"},
			{Source: "team.dlx", Destination: "dlo.letters", To: "queue"},
		},
	}
	names := Configured{
		Exchanges: []string{"dlo.dlx", "team.dlx"},
		Queues:    []string{"dlo.letters", "team.dlq"},
		Policies:  []string{"dlo-12345678"},
	}
	policy := func(name, exchange string) topology.Policy {
		return topology.Policy{
			Name:       name,
			Pattern:    "^orders$",
			ApplyTo:    "queues",
			Definition: topology.Definition{"dead-letter-exchange": exchange},
		}
	}
	for name, c := range map[string]struct {
		change func(*topology.Snapshot)
		want   string
	}{
		"nothing": {func(*topology.Snapshot) {}, ""},
		"a policy of dlo": {
			func(s *topology.Snapshot) { s.Policies = append(s.Policies, policy("dlo-12345678", "dlo.dlx")) }, "",
		},
		"another policy": {
			func(s *topology.Snapshot) { s.Policies = append(s.Policies, policy("mine", "dlo.dlx")) },
			"queue orders, whose dead letters go to exchange dlo.dlx",
		},
		"the configured exchange": {
			func(s *topology.Snapshot) { s.Policies = append(s.Policies, policy("mine", "team.dlx")) },
			"queue orders, whose dead letters go to exchange team.dlx",
		},
		"the default exchange": {func(s *topology.Snapshot) {
			s.Queues[0].Arguments = topology.Definition{
				"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlo.letters",
			}
		}, "queue orders, whose dead letters go to queue dlo.letters"},
		"a binding to a queue": {func(s *topology.Snapshot) {
			s.Bindings = append(s.Bindings, topology.Binding{Source: "shop", Destination: "dlo.letters", To: "queue"})
		}, "exchange shop, which is bound to queue dlo.letters"},
		"a binding to an exchange": {func(s *topology.Snapshot) {
			s.Bindings = append(s.Bindings, topology.Binding{Source: "shop", Destination: "dlo.dlx", To: "exchange"})
		}, "exchange shop, which is bound to exchange dlo.dlx"},
		"an alternate exchange": {func(s *topology.Snapshot) {
			s.Exchanges[2].Arguments = topology.Definition{"alternate-exchange": "dlo.dlx"}
		}, "exchange shop, whose alternate exchange is dlo.dlx"},
		"an alternate by a policy": {func(s *topology.Snapshot) {
			s.Policies = append(s.Policies, topology.Policy{
				Name:       "aside",
				Pattern:    "^shop$",
				ApplyTo:    "exchanges",
				Definition: topology.Definition{"alternate-exchange": "dlo.dlx"},
			})
		}, "policy aside, which sets the alternate exchange dlo.dlx"},
	} {
		t.Run(name, func(t *testing.T) {
			s := base
			s.Queues, s.Exchanges, s.Bindings = slices.Clone(base.Queues), slices.Clone(
				base.Exchanges,
			), slices.Clone(base.Bindings)
			c.change(&s)
			l := leavingOf(&s, names)
			if got := l.Users; len(got) > 1 || len(got) == 1 && got[0] != c.want || len(got) == 0 && c.want != "" {
				t.Errorf("in use by %q, want %q", got, c.want)
			}
			if want := []string{
				"exchange dlo.dlx", "exchange dlo.wait.1000", "queue dlo.letters", "queue dlo.wait.1000",
			}; !slices.Equal(l.Removes, want) {
				t.Errorf("removes %q, want %q", l.Removes, want)
			}
			if len(l.Keeps) != 2 || l.Keeps[0].What != "exchange team.dlx" || l.Keeps[1].What != "queue team.dlq" {
				t.Errorf("keeps %+v", l.Keeps)
			}
		})
	}
}
