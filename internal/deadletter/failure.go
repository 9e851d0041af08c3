package deadletter

import "time"

// Failure is what a consumer, or its framework, says about why it gave a message up. All of it is
// untrusted. Zero fields are not said.
type Failure struct {
	By                   string // who says so: a convention such as "Spring AMQP", or "annotation"
	Type                 string // of the error: "java.lang.IllegalStateException"
	Message              string
	Stack                string // as it was written, lines and all
	MessageType          string // what the body is, in the words of the publisher
	ID                   string // by which the framework knows the message, such as that of a task
	Queue                string // where it failed
	Exchange, RoutingKey string // how it was published there
	Attempts             int    // tries of the consumer; shown, and used for nothing
	Service, Version     string // of the consumer
	FailedAt             time.Time
}

// Said says that there is an error to show.
func (f *Failure) Said() bool { return f.Type != "" || f.Message != "" || f.Stack != "" }
