package failure

import (
	"cmp"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// spring reads the headers that Spring AMQP's RepublishMessageRecoverer adds, and the type header
// of its converters. Spring wraps the exception of a listener in an exception of its own, whose
// type is always the same. The message in the headers is that of the listener's exception, and the
// stack is that of Spring's exception. The headers contain the exchange and the routing key of the
// failed delivery, but not the queue. If the message was published to the default exchange, the
// routing key is the name of the queue. Since 4.0.5, the stack may be omitted. If both message and
// stack are missing, the headers report a place but no error.
func (r *reading) spring() (f deadletter.Failure, found bool) {
	const message, stack = "x-exception-message", "x-exception-stacktrace"
	const exchange, key = "x-original-exchange", "x-original-routingKey"
	f.MessageType = cmp.Or(r.label("__TypeId__"), r.label("__ContentTypeId__"))
	if !r.hasHeader(exchange) && !r.hasHeader(key) &&
		(!r.hasHeader(stack) || r.plainText(plainHeaders.types).text() != "") { // Spring does not name the type
		return f, f.MessageType != ""
	}
	r.setError(&f, part{}, r.header(message), r.header(stack))
	if _, masked := r.maskPart(r.header(message)); !masked {
		f.Type = cmp.Or(springType(f.Stack), f.Type)
	}
	f.Exchange, f.RoutingKey, f.Attempts = r.place(exchange), r.place(key), r.number("retry-count")
	if r.hasHeader(exchange) && f.Exchange == "" {
		f.Queue = f.RoutingKey
	}
	return f, true
}

// springType returns the type of the exception that a listener threw. Spring wraps such an
// exception in an exception of its own. If the stack begins with Spring's exception, springType
// returns the type of its cause.
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
