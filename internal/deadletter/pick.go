package deadletter

import "time"

// Pick is a type that a person chose for a letter, for a group, or as a binding of queues. Exactly
// one of the three is set.
type Pick struct {
	ID         int64
	Letter     ID
	Group      GroupID
	GroupKey   [32]byte
	Queue, Key string // globs on the origin queue and the routing key, "" = any key
	Type       string // full name
	Reason, By string
	At         time.Time

	Reveals bool // when added: it may show masked data, which is recorded with it
}
