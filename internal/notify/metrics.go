package notify

import "github.com/prometheus/client_golang/prometheus"

// newCounter counts tries by what they came to. Channels are named by the configuration, so their number is bounded.
func newCounter(r prometheus.Registerer) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dlo_notifications_total", Help: "Notifications by channel and outcome: sent, retried (it is tried again), failed (for good)."}, []string{"channel", "outcome"})
	if r != nil {
		r.MustRegister(c)
	}
	return c
}
