package deadletter

import (
	"encoding/binary"
	"strconv"
)

// SiblingKey returns a text that is the same for all copies of one published message, even if they
// died in different queues. Copies have the same exchange, routing key, message id and body. If it
// is unknown how the message was published, for example without x-death, SiblingKey returns "".
func (l *Letter) SiblingKey() string {
	if l.Exchange == "" && l.RoutingKey == "" || len(l.Body) == 0 {
		return ""
	}
	sum := Hash([]byte(l.Exchange), []byte(l.RoutingKey), []byte(l.Properties.MessageID), l.Body)
	return strconv.FormatUint(binary.BigEndian.Uint64(sum[:]), 36)
}

// IndexSibling is the name of the field under which the search index contains sibling keys.
const IndexSibling = "sibling"
