package requeue

import (
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts attempts in Prometheus counters.
type Metrics struct {
	attempts *prometheus.CounterVec
	queues   deadletter.Labels
}

// NewMetrics registers the counters of this package.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "dlo_attempts_total",
		Help: "Publishes of letters back to RabbitMQ, by the queue they died in and outcome: confirmed, returned (there is no such queue), nacked (the queue is full), refused (it cannot be published as it is), unknown (the answer was lost).",
	}, []string{"queue", "outcome"})}
	r.MustRegister(m.attempts)
	return m
}

// count counts an attempt on a letter that died in the given queue. An attempt that was never sent,
// because there was no connection, does not count.
func (m *Metrics) count(queue string, outcome deadletter.OutcomeKind) {
	switch outcome {
	case deadletter.OutcomeUnsent:
		return
	case deadletter.OutcomeInDoubt:
		outcome = "unknown"
	}
	m.attempts.WithLabelValues(m.queues.Of(queue), string(outcome)).Inc()
}
