package deadletter

// FailureHeaders says in which headers consumers report failures, in addition to the headers that
// dlo knows. Each entry is the name of a header, or a path into a header that is a table or JSON,
// for example "x-error.reason". The first entry that leads to a text counts.
type FailureHeaders struct {
	Type, Message, Stack []string
	Attempts             []string // number of tries by the consumer
	Origin               []string // queue in which the message failed
}
