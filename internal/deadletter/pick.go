package deadletter

import "time"

// Pick is a type that a person chose: for a letter, for a group, or as a binding of queues. One of
// the three is set.
type Pick struct {
	ID         int64
	Letter     ID
	Group      GroupID
	GroupKey   [32]byte
	Queue, Key string // globs on the origin queue and the routing key, "" = any key
	Type       string // full name
	Reason, By string
	At         time.Time

	Reveals bool // of one that is added: it may show what was masked, which is noted with it
}
