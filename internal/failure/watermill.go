package failure

import "github.com/deadletteroffice/dlo/internal/deadletter"

// watermill reads the metadata that the middleware PoisonQueue of Watermill adds. The topic is the
// queue, with the names that Watermill generates by default. Its component for commands and events
// has their type in name.
func (r *reading) watermill() (f deadletter.Failure, found bool) {
	if !r.has("reason_poisoned") {
		return f, false
	}
	r.fails(&f, part{}, r.header("reason_poisoned"), part{})
	f.Queue, f.Service = r.place("topic_poisoned"), r.label("handler_poisoned")
	f.MessageType, f.ID = r.label("name"), r.label("_watermill_message_uuid")
	return f, true
}
