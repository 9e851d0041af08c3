package failure

import (
	"cmp"
	"encoding/json"

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
	var failed struct {
		ExceptionClass, ExceptionMessage any
		FlattenException                 struct {
			Trace any `json:"trace_as_string"`
		}
	}
	if newestOf(r.text(details), &failed) {
		at := func(text any, names ...string) part { return part{details, jsonText(text), names} }
		r.setError(
			&f, at(failed.ExceptionClass, "exceptionClass"), at(failed.ExceptionMessage, "exceptionMessage"),
			at(failed.FlattenException.Trace, "flattenException", "trace_as_string"),
		)
	}
	var again struct{ RetryCount, RedeliveredAt any }
	if newestOf(r.text(redelivery), &again) {
		f.Attempts, f.FailedAt = jsonCount(again.RetryCount), timeRFC3339(jsonText(again.RedeliveredAt))
	}
	var from struct{ OriginalReceiverName any }
	if newestOf(r.text(sent), &from) {
		f.Service = r.unmasked(sent, jsonText(from.OriginalReceiverName))
	}
	f.MessageType = cmp.Or(r.label("type"), r.unmasked("type", r.Type))
	return f, true
}

// newestOf decodes the last element of a JSON list.
func newestOf(text string, into any) bool {
	var list []json.RawMessage
	return headerJSON(text, &list) && len(list) > 0 && json.Unmarshal(list[len(list)-1], into) == nil
}
