package store

import (
	"context"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/prometheus/client_golang/prometheus"
)

// Collector returns the gauge dlo_letters{state}, read from the counters when it is asked for.
func (s *Store) Collector() prometheus.Collector {
	return collector{s, prometheus.NewDesc("dlo_letters", "Letters in the store by state.", []string{"state"}, nil)}
}

type collector struct {
	store *Store
	desc  *prometheus.Desc
}

func (c collector) Describe(to chan<- *prometheus.Desc) { to <- c.desc }

func (c collector) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	counts := map[string]float64{}
	rows, err := c.store.read.QueryContext(ctx, `SELECT state, sum(n) FROM counters GROUP BY state`)
	if err == nil {
		err = scan(rows, func() error {
			var state string
			var n float64
			err := rows.Scan(&state, &n)
			counts[state] = n
			return err
		})
	}
	if err != nil {
		to <- prometheus.NewInvalidMetric(c.desc, err)
		return
	}
	for _, state := range deadletter.States {
		to <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, counts[string(state)], string(state))
	}
}
