package topology

import (
	"encoding/json"
	"time"
)

// Rates are rates in messages per second. The broker averages them over some seconds, and omits
// rates that were never above zero.
type Rates struct {
	Publish   Rate `json:"publish_details"`
	Ack       Rate `json:"ack_details"`
	Redeliver Rate `json:"redeliver_details"`

	// The messages of the following two rates need no acknowledgement. Therefore, a message is
	// finished as soon as it is delivered.
	DeliverNoAck Rate `json:"deliver_no_ack_details"`
	GetNoAck     Rate `json:"get_no_ack_details"`
}

// Rate is one rate of a queue.
type Rate struct {
	PerSecond float64 `json:"rate"`
	Total     Figure  `json:"-"` // number of messages since the broker began to count
}

// UnmarshalJSON never fails, because unreadable rates must not hide the rest of a queue.
func (r *Rates) UnmarshalJSON(text []byte) error {
	type plain Rates
	var p plain
	var total struct {
		Publish      Figure `json:"publish"`
		Ack          Figure `json:"ack"`
		Redeliver    Figure `json:"redeliver"`
		DeliverNoAck Figure `json:"deliver_no_ack"`
		GetNoAck     Figure `json:"get_no_ack"`
	}
	if json.Unmarshal(text, &p) == nil && json.Unmarshal(text, &total) == nil {
		*r = Rates(p)
		r.Publish.Total, r.Ack.Total, r.Redeliver.Total = total.Publish, total.Ack, total.Redeliver
		r.DeliverNoAck.Total, r.GetNoAck.Total = total.DeliverNoAck, total.GetNoAck
	}
	return nil
}

// Done returns how many messages per second leave the queue because consumers acknowledged them, or
// because they need no acknowledgement.
func (r *Rates) Done() float64 {
	return r.Ack.PerSecond + r.DeliverNoAck.PerSecond + r.GetNoAck.PerSecond
}

// These are the limits of the time between two snapshots of a vhost. AverageRates computes averages
// only if the time is within these limits.
const (
	shortestAverage = 10 * time.Second // twice the interval at which the management API reads its counters
	longestAverage  = 5 * time.Minute
)

// AverageRates replaces the broker's rates by averages over the time since an earlier look at the
// same vhost. If the node's collect_statistics_interval is shorter than five seconds, the rates of
// RabbitMQ 3.10, 4.0 and 4.3 are zero most of the time. Looks at a fixed interval may then see
// nothing but zeros. A rate is not replaced if its counter is unknown or began again at zero. If a
// look follows the earlier one too soon for an average, it takes over the rates of the earlier
// look. Otherwise a storm would seem to end when dlo looks again after a change.
func (s *Snapshot) AverageRates(earlier *Snapshot) {
	if earlier == nil {
		return
	}
	between := s.ReadAt.Sub(earlier.ReadAt)
	if between > longestAverage {
		return
	}
	before := make(map[string]*Rates, len(earlier.Queues))
	for i := range earlier.Queues {
		before[earlier.Queues[i].Name] = &earlier.Queues[i].Rates
	}
	for i := range s.Queues {
		now, then := &s.Queues[i].Rates, before[s.Queues[i].Name]
		if then == nil {
			continue
		}
		now.Publish.averageSince(then.Publish, between)
		now.Ack.averageSince(then.Ack, between)
		now.Redeliver.averageSince(then.Redeliver, between)
		now.DeliverNoAck.averageSince(then.DeliverNoAck, between)
		now.GetNoAck.averageSince(then.GetNoAck, between)
	}
}

// averageSince replaces a rate by the average since the rates were read before. If they were read
// too recently for an average, averageSince takes over the earlier rate instead. The parameter
// "between" is the time between the two readings.
func (r *Rate) averageSince(earlier Rate, between time.Duration) {
	switch {
	case !r.Total.Known || !earlier.Total.Known || r.Total.N < earlier.Total.N:
	case between < shortestAverage:
		r.PerSecond = earlier.PerSecond
	default:
		r.PerSecond = float64(r.Total.N-earlier.Total.N) / between.Seconds()
	}
}
