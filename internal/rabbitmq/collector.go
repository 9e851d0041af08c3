package rabbitmq

import "github.com/prometheus/client_golang/prometheus"

var (
	upDesc = prometheus.NewDesc(
		"dlo_broker_up", "1 while dlo has its publishing connection to the broker, else 0.", []string{"broker"}, nil,
	)
	drainingDesc = prometheus.NewDesc(
		"dlo_inbox_draining", "1 while letters are taken out of the inbox, else 0; /readyz says why.",
		[]string{"broker", "inbox"}, nil,
	)
)

// Collector returns the gauges dlo_broker_up and dlo_inbox_draining of the given links. The number
// of series is bounded, because the configuration names all brokers and inboxes.
func Collector(links ...*Link) prometheus.Collector { return collector(links) }

type collector []*Link

func (c collector) Describe(to chan<- *prometheus.Desc) {
	to <- upDesc
	to <- drainingDesc
}

func (c collector) Collect(to chan<- prometheus.Metric) {
	for _, l := range c {
		s := l.Status()
		to <- prometheus.MustNewConstMetric(upDesc, prometheus.GaugeValue, gauge(s.Connected), s.Name)
		for _, i := range s.Inboxes {
			to <- prometheus.MustNewConstMetric(drainingDesc, prometheus.GaugeValue, gauge(i.Draining), s.Name, i.Queue)
		}
	}
}

func gauge(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
