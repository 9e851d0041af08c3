package failure

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// massTransit reads the headers of messages that MassTransit moves to <queue>_error and
// <queue>_skipped. Only the header MT-Fault-InputAddress is always present, because users can omit
// the other headers with TransportHeaderOptions. The headers describe the innermost exception. The
// headers of a skipped message describe no exception; instead, the header MT-Reason has the value
// dead-letter.
func (r *reading) massTransit() (f deadletter.Failure, found bool) {
	address := r.text("MT-Fault-InputAddress")
	if address == "" && !r.hasHeader("MT-Fault-ExceptionType") && !r.hasHeader("MT-Fault-Message") &&
		!r.hasHeader("MT-Reason") {
		return f, false
	}
	r.setError(&f, r.header("MT-Fault-ExceptionType"), r.header("MT-Fault-Message"), r.header("MT-Fault-StackTrace"))
	f.MessageType = cmp.Or(r.label("MT-Fault-MessageType"), r.label("MT-MessageType"))
	f.Queue = cmp.Or(lastSegment(address), r.inboxWithoutSuffix("_error", "_skipped"))
	f.Attempts = cmp.Or(r.number("MT-Fault-RetryCount"), r.number("MT-Fault-RedeliveryCount"))
	f.FailedAt = timeRFC3339(r.text("MT-Fault-Timestamp"))
	f.Service, f.Version = r.label("MT-Host-ProcessName"), r.label("MT-Host-AssemblyVersion")
	return f, true
}

// lastSegment returns the last path segment of an address, which is the name of a queue. For
// example, it returns "orders" for "rabbitmq://localhost/vhost/orders?durable=true" and for
// "queue:orders".
func lastSegment(address string) string {
	if len(address) > 2048 {
		return ""
	}
	address, _, _ = strings.Cut(address, "?")
	address = strings.TrimRight(address, "/")
	name := address[strings.LastIndexAny(address, "/:")+1:]
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	return validName(name)
}

// inboxWithoutSuffix returns the name of the inbox without the suffix that a framework adds to the
// names of its error queues. It returns "" if the name has none of the given suffixes. If a shovel
// moved the letter from another queue, inboxWithoutSuffix uses the name of that queue, and not the
// name of the inbox.
func (r *reading) inboxWithoutSuffix(suffixes ...string) string {
	at := cmp.Or(r.shovelledFrom(), r.inbox)
	for _, s := range suffixes {
		if name, ok := strings.CutSuffix(at, s); ok {
			return name
		}
	}
	return ""
}
