package ingest

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// TestTheLagOfIngest checks that the lag is that of the slowest inbox. If an inbox has an open
// window, its lag is the time for which this window has been open. If it has no open window, its
// lag is the time for which its newest window was open. A minute after that window has ended, it no
// longer counts.
func TestTheLagOfIngest(t *testing.T) {
	t.Parallel()
	now := time.Unix(1763625600, 0)
	m := NewMetrics(prometheus.NewPedanticRegistry(), func() time.Time { return now })
	a, b := &Ingester{}, &Ingester{}
	is := func(what string, want float64) {
		t.Helper()
		if got := m.lag(); got != want {
			t.Errorf("%s: %v seconds, want %v", what, got, want)
		}
	}
	pass := func(d time.Duration) { now = now.Add(d) }
	is("nothing came in", 0)
	m.begin(a)
	pass(2 * time.Second)
	is("a window is open", 2)
	m.end(a, true)
	pass(10 * time.Second)
	is("it is settled", 2)
	m.begin(b)
	pass(time.Second)
	m.end(b, true)
	is("a faster inbox", 2)
	m.begin(a)
	pass(time.Second)
	m.end(a, false)
	is("a window that went back to the broker", 1)
	pass(2 * time.Minute)
	is("nothing came in for a while", 0)
	if len(m.windows) != 0 {
		t.Error("inboxes that are gone are remembered")
	}
}
