package deadletter

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
)

// Fingerprint is equal for equal deliveries. It is the SHA-256 of the exchange, the routing key,
// all properties with the headers, and the body, in their canonical encoding. It leaves out the
// headers x-delivery-count and x-acquired-count, because a redelivery changes them. The message id
// has no special role in it.
type Fingerprint [32]byte

// Print returns the fingerprint of a delivery. It returns an error if the properties cannot be
// encoded, which is never the case for properties from the client library.
func (a *Arrival) Print() (Fingerprint, error) {
	p := a.Properties
	_, counted := p.Headers[headerDeliveryCount]
	_, acquired := p.Headers[headerAcquiredCount]
	if counted || acquired {
		p.Headers = maps.Clone(p.Headers)
		delete(p.Headers, headerDeliveryCount)
		delete(p.Headers, headerAcquiredCount)
	}
	encoded, err := p.Encode()
	if err != nil {
		return Fingerprint{}, err
	}
	return Hash([]byte(a.Exchange), []byte(a.RoutingKey), encoded, a.Body), nil
}

// Hash returns the SHA-256 of several parts. Each part is preceded by its length.
func Hash[T string | []byte](parts ...T) [32]byte {
	h := sha256.New()
	var length [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write([]byte(part))
	}
	return [32]byte(h.Sum(nil))
}

// DeliveryCount returns the value of x-delivery-count in a delivery. If the header is missing, it
// returns -1.
func (a *Arrival) DeliveryCount() int64 { return a.Properties.deliveryCount() }

func (p *Properties) deliveryCount() int64 {
	switch n := p.Headers[headerDeliveryCount].(type) {
	case int64:
		return n
	case int32:
		return int64(n)
	}
	return -1
}

// BrokerTries returns how often the broker had given the message to a consumer of its queue before
// it came to dlo, or 0 if it does not say. Quorum queues count the deliveries that failed, and
// since 4.3 the count is carried over to the inbox (4.3.6). A publisher can write anything into the
// header if the queue is a classic one.
func (l *Letter) BrokerTries() int {
	if d := (Death{Reason: l.Reason}); !d.Refused() {
		return 0
	}
	return int(max(0, l.Properties.deliveryCount()))
}

// Identity returns the values of dlo-id and dlo-token in a delivery. It reports whether both are
// well formed. Only the store knows whether it issued them.
func (a *Arrival) Identity() (ID, Token, bool) {
	id, ok1 := a.Properties.Headers[HeaderID].(string)
	token, ok2 := a.Properties.Headers[HeaderToken].(string)
	if !ok1 || !ok2 || Token(token).Bytes() == nil {
		return "", "", false
	}
	parsed, err := ParseID(id)
	return parsed, Token(token), err == nil
}
