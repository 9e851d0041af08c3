package failure

import (
	"cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// cloudEvents reads CloudEvents attributes from headers, in the "binary mode" of the AMQP binding.
// The header of an attribute is called cloudEvents:type or, for JMS, cloudEvents_type. The source
// attribute names the publisher, so it says nothing about the consumer.
func (r *reading) cloudEvents() (f deadletter.Failure, found bool) {
	f.MessageType = cmp.Or(r.label("cloudEvents_type"), r.label("cloudEvents:type"))
	return f, f.MessageType != ""
}
