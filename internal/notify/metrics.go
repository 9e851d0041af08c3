package notify

import "github.com/prometheus/client_golang/prometheus"

// These are the outcomes of an attempt to send a message.
const (
	outcomeSent    = "sent"
	outcomeRetried = "retried"
	outcomeFailed  = "failed"
)

// newCounter returns a counter of attempts by channel and outcome. The number of its series is
// limited, because the channels come from the configuration.
func newCounter(r prometheus.Registerer) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "dlo_notifications_total",
		Help: "Attempts to notify, by channel and outcome: sent, retried (it is tried again), failed (for good).",
	}, []string{"channel", "outcome"})
	if r != nil {
		r.MustRegister(c)
	}
	return c
}

// createCounters creates the counters of a channel with the value 0. A counter that appeared only
// with the first failure would not show this failure as an increase.
func (n *Notifier) createCounters(channel string) {
	for _, outcome := range []string{outcomeSent, outcomeRetried, outcomeFailed} {
		n.sent.WithLabelValues(channel, outcome)
	}
}
