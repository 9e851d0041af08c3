package topology_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// TestBenchLargeVHost measures the findings and the plan of a vhost with 5,000 queues and 40
// policies. It prints the median time of five runs.
func TestBenchLargeVHost(t *testing.T) {
	testenv.Bench(t)
	var inspect, plan []time.Duration
	for range 5 {
		s := site("4.3.6")
		for i := range 5000 {
			s.Queues = append(s.Queues, classic(fmt.Sprintf("team-%d.queue-%d", i%40, i)))
		}
		for i := range 40 {
			s.Policies = append(
				s.Policies, policy(fmt.Sprintf("p%d", i), fmt.Sprintf(`^team-%d\.`, i), 3, "max-length", 1000),
			)
		}
		began := time.Now()
		r := topology.ReportOn(s, topology.Options{Inboxes: []string{"dlo.letters"}})
		inspect = append(inspect, time.Since(began))
		began = time.Now()
		p := topology.MakePlan(s, topology.Want{
			Queues: topology.Choose(s, r.Findings, nil, false), Exchange: "dlo.dlx",
		})
		plan = append(plan, time.Since(began))
		if queues := len(p.Queues()); len(r.Findings) != 5000 || queues != 5000 {
			t.Fatalf("%d findings, %d queues planned", len(r.Findings), queues)
		}
	}
	slices.Sort(inspect)
	slices.Sort(plan)
	t.Logf(
		"5,000 queues, 40 policies: findings %s, plan %s", inspect[2].Round(time.Millisecond),
		plan[2].Round(time.Millisecond),
	)
}
