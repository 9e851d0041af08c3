package failure

import (
	"cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// cloudEvents reads the attributes of a CloudEvent in headers, "binary mode" of the AMQP binding:
// cloudEvents_type, or with a colon as JMS could not have it. The source is who published it, so it
// is no consumer's.
func (r *reading) cloudEvents() (f deadletter.Failure, found bool) {
	f.MessageType = cmp.Or(r.label("cloudEvents_type"), r.label("cloudEvents:type"))
	return f, f.MessageType != ""
}
