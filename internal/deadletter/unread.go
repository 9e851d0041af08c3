package deadletter

import "fmt"

// Unread is a header that could not be read, or the rest of a header table from the point where it
// could not be read. It is stored and shown. A letter with such a header is not sent again until
// somebody removes the header.
type Unread struct {
	Field []byte // bytes as they were received in the frame, beginning with the type of the field
	Why   string
}

// HeaderUnread is the name of a header that dlo adds if it cannot read the properties of a message
// to their end. The header contains the bytes that could not be read. No version of RabbitMQ was
// seen to send such properties, because RabbitMQ itself parses them (3.10.8, 4.0.5, 4.3.6).
const HeaderUnread = "dlo-unread"

func (u Unread) String() string {
	return fmt.Sprintf("%d bytes that could not be read: %s", len(u.Field), u.Why)
}
