package failure

import (
	"cmp"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// spring reads the headers added by Spring AMQP's RepublishMessageRecoverer, and the type header of
// its converters. The message comes from the cause. The stack comes from the exception around the
// cause, whose type is always the same. Exchange and key belong to the failed delivery. The queue
// is not named, unless the message was published to the default exchange. In that case, the key is
// the queue. Since 4.0.5, the stack may be omitted. If both message and stack are missing, there is
// a place but no error.
func (r *reading) spring() (f deadletter.Failure, found bool) {
	const message, stack, exchange, key = "x-exception-message", "x-exception-stacktrace", "x-original-exchange", "x-original-routingKey"
	f.MessageType = cmp.Or(r.label("__TypeId__"), r.label("__ContentTypeId__"))
	if !r.has(stack) && !r.has(exchange) && !r.has(key) {
		return f, f.MessageType != ""
	}
	r.setError(&f, part{}, r.header(message), r.header(stack))
	if _, masked := r.shown(r.header(message)); !masked {
		f.Type = cmp.Or(springType(f.Stack), f.Type)
	}
	f.Exchange, f.RoutingKey, f.Attempts = r.place(exchange), r.place(key), r.number("retry-count")
	if r.has(exchange) && f.Exchange == "" {
		f.Queue = f.RoutingKey
	}
	return f, true
}

// springType returns the type of the exception that a listener threw. If the stack begins with the
// exception in which Spring wraps all others, springType returns the type of the cause.
func springType(stack string) string {
	typ, _ := head(stack)
	if typ != "" && !strings.HasPrefix(typ, "org.springframework.amqp.rabbit.") {
		return typ
	}
	for line := range lines(stack) {
		if cause, ok := strings.CutPrefix(strings.TrimSpace(line), "Caused by: "); ok {
			if t, _ := head(cause); t != "" {
				return t
			}
		}
	}
	return typ
}
