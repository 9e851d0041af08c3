package deadletter

import "time"

// These are values of Failure.By that have effects. Dramatiq puts what failed in the queue NAME
// into NAME.XQ, which has no consumers. The message type of NestJS is a pattern, which may contain
// ids.
const (
	Dramatiq = "Dramatiq"
	NestJS   = "NestJS"
)

// Failure contains what a consumer or its framework reported about a message that it rejected.
// Everything in it is untrusted. A field that is zero was not reported.
type Failure struct {
	By          string    `json:"by"`   // source of the report: a convention such as "Spring AMQP", or "annotation"
	Type        string    `json:"type"` // type of the error, e.g. "java.lang.IllegalStateException"
	Message     string    `json:"message"`
	Stack       string    `json:"stack"`   // stack trace as it was reported, with its line breaks
	MessageType string    `json:"-"`       // type of the body, as the publisher named it
	ID          string    `json:"-"`       // id that the framework gave the message, such as the id of a task
	Queue       string    `json:"-"`       // queue in which the message failed
	Exchange    string    `json:"-"`       // exchange with which the message was published to that queue
	RoutingKey  string    `json:"-"`       // routing key with which the message was published to that queue
	Attempts    int       `json:"-"`       // number of tries by the consumer; only shown
	Service     string    `json:"service"` // name of the consumer
	Version     string    `json:"version"`
	FailedAt    time.Time `json:"-"`
}

// Said reports whether the failure contains an error that can be shown.
func (f *Failure) Said() bool { return f.Type != "" || f.Message != "" || f.Stack != "" }
