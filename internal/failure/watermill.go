package failure

import "github.com/deadletteroffice/dlo/internal/deadletter"

// watermill reads the metadata that Watermill's PoisonQueue middleware adds. By default, Watermill
// gives a queue the name of its topic, so the topic is taken as the name of the queue. Watermill's
// component for commands and events puts the message type into the header "name".
func (r *reading) watermill() (f deadletter.Failure, found bool) {
	if !r.hasHeader("reason_poisoned") {
		return f, false
	}
	r.setError(&f, part{}, r.header("reason_poisoned"), part{})
	f.Queue, f.Service = r.place("topic_poisoned"), r.label("handler_poisoned")
	f.MessageType, f.ID = r.label("name"), r.label("_watermill_message_uuid")
	return f, true
}
