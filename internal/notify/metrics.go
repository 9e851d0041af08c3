package notify

import "github.com/prometheus/client_golang/prometheus"

// What a try to notify comes to.
const (
	outcomeSent    = "sent"
	outcomeRetried = "retried"
	outcomeFailed  = "failed"
)

// newCounter counts tries by what they came to. Channels are named by the configuration, so their
// number is bounded.
func newCounter(r prometheus.Registerer) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dlo_notifications_total", Help: "Attempts to notify, by channel and outcome: sent, retried (it is tried again), failed (for good)."}, []string{"channel", "outcome"})
	if r != nil {
		r.MustRegister(c)
	}
	return c
}

// expect makes the counters of a channel, at 0: the first failure is an increase then.
func (n *Notifier) expect(channel string) {
	for _, outcome := range []string{outcomeSent, outcomeRetried, outcomeFailed} {
		n.sent.WithLabelValues(channel, outcome)
	}
}
