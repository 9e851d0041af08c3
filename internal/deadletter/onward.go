package deadletter

// Onward contains what a broker reports about a queue in which a letter expired. It says whether
// the queue has consumers or only delays retries. Exactly one field is set.
type Onward struct {
	Consumed bool   // the queue has a consumer
	Ends     bool   // the queue sends dead letters to an inbox or nowhere, so that a letter that expired there died there
	Queue    string // queue to which this queue sends all its dead letters; this queue has no consumer
	Why      string // reason why the broker could not report about the queue
}
