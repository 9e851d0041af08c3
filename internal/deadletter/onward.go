package deadletter

// Onward says what happens to messages that expire in a queue. A broker reports whether the queue
// has consumers, and where its dead letters go. Exactly one field is set.
type Onward struct {
	Consumed bool // the queue has a consumer
	// the queue sends dead letters to an inbox or nowhere, so that a letter that expired there died
	// there
	Ends  bool
	Queue string // queue to which this queue sends all its dead letters; this queue has no consumer
	Why   string // reason why the broker could not report about the queue
}
