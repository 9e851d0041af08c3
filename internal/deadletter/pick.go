package deadletter

import "time"

// Pick is a type that a person picked. It applies to one letter, to one group, or to the letters of
// some queues. Exactly one of these three is set.
type Pick struct {
	ID         int64
	Letter     ID
	Group      GroupID
	GroupKey   [32]byte
	Queue, Key string // globs for the name of the queue and for the routing key; a Key of "" = any routing key
	Type       string // full name of the type
	Reason, By string
	At         time.Time

	// used only when the pick is added: the type may make masked values visible, and the audit
	// records this
	Reveals bool
}
