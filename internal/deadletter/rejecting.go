package deadletter

// ReasonExpired is the reason of a death by the end of a time to live. It says least of all where a
// letter failed: retry recipes let messages expire in queues that only delay them.
const ReasonExpired = "expired"

// ReasonRejected is the reason of a death by a consumer that refused the message.
const ReasonRejected = "rejected"

// Refused says that a death shows a consumer of its queue, which gave the message back.
func (d *Death) Refused() bool {
	return d.Reason == ReasonRejected || d.Reason == "delivery_limit"
}

// markRejected notes which deaths only carried a letter that had been rejected before. A queue in
// which a consumer rejected it is never one of them, whatever else happened to it there. It reads
// each death twice.
func markRejected(deaths []Death, ours func(queue string) bool) {
	consumed := map[string]bool{}
	for i := range deaths {
		if d := &deaths[i]; d.Refused() && !ours(d.Queue) {
			consumed[d.Queue] = true
		}
	}
	rejected := false
	for i := len(deaths) - 1; i >= 0; i-- { // the oldest first
		d := &deaths[i]
		rejected = rejected || d.Refused() && consumed[d.Queue]
		d.RejectedBefore = rejected && d.Reason == ReasonExpired && !consumed[d.Queue]
	}
}

// Newest returns the latest death outside our own queues, and whether its queue may only have
// delayed the letter: it expired there, and no death shows that anybody consumes that queue. What
// 4.0 and later say beside x-death counts where x-death says nothing.
func Newest(headers Table, deaths []Death, ours func(queue string) bool) (d Death, mayDelay bool) {
	consumed := map[string]bool{}
	for i := range deaths {
		if deaths[i].Refused() {
			consumed[deaths[i].Queue] = true
		}
	}
	for i := range deaths {
		if d = deaths[i]; !ours(d.Queue) {
			return d, d.Reason == ReasonExpired && !consumed[d.Queue]
		}
	}
	d = Death{}
	if queue, ok := headers[headerLastQueue].(string); ok && queue != "" && !ours(queue) {
		d.Queue = queue
		d.Reason, _ = headers[headerLastReason].(string)
		d.Exchange, _ = headers[headerLastExchange].(string)
	}
	return d, d.Queue != "" && d.Reason == ReasonExpired
}

// Origin is the origin that a death shows, without broker and vhost.
func (d *Death) Origin() Origin {
	o := Origin{Queue: d.Queue, Exchange: d.Exchange}
	if len(d.RoutingKeys) > 0 {
		o.RoutingKey = d.RoutingKeys[0]
	}
	return o
}

// DiedIn returns what x-death has of a death in a queue: the latest one that did more than carry
// the letter, or else the latest.
func DiedIn(deaths []Death, queue string) (Death, bool) {
	carried := -1
	for i := range deaths {
		switch d := &deaths[i]; {
		case d.Queue != queue:
		case !d.RejectedBefore:
			return *d, true
		case carried < 0:
			carried = i
		}
	}
	if carried < 0 {
		return Death{}, false
	}
	return deaths[carried], true
}
