package deadletter

import "time"

// Failure contains what a consumer or its framework reported about a message that it rejected.
// Everything in it is untrusted. A field that is zero was not reported.
type Failure struct {
	By                   string // source of the report: a convention such as "Spring AMQP", or "annotation"
	Type                 string // type of the error, e.g. "java.lang.IllegalStateException"
	Message              string
	Stack                string // stack trace as it was reported, with its line breaks
	MessageType          string // type of the body, as the publisher named it
	ID                   string // id that the framework gave the message, such as the id of a task
	Queue                string // queue in which the message failed
	Exchange, RoutingKey string // exchange and routing key with which the message was published to that queue
	Attempts             int    // number of tries by the consumer; only shown
	Service, Version     string // name and version of the consumer
	FailedAt             time.Time
}

// Said reports whether the failure contains an error that can be shown.
func (f *Failure) Said() bool { return f.Type != "" || f.Message != "" || f.Stack != "" }
