package topology_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// TestRatesThatCannotBeRead checks that the other fields of a queue are read even if its rates
// cannot be decoded.
func TestRatesThatCannotBeRead(t *testing.T) {
	for _, rates := range []string{`[]`, `null`, `7`, `{"publish_details":[]}`, `{"publish_details":{"rate":"many"}}`} {
		var q topology.Queue
		if err := json.Unmarshal(
			[]byte(`{"name":"a","message_stats":`+rates+`,"messages_ready":3}`), &q,
		); err != nil || q.Name != "a" || q.Ready.N != 3 {
			t.Errorf("%s: %+v %v", rates, q, err)
		}
	}
}

// TestRatesBetweenTwoLooks checks that dlo computes average rates from two values of the broker's
// counters. If the second value follows too soon, dlo keeps the earlier rates. If there are no
// counters, it keeps the rates that the broker reports.
func TestRatesBetweenTwoLooks(t *testing.T) {
	began := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	look := func(after time.Duration, stats string) *topology.Snapshot {
		s := topology.Snapshot{ReadAt: began.Add(after), Queues: make([]topology.Queue, 1)}
		if err := json.Unmarshal([]byte(`{"name":"loop","message_stats":`+stats+`}`), &s.Queues[0]); err != nil {
			t.Fatal(err)
		}
		return &s
	}
	const earlier = `{"publish":1,"ack":10,"redeliver":100,"deliver_no_ack":7,"get_no_ack":0}`
	const later = `{"publish":61,"ack":40,"redeliver":3100,"deliver_no_ack":7,"get_no_ack":3,"redeliver_details":{"rate":2}}`
	for _, c := range []struct {
		name          string
		before, after *topology.Snapshot
		// published, acknowledged, redelivered, delivered without acknowledgement, and got without
		// acknowledgement
		want [5]float64
	}{
		{"thirty seconds", look(0, earlier), look(30*time.Second, later), [5]float64{2, 1, 100, 0, 0.1}},
		{"the first look", nil, look(30*time.Second, later), [5]float64{2: 2}},
		{
			"too short",
			look(0, `{"redeliver":100,"redeliver_details":{"rate":50}}`),
			look(4*time.Second, later),
			[5]float64{2: 50},
		},
		{
			"too short, and it counts from zero again",
			look(0, `{"redeliver":9000,"redeliver_details":{"rate":50}}`),
			look(4*time.Second, later),
			[5]float64{2: 2},
		},
		{"too long", look(0, earlier), look(time.Hour, later), [5]float64{2: 2}},
		{"no counters before", look(0, `{}`), look(30*time.Second, later), [5]float64{2: 2}},
		{
			"counts from zero again",
			look(0, `{"publish":900,"redeliver":9000}`),
			look(30*time.Second, later),
			[5]float64{2: 2},
		},
		{
			"a queue that was not there",
			&topology.Snapshot{ReadAt: began},
			look(30*time.Second, later),
			[5]float64{2: 2},
		},
	} {
		c.after.AverageRates(c.before)
		r := c.after.Queues[0].Rates
		if got := [5]float64{
			r.Publish.PerSecond, r.Ack.PerSecond, r.Redeliver.PerSecond, r.DeliverNoAck.PerSecond, r.GetNoAck.PerSecond,
		}; got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestRatesThatNobodyReports checks that a rate that the broker does not report is not shown as
// zero.
func TestRatesThatNobodyReports(t *testing.T) {
	for name, c := range map[string]struct {
		s    topology.Snapshot
		want float64
	}{
		"a queue without traffic":    {topology.Snapshot{}, 0},
		"rates_mode none":            {topology.Snapshot{NoRates: true}, -1},
		"without the management API": {topology.Snapshot{Passive: true}, -1},
	} {
		c.s.Queues = []topology.Queue{{Name: "orders"}}
		if r := topology.ReportOn(&c.s, topology.Options{}); len(r.All) != 1 || r.All[0].Published != c.want {
			t.Errorf("%s: %+v", name, r.All)
		}
	}
}
