package topology_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// TestHostileDefinitionsEnd checks that definitions which were made to need long are checked in
// seconds. Before there was a limit, each of them needed about ten times as long as it may here.
func TestHostileDefinitionsEnd(t *testing.T) {
	for name, change := range map[string]func(s *topology.Snapshot){
		"exchanges in circles": meshed,
		"many keys": func(s *topology.Snapshot) {
			s.Exchanges = append(
				s.Exchanges, topology.Exchange{Name: "in", Type: "topic"}, topology.Exchange{Name: "all", Type: "fanout"},
				topology.Exchange{Name: "dlx", Type: "topic"},
			)
			s.Policies[0] = policy("dlo", "^q", 10, "dead-letter-exchange", "dlx")
			for i := range 700 {
				q := fmt.Sprint("q", i)
				s.Queues = append(s.Queues, classic(q))
				s.Bindings = append(
					s.Bindings, bind("in", q, fmt.Sprintf("a.%d.*", i)), bind("all", q, ""),
					bind("dlx", "dlo.letters", fmt.Sprintf("a.%d.x", i)),
				)
			}
		},
		"patterns that look ahead": func(s *topology.Snapshot) {
			for i := range 40 {
				s.Queues = append(s.Queues, classic("q"+strings.Repeat("a", 30+i)+"!"))
				s.Policies = append(s.Policies, policy(fmt.Sprint(i), fmt.Sprintf("^(?!b)q(a+)+$|z%d", i), i, "max-length", 5))
			}
		},
		"a long pattern": func(s *topology.Snapshot) {
			for i := range 500 {
				s.Queues = append(s.Queues, classic(fmt.Sprint(strings.Repeat("x", 200), i)))
			}
			s.Policies = append(s.Policies, policy("long", strings.Repeat("(x?)", 2400)+"$", 20, "max-length", 5))
		},
	} {
		s := site("4.3.6")
		change(s)
		began := time.Now()
		found := topology.Inspect(s, topology.Options{Inboxes: []string{"dlo.letters"}})
		if took := time.Since(began); took > 6*time.Second || len(found) == 0 {
			t.Errorf("%s: %d findings in %s", name, len(found), took)
		} else {
			t.Logf("%s: %s", name, took)
		}
	}
}
