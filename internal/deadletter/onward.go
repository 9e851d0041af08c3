package deadletter

// Onward is what a broker says of a queue in which a letter expired: whether it is a queue of
// people, or one that only delays retries. One of its fields is set.
type Onward struct {
	Consumed bool   // somebody consumes it
	Ends     bool   // its dead letters come to an inbox, or nowhere: what expired there died there
	Queue    string // nobody consumes it, and its dead letters go on to this queue alone
	Why      string // why nobody knows, in words
}
