package deadletter

// Onward is what a broker reports about a queue in which a letter expired. It says whether the
// queue has its own consumers or only delays retries. Exactly one field is set.
type Onward struct {
	Consumed bool   // it has a consumer
	Ends     bool   // its dead letters go to an inbox or nowhere: a letter that expired there died there
	Queue    string // it has no consumer, and its dead letters go to this one queue only
	Why      string // why the broker's report is missing, in words
}
