package deadletter

import "fmt"

// Unread is a header, or the unreadable rest of a table of headers. It is stored and shown. A
// letter with an Unread header is not sent again until somebody removes that header.
type Unread struct {
	Field []byte // as received in the frame, beginning with its type
	Why   string
}

// HeaderUnread holds the properties from the first one whose encoding cannot be read. No RabbitMQ
// has been seen to send such properties, because RabbitMQ parses them itself (3.10.8, 4.0.5,
// 4.3.6).
const HeaderUnread = "dlo-unread"

func (u Unread) String() string {
	return fmt.Sprintf("%d bytes that could not be read: %s", len(u.Field), u.Why)
}
