package deadletter

// ReasonExpired is the reason of a death if the time to live of the message expired. This reason
// proves least about where a letter failed, because some retry recipes let messages expire in
// queues that only delay them.
const ReasonExpired = "expired"

// ReasonRejected is the reason of a death if a consumer rejected the message.
const ReasonRejected = "rejected"

// Refused reports whether a death proves that the queue has a consumer that gave the message back.
func (d *Death) Refused() bool {
	return d.Reason == ReasonRejected || d.Reason == "delivery_limit"
}

// markRejected marks each death in a queue that only delayed a letter. In such a death, the letter
// expired after a consumer of another queue had rejected it. For example, a consumer of "work"
// rejects a letter, which then expires in the queue "wait". In this case, the death in "wait" is
// marked. A death in a queue is never marked if a consumer of this queue has also rejected the
// letter.
func markRejected(deaths []Death, ours func(queue string) bool) {
	consumed := map[string]bool{}
	for i := range deaths {
		if d := &deaths[i]; d.Refused() && !ours(d.Queue) {
			consumed[d.Queue] = true
		}
	}
	rejected := false
	for i := len(deaths) - 1; i >= 0; i-- { // from the oldest death to the newest
		d := &deaths[i]
		rejected = rejected || d.Refused() && consumed[d.Queue]
		d.RejectedBefore = rejected && d.Reason == ReasonExpired && !consumed[d.Queue]
	}
}

// Newest returns the latest death outside dlo's own queues. The result "mayDelay" is true if the
// letter may only have waited in the queue of this death, because that queue has no consumer. This
// is possible if the letter expired there and no death proves that the queue has a consumer. If
// x-death contains no death, Newest uses the headers that RabbitMQ sets beside x-death from 4.0 on.
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

// Origin returns the origin that a death shows. Its broker and vhost are empty.
func (d *Death) Origin() Origin {
	o := Origin{Queue: d.Queue, Exchange: d.Exchange}
	if len(d.RoutingKeys) > 0 {
		o.RoutingKey = d.RoutingKeys[0]
	}
	return o
}

// DiedIn returns an entry of x-death for a death in the given queue. It prefers the latest entry
// without RejectedBefore. If RejectedBefore is set, the letter only expired in the given queue,
// after a consumer of another queue had rejected it, so the given queue may only have delayed the
// letter. If there is no other entry, DiedIn returns the latest entry for the queue.
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
