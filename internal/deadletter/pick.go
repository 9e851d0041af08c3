package deadletter

import "time"

// Binding assigns a message type to the letters of queues. It comes from the configuration or from
// a person.
type Binding struct {
	Queue string `json:"queue,omitzero"` // glob for the origin queue
	Key   string `json:"key,omitzero"`   // glob for the routing key; absent = any routing key
	Type  string `json:"type"`           // full name of a message type
	// path of the member of JSON bodies that holds the message as base64; absent = the body is the
	// message
	Path string `json:"path,omitzero"`
}

// Fits reports whether the binding applies to letters with the given origin queue and routing key.
func (b Binding) Fits(queue, key string) bool {
	return Glob(b.Queue, queue, true) && (b.Key == "" || Glob(b.Key, key, true))
}

// Pick is a type that a person picked. It applies to one letter, to one group, or, as a binding, to
// the letters of some queues. Exactly one of Letter, Group and Queue is set.
type Pick struct {
	ID       int64    `json:"id"`
	Letter   ID       `json:"letter,omitzero"`
	Group    GroupID  `json:"group,omitzero"`
	GroupKey [32]byte `json:"-"`
	Binding
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`

	// used only when the pick is added: the type may make masked values visible, and the audit
	// records this
	Reveals bool `json:"-"`
}
