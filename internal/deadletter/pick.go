package deadletter

import "time"

// Pick is a type that a person picked. It applies to one letter, to one group, or to the letters of
// some queues. Exactly one of these three is set.
type Pick struct {
	ID       int64     `json:"id"`
	Letter   ID        `json:"letter,omitzero"`
	Group    GroupID   `json:"group,omitzero"`
	GroupKey [32]byte  `json:"-"`
	Queue    string    `json:"queue,omitzero"` // glob for the name of the queue
	Key      string    `json:"key,omitzero"`   // glob for the routing key; absent = any routing key
	Type     string    `json:"type"`           // full name of the type
	By       string    `json:"by"`
	Reason   string    `json:"reason"`
	At       time.Time `json:"at"`

	// used only when the pick is added: the type may make masked values visible, and the audit
	// records this
	Reveals bool `json:"-"`
}
