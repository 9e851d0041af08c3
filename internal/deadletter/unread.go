package deadletter

import "fmt"

// Unread is a header, or what follows it in its table, that could not be read. It is stored and
// shown, and a letter that has one is not sent again before somebody takes it away.
type Unread struct {
	Field []byte // as it came in the frame, its type first
	Why   string
}

// HeaderUnread is where the rest of the properties is kept when their own encoding cannot be read.
// No RabbitMQ was seen to send such properties: it parses them itself (3.10.8, 4.0.5, 4.3.6).
const HeaderUnread = "dlo-unread"

func (u Unread) String() string {
	return fmt.Sprintf("%d bytes that could not be read: %s", len(u.Field), u.Why)
}
