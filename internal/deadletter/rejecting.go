package deadletter

// ReasonExpired is the reason of a death by an expired time to live. It is the weakest evidence of
// where a letter failed, because retry recipes let messages expire in queues that only delay them.
const ReasonExpired = "expired"

// ReasonRejected is the reason of a death by a consumer that rejected the message.
const ReasonRejected = "rejected"

// Refused reports whether a death proves that its queue has a consumer that gave the message back.
func (d *Death) Refused() bool {
	return d.Reason == ReasonRejected || d.Reason == "delivery_limit"
}

// markRejected marks the deaths that only passed on a letter which a consumer of another queue had
// rejected before. It never marks a queue in which a consumer rejected the letter, whatever else
// happened to the letter there. It reads each death twice.
func markRejected(deaths []Death, ours func(queue string) bool) {
	consumed := map[string]bool{}
	for i := range deaths {
		if d := &deaths[i]; d.Refused() && !ours(d.Queue) {
			consumed[d.Queue] = true
		}
	}
	rejected := false
	for i := len(deaths) - 1; i >= 0; i-- { // oldest first
		d := &deaths[i]
		rejected = rejected || d.Refused() && consumed[d.Queue]
		d.RejectedBefore = rejected && d.Reason == ReasonExpired && !consumed[d.Queue]
	}
}

// Newest returns the latest death outside our own queues. The result mayDelay is true if the queue
// of that death may only have delayed the letter: the letter expired there, and no death shows a
// consumer of the queue. If x-death says nothing, Newest uses the headers that 4.0 and later set
// beside x-death.
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

// Origin returns the origin that a death shows. It has no broker and vhost.
func (d *Death) Origin() Origin {
	o := Origin{Queue: d.Queue, Exchange: d.Exchange}
	if len(d.RoutingKeys) > 0 {
		o.RoutingKey = d.RoutingKeys[0]
	}
	return o
}

// DiedIn returns an x-death entry for a queue. This is the latest entry for a death that did more
// than pass the letter on. If there is none, it is the latest entry for the queue.
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
