package web_test

import "github.com/deadletteroffice/dlo/internal/topology"

// looked is a Topology with one report.
type looked struct{ topology.Report }

func (l looked) Reports() []topology.Report { return []topology.Report{l.Report} }

func (l looked) Plan(w topology.Wish) ([]topology.Plan, error) {
	s := topology.Snapshot{
		Broker: l.Broker, VHost: l.VHost, Queues: []topology.Queue{{Name: "sms"}, {Name: "dlo.letters"}},
		Exchanges: []topology.Exchange{{Name: "dlo.dlx", Type: "fanout"}}, Bindings: []topology.Binding{{Source: "dlo.dlx", Destination: "dlo.letters", To: "queue"}},
	}
	return []topology.Plan{topology.MakePlan(&s, topology.Want{Queues: topology.Choose(&s, l.Findings, w.Queues, w.AtLeastOnce), Exchange: "dlo.dlx"})}, nil
}

// report returns a report with findings and one gap.
func report(found ...topology.Finding) topology.Report {
	return topology.Report{Broker: "main", VHost: "/", ReadAt: start, Failed: "500", Queues: 1, Gaps: []topology.Gap{{What: "bindings", Why: "500"}}, Findings: found}
}
