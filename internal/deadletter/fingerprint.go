package deadletter

import (
	"crypto/sha256"
	"encoding/binary"
)

// Fingerprint tells equal deliveries: sha-256 over exchange, routing key, all properties, headers without x-delivery-count and x-acquired-count
// (a redelivery changes them), and body, in the canonical typed encoding. The message-id is only one property of it.
type Fingerprint [32]byte

// Print returns the fingerprint of a delivery. Properties that cannot be encoded (nothing that the client library delivers) are an error.
func (a *Arrival) Print() (Fingerprint, error) {
	p := a.Properties
	_, counted := p.Headers[headerDeliveryCount]
	_, acquired := p.Headers[headerAcquiredCount]
	if counted || acquired {
		p.Headers = without(p.Headers, func(k string) bool { return k == headerDeliveryCount || k == headerAcquiredCount })
	}
	encoded, err := p.Encode()
	if err != nil {
		return Fingerprint{}, err
	}
	h := sha256.New()
	var length [8]byte
	for _, part := range [][]byte{[]byte(a.Exchange), []byte(a.RoutingKey), encoded, a.Body} {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write(part)
	}
	return Fingerprint(h.Sum(nil)), nil
}

// DeliveryCount returns the x-delivery-count of a delivery, -1 when it has none.
func (a *Arrival) DeliveryCount() int64 {
	switch n := a.Properties.Headers[headerDeliveryCount].(type) {
	case int64:
		return n
	case int32:
		return int64(n)
	}
	return -1
}

// Identity returns the dlo-id and dlo-token of a delivery, and whether both have the right shape. Only the store can say whether it issued them.
func (a *Arrival) Identity() (ID, Token, bool) {
	id, ok1 := a.Properties.Headers[HeaderID].(string)
	token, ok2 := a.Properties.Headers[HeaderToken].(string)
	if !ok1 || !ok2 || Token(token).Bytes() == nil {
		return "", "", false
	}
	parsed, err := ParseID(id)
	return parsed, Token(token), err == nil
}

func without(t Table, drop func(key string) bool) Table {
	kept := make(Table, len(t))
	for k, v := range t {
		if !drop(k) {
			kept[k] = v
		}
	}
	return kept
}
