package deadletter

import "time"

// Death is one entry of x-death. It says that a message died in Queue for Reason. This happened
// Count times, and the first time was FirstAt. RabbitMQ keeps one entry per queue and reason, most
// recent first. Count includes only messages that the broker itself routed again. From RabbitMQ 4.0
// on, Count is 1 again after each publish by a client (measured on 3.10.8, 4.0.5, 4.3.6). Therefore
// no decision depends on Count.
type Death struct {
	Queue       string    `json:"queue"`
	Exchange    string    `json:"exchange"`
	RoutingKeys []string  `json:"routing_keys"`
	Reason      string    `json:"reason"`
	Count       int64     `json:"count"`
	FirstAt     time.Time `json:"first_at"` // in whole seconds; zero if missing
	// the message only expired in this queue, after a consumer of another queue had rejected it
	RejectedBefore bool `json:"-"`
}

const (
	headerDeath         = "x-death"
	headerLastQueue     = "x-last-death-queue"
	headerLastExchange  = "x-last-death-exchange"
	headerLastReason    = "x-last-death-reason"
	headerDeliveryCount = "x-delivery-count"
	headerAcquiredCount = "x-acquired-count"
	prefixFirstDeath    = "x-first-death-"
	prefixLastDeath     = "x-last-death-"
	// maximum number of entries that are read; the client library rejects a list of more than 8,192
	// elements
	maxDeaths = 1000
)

// ReadDeaths reads the deaths of a dead-lettered message, most recent first. It also returns the
// queue in which the message last died outside dlo's own queues. The function "ours" returns true
// for dlo's own queues, which are the wait queues and the inbox itself.
//
// Sometimes a message only expired in its last queue, after a consumer of another queue had
// rejected it. In that case, the last queue only delays retries, and the origin is the other queue.
//
// ReadDeaths accepts any input. On 3.x a publisher controls x-death, so ReadDeaths skips values of
// the wrong type. The fields Broker and VHost of the origin are empty, because the caller knows
// them. The field Queue is empty if the headers do not say where the message died.
func ReadDeaths(headers Table, ours func(queue string) bool) ([]Death, Origin) {
	var deaths []Death
	entries, _ := headers[headerDeath].([]any)
	for _, e := range entries[:min(len(entries), maxDeaths)] {
		t, ok := e.(Table)
		if !ok {
			continue
		}
		var d Death
		if d.Queue, ok = t["queue"].(string); !ok || d.Queue == "" {
			continue
		}
		d.Exchange, _ = t["exchange"].(string)
		d.Reason, _ = t["reason"].(string)
		d.Count, _ = t["count"].(int64)
		d.FirstAt, _ = t["time"].(time.Time)
		keys, _ := t["routing-keys"].([]any)
		for _, k := range keys[:min(len(keys), maxDeaths)] {
			if key, ok := k.(string); ok {
				d.RoutingKeys = append(d.RoutingKeys, key)
			}
		}
		deaths = append(deaths, d)
	}
	markRejected(deaths, ours)
	for i := range deaths {
		if d := &deaths[i]; !ours(d.Queue) && !d.RejectedBefore {
			return deaths, d.Origin()
		}
	}
	// RabbitMQ sets this header from 4.0 on
	if queue, ok := headers[headerLastQueue].(string); ok && queue != "" && !ours(queue) {
		exchange, _ := headers[headerLastExchange].(string)
		return deaths, Origin{Queue: queue, Exchange: exchange}
	}
	return deaths, Origin{}
}

// Repeated looks at the x-death entry that DiedIn selects for a queue. It reports whether the
// broker counted more than one death in this entry. In that case, the time in the entry is the time
// of the first of these deaths.
func Repeated(deaths []Death, queue string) bool {
	d, _ := DiedIn(deaths, queue)
	return d.Count > 1
}

// LastDeath returns the reason and the time of a death in a queue, from the x-death entry that
// DiedIn selects. If there is no such entry, the reason comes from the header x-last-death-reason,
// and the time is zero. If that header is missing too, the reason is "".
func LastDeath(headers Table, deaths []Death, queue string) (reason string, at time.Time) {
	if d, ok := DiedIn(deaths, queue); ok {
		return d.Reason, d.FirstAt
	}
	reason, _ = headers[headerLastReason].(string)
	return reason, time.Time{}
}
