package server

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/requeue"
	"github.com/deadletteroffice/dlo/internal/store"
)

// problems returns the problems that keep dlo from working. It does not include the problems of the
// brokers.
func (s *Server) problems() []deadletter.Problem {
	var list []deadletter.Problem
	add := func(kind deadletter.ProblemKind, severity deadletter.Severity, title, text string) {
		list = append(list, deadletter.Problem{Kind: kind, Severity: severity, Title: title, Text: text})
	}
	if err := s.space.Room(); errors.Is(err, store.ErrNoRoom) || errors.Is(err, store.ErrReadOnly) {
		add(deadletter.ProblemDisk, deadletter.SeverityPage, "dlo takes in no letters", err.Error())
	} else if refused := s.space.Refused(); store.IsFull(refused) {
		add(
			deadletter.ProblemDisk, deadletter.SeverityPage, "dlo takes in no letters",
			"The disk of the store is full: writes fail, and letters wait in the broker. Make room; dlo then continues automatically.",
		)
	} else if refused != nil {
		add(
			deadletter.ProblemDisk, deadletter.SeverityPage, "dlo takes in no letters",
			"The store cannot be written, so letters wait in the broker, and nothing is sent: "+refused.Error()+
				". Check whether its file system is read-only or its disk is failing; dlo then continues automatically.",
		)
	} else if err != nil {
		add(deadletter.ProblemDisk, deadletter.SeverityNotify, "The disk cannot be watched", err.Error())
	}
	if text := s.keeper.Warning(); text != "" {
		add(deadletter.ProblemAge, deadletter.SeverityNotify, "Dead letters are about to age out", text)
	}
	list = append(list, s.strays()...)
	list = append(list, s.storeProblems()...)
	list = append(list, s.backups.Problems()...)
	for _, d := range s.dispatch {
		list = append(list, d.Problems()...)
	}
	for _, p := range s.notifier.Problems() {
		add(deadletter.ProblemNotices, deadletter.SeverityPage, "Notices do not get through to "+p.Channel+".", p.Text)
	}
	return list
}

// standing returns whether another dlo works with this store or a copy of it. The first broker of
// the configuration that knows it decides. If each broker decided, two dlo could hold one lock
// each, and nobody would send notices.
func (s *Server) standing() requeue.Standing {
	found := requeue.Unknown
	for _, d := range s.dispatch {
		switch is := d.Standing(); is {
		case requeue.Alone, requeue.Twice, requeue.Behind:
			return is
		case requeue.Pending:
			found = is
		}
	}
	return found
}

// isSilent reports whether no notices may be sent, because another dlo sends them, or may do so.
func (s *Server) isSilent() bool {
	is := s.standing()
	return is == requeue.Twice || is == requeue.Pending || is == requeue.Behind
}

// allProblems returns the problems of dlo and of its brokers.
func (s *Server) allProblems() []deadletter.Problem {
	list := s.problems()
	for _, b := range s.brokers() {
		list = append(list, b.Problems()...)
	}
	return list
}

// toldProblems returns the problems about which people get notices: the problems of dlo and its
// brokers, and the faults of the dead-letter paths. The faults of the paths do not keep dlo from
// working. Therefore only some pages show them, and /readyz never does.
func (s *Server) toldProblems() []deadletter.Problem {
	return append(s.allProblems(), s.pathProblems()...)
}

// problemChannels returns the names of the channels that get notices about problems.
func (p *process) problemChannels() []string {
	if named := *p.told.Load(); len(named) > 0 {
		return named
	}
	return p.rules.Set().Pagers()
}

// problemsDesc describes the metric dlo_problems.
var problemsDesc = prometheus.NewDesc(
	"dlo_problems", "What keeps dlo from working now, by kind, severity (page, notify) and broker; /readyz lists it.",
	[]string{"kind", "severity", "broker"}, nil,
)

// problemCollector collects the metric dlo_problems. Whenever the metrics are read, it counts the
// problems that exist at that time.
type problemCollector struct{ *Server }

func (c problemCollector) Describe(to chan<- *prometheus.Desc) { to <- problemsDesc }

func (c problemCollector) Collect(to chan<- prometheus.Metric) {
	counts := map[[3]string]int{}
	for _, p := range c.allProblems() {
		counts[[3]string{string(p.Kind), string(p.Severity), p.Broker}]++
	}
	for k, n := range counts {
		to <- prometheus.MustNewConstMetric(problemsDesc, prometheus.GaugeValue, float64(n), k[0], k[1], k[2])
	}
}
