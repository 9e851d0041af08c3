package deadletter

import (
	"encoding/binary"
	"strconv"
)

// SiblingKey is what the copies of one published message have in common, whichever queues they died
// in: exchange, routing key, message id and body. "" when nothing says how it was published, as of
// a letter without x-death.
func (l *Letter) SiblingKey() string {
	if l.Origin.Exchange == "" && l.Origin.RoutingKey == "" || len(l.Body) == 0 {
		return ""
	}
	sum := Hash([]byte(l.Origin.Exchange), []byte(l.Origin.RoutingKey), []byte(l.Properties.MessageID), l.Body)
	return strconv.FormatUint(binary.BigEndian.Uint64(sum[:]), 36)
}

// IndexSibling is the name under which the sibling key of a letter is indexed.
const IndexSibling = "sibling"
