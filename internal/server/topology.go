package server

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// toldTitles is the maximum number of findings whose titles a notice contains.
const toldTitles = 5

// pathProblems returns the findings about which people get notices, as one problem for each vhost
// and kind. It leaves out a finding about an inbox if a broker already reports this fault as a
// problem.
func (s *Server) pathProblems() []deadletter.Problem {
	var list []deadletter.Problem
	for _, r := range s.survey.Reports() {
		byKind := map[topology.Kind][]topology.Finding{}
		for _, f := range r.Findings {
			if f.Severity != deadletter.SeverityDigest && !s.reportedByBroker(&f) {
				byKind[f.Kind] = append(byKind[f.Kind], f)
			}
		}
		for _, kind := range topology.Kinds() {
			if len(byKind[kind]) > 0 {
				list = append(list, pathProblem(byKind[kind]))
			}
		}
	}
	return list
}

// unknownPaths returns the keys of the problems in vhosts that dlo cannot read completely. Nobody
// knows whether such a problem is over, so people must get no notice that it is.
func (s *Server) unknownPaths() map[string]bool {
	keys := map[string]bool{}
	for _, r := range s.survey.Reports() {
		if r.UnknownSince.IsZero() {
			continue
		}
		for _, kind := range topology.Kinds() {
			p := deadletter.Problem{Kind: deadletter.ProblemKind(kind), Broker: r.Broker, VHost: r.VHost}
			keys[p.Key()] = true
		}
	}
	return keys
}

// reportedByBroker reports whether a broker already reports a finding as a problem. This happens
// for some kinds of findings about inboxes only.
func (s *Server) reportedByBroker(f *topology.Finding) bool {
	if f.Kind != topology.LettersDeleted && f.Kind != topology.DeliveryLimit {
		return false
	}
	var inboxes []string
	for _, b := range s.brokers() {
		for _, i := range b.Inboxes {
			if b.Name == f.Broker && b.VHost == f.VHost {
				inboxes = append(inboxes, i.Queue)
			}
		}
	}
	return !slices.ContainsFunc(f.Queues(), func(queue string) bool { return !slices.Contains(inboxes, queue) })
}

// pathProblem joins findings of one kind in one vhost into one problem. The problem gets the
// severity of the most urgent finding.
func pathProblem(found []topology.Finding) deadletter.Problem {
	f := &found[0]
	p := deadletter.Problem{
		Kind:     deadletter.ProblemKind(f.Kind),
		Severity: f.Severity,
		Title:    f.Title,
		Broker:   f.Broker,
		VHost:    f.VHost,
		Cure:     f.Cure,
		Since:    f.Since,
	}
	if len(found) > 1 {
		p.Title = fmt.Sprintf("%s, and %d more of this kind", f.Title, len(found)-1)
	}
	var more []string
	for i := range found {
		if found[i].Severity.Louder(p.Severity) {
			p.Severity = found[i].Severity
		}
		if i > 0 && i < toldTitles {
			more = append(more, found[i].Title+".")
		}
	}
	p.Title += "."
	p.Text = strings.TrimSpace("Lost: " + f.Loses + ". " + f.Why + " " + strings.Join(more, " "))
	return p
}

// These are the metrics about the dead-letter paths.
var (
	findingsDesc = prometheus.NewDesc(
		"dlo_findings",
		"Faults that lose dead letters or that can lose them, by kind, severity, broker and vhost; docs/topology.md describes the kinds.",
		[]string{
			"kind", "severity", "broker", "vhost",
		}, nil,
	)
	ageDesc = prometheus.NewDesc(
		"dlo_findings_age_seconds",
		"Seconds since dlo last read the dead-letter paths of a vhost completely or, before the first time, since it started.",
		[]string{"broker", "vhost"}, nil,
	)
)

// pathCollector collects the metrics about the dead-letter paths. It takes them from the last time
// that dlo read each vhost.
type pathCollector struct{ *Server }

func (c pathCollector) Describe(to chan<- *prometheus.Desc) {
	to <- findingsDesc
	to <- ageDesc
}

func (c pathCollector) Collect(to chan<- prometheus.Metric) {
	for _, r := range c.survey.Reports() {
		counts := map[[2]string]int{}
		for _, f := range r.Findings {
			counts[[2]string{string(f.Kind), string(f.Severity)}]++
		}
		for k, n := range counts {
			to <- prometheus.MustNewConstMetric(
				findingsDesc, prometheus.GaugeValue, float64(n), k[0], k[1], r.Broker, deadletter.Visible(r.VHost),
			)
		}
		to <- prometheus.MustNewConstMetric(
			ageDesc, prometheus.GaugeValue, time.Since(cmp.Or(r.UnknownSince, r.ReadAt)).Seconds(), r.Broker,
			deadletter.Visible(r.VHost),
		)
	}
}
