package ingest

import (
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts incoming letters and measures how long windows are open.
type Metrics struct {
	received *prometheus.CounterVec
	inboxes  deadletter.Labels
	now      func() time.Time

	mu      sync.Mutex
	windows map[*Ingester]span // the open window of each inbox, or its newest window if none is open
}

// span is the time during which a window is open. The field "ended" is zero until the window is
// closed.
type span struct{ began, ended time.Time }

// NewMetrics registers the metrics of this package. If the parameter "now" is nil, it uses
// time.Now.
func NewMetrics(r prometheus.Registerer, now func() time.Time) *Metrics {
	if now == nil {
		now = time.Now
	}
	m := &Metrics{
		received: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "dlo_ingested_total",
			Help: "Deliveries taken out of an inbox, by what became of them: new, came_back, copy (of one that is stored), merged.",
		}, []string{"broker", "inbox", "verdict"}),
		now: now, windows: map[*Ingester]span{},
	}
	r.MustRegister(m.received, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "dlo_ingest_lag_seconds",
		Help: "Seconds from the fetch of a window of letters until it is stored, acknowledged and settled: the longest of the open and the newest window of each inbox in the last minute. 0 when nothing came in.",
	}, m.lag))
	return m
}

// remembered is how long the metric of the lag still includes a window that is finished. It is
// longer than most scrape intervals, so that a scrape does not miss the window.
const remembered = time.Minute

// lag returns the longest time, in seconds, for which a window was open lately. It looks at each
// open window, and at windows that ended within the last minute.
func (m *Metrics) lag() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	longest, now := time.Duration(0), m.now()
	for i, w := range m.windows {
		switch {
		case w.ended.IsZero():
			longest = max(longest, now.Sub(w.began))
		case now.Sub(w.ended) > remembered:
			delete(m.windows, i)
		default:
			longest = max(longest, w.ended.Sub(w.began))
		}
	}
	return longest.Seconds()
}

// begin records that an inbox has opened a window.
func (m *Metrics) begin(i *Ingester) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.windows[i] = span{began: m.now()}
}

// end records that the window of an inbox was settled, or that it was given back to the broker.
func (m *Metrics) end(i *Ingester, settled bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !settled {
		delete(m.windows, i)
		return
	}
	m.windows[i] = span{m.windows[i].began, m.now()}
}

// countLetters counts the letters of a window by their verdicts.
func (m *Metrics) countLetters(broker, inbox string, r deadletter.Receipt) {
	inbox = m.inboxes.Of(inbox)
	for verdict, n := range map[string]int{
		"new": len(r.New), "came_back": r.CameBack, "copy": r.Copies, "merged": r.Merged,
	} {
		m.received.WithLabelValues(broker, inbox, verdict).Add(float64(n))
	}
}
