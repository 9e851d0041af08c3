package failure

import (
	"cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// wolverine reads the headers that Wolverine adds to envelopes when it moves them to a dead-letter
// queue. Other senders also use the headers exception-type and exception-message. These headers
// therefore count as Wolverine's only if one of Wolverine's own headers is present.
func (r *reading) wolverine() (f deadletter.Failure, found bool) {
	const destination, failedAt, stack = "original-destination", "failed-at", "exception-stack"
	if !r.hasHeader("exception-type") || !r.hasHeader(destination) && !r.hasHeader(failedAt) && !r.hasHeader(stack) {
		return f, false
	}
	r.setError(&f, r.header("exception-type"), r.header("exception-message"), r.header(stack))
	f.MessageType = cmp.Or(r.label("message-type"), r.typeProperty())
	f.Queue = lastSegment(r.text(destination)) // for example rabbitmq://queue/orders
	f.Attempts = r.number("attempts")
	f.FailedAt = timeUnixMilli(r.text(failedAt))
	return f, true
}
