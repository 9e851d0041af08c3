package deadletter

import "time"

// Pick is a type that a person chose. It applies to a letter, to a group, or to queues, as a
// binding. Exactly one of these three is set.
type Pick struct {
	ID         int64
	Letter     ID
	Group      GroupID
	GroupKey   [32]byte
	Queue, Key string // globs on the origin queue and the routing key, "" = any key
	Type       string // full name
	Reason, By string
	At         time.Time

	Reveals bool // set when the pick is added: the type may show masked data, and this is recorded with the pick
}
