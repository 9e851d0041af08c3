package failure

import (
	"cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// symfony reads the stamps that Symfony Messenger writes into headers. Each stamp is a list of JSON
// objects, and the newest object is the last one. The stamps name the transport but no queue. The
// stack trace is the field trace_as_string of the flattened exception. It does not begin with the
// type and the message of the exception.
func (r *reading) symfony() (f deadletter.Failure, found bool) {
	const stamp = `X-Message-Stamp-Symfony\Component\Messenger\Stamp\`
	const details, redelivery, sent, bus = stamp + "ErrorDetailsStamp", stamp + "RedeliveryStamp", stamp +
		"SentToFailureTransportStamp", stamp + "BusNameStamp"
	if !r.hasHeader(details) && !r.hasHeader(redelivery) && !r.hasHeader(sent) && !r.hasHeader(bus) {
		return f, false
	}
	failed, again := r.newest(details), r.newest(redelivery)
	r.setError(
		&f, failed.at("exceptionClass"), failed.at("exceptionMessage"), failed.at("flattenException.trace_as_string"),
	)
	f.Attempts, f.FailedAt = countOf(again.at("retryCount").value), timeRFC3339(again.at("redeliveredAt").text())
	f.Service = r.unmasked(r.newest(sent).at("originalReceiverName"))
	f.MessageType = cmp.Or(r.label("type"), r.typeProperty())
	return f, true
}

// newest returns the last element of the JSON list in a header.
func (r *reading) newest(header string) part {
	if list := listOf(r.text(header)); len(list) > 0 {
		return part{[]string{header}, list[len(list)-1]}
	}
	return part{}
}
