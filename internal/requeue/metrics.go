package requeue

import (
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts attempts.
type Metrics struct {
	attempts *prometheus.CounterVec
	lag      prometheus.Gauge
	queues   deadletter.Labels
}

// NewMetrics registers the collectors of requeue.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dlo_attempts_total", Help: "Publishes back to RabbitMQ by outcome: confirmed, returned, nacked, refused, unknown."}, []string{"queue", "outcome"}),
		lag:      prometheus.NewGauge(prometheus.GaugeOpts{Name: "dlo_schedule_lag_seconds", Help: "How long after it was due the newest automatic retry was claimed."}),
	}
	r.MustRegister(m.attempts, m.lag)
	return m
}
