package deadletter

import "time"

// Failure is what a consumer or its framework reported about why it rejected a message. All of it
// is untrusted. Zero fields were not reported.
type Failure struct {
	By                   string // source of the report: a convention such as "Spring AMQP", or "annotation"
	Type                 string // of the error: "java.lang.IllegalStateException"
	Message              string
	Stack                string // as written, with its line breaks
	MessageType          string // type of the body, in the publisher's words
	ID                   string // the framework's id of the message, such as a task id
	Queue                string // where it failed
	Exchange, RoutingKey string // of the publish to that queue
	Attempts             int    // consumer's tries; for display only
	Service, Version     string // of the consumer
	FailedAt             time.Time
}

// Said reports whether the failure contains an error to show.
func (f *Failure) Said() bool { return f.Type != "" || f.Message != "" || f.Stack != "" }
