package deadletter

// Onward is a broker's report on a queue in which a letter expired: whether the queue has consumers
// of its own or only delays retries. Exactly one field is set.
type Onward struct {
	Consumed bool   // it has a consumer
	Ends     bool   // its dead letters go to an inbox or nowhere: a letter that expired there died there
	Queue    string // it has no consumer, and its dead letters go only to this queue
	Why      string // why it is unknown, in words
}
