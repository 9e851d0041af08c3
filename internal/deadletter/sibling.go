package deadletter

import (
	"encoding/binary"
	"strconv"
)

// SiblingKey identifies the copies of one published message, whichever queues they died in. Copies
// have the same exchange, routing key, message id and body. SiblingKey returns "" if it is unknown
// how the message was published, for example for a letter without x-death.
func (l *Letter) SiblingKey() string {
	if l.Origin.Exchange == "" && l.Origin.RoutingKey == "" || len(l.Body) == 0 {
		return ""
	}
	sum := Hash([]byte(l.Origin.Exchange), []byte(l.Origin.RoutingKey), []byte(l.Properties.MessageID), l.Body)
	return strconv.FormatUint(binary.BigEndian.Uint64(sum[:]), 36)
}

// IndexSibling is the name under which a letter's sibling key is indexed.
const IndexSibling = "sibling"
