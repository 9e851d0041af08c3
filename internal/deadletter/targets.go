package deadletter

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// OwnQueue says whether a queue belongs to dlo itself on any broker: what waits or is watched there
// has no origin there, and nothing is requeued to it.
func OwnQueue(name string) bool { return strings.HasPrefix(name, "dlo.") }

// MarkerPrefix is how the names of the markers begin by which dlo tells a restart of the broker
// that has an inbox: dlo.epoch. and a hash of the inbox, whose own name may be as long as a name
// can be.
func MarkerPrefix(inbox string) string {
	sum := sha256.Sum256([]byte(inbox))
	return "dlo.epoch." + hex.EncodeToString(sum[:8]) + "."
}

// MarkQueue is the queue of the mark of a store: it has one message, how far the store had got.
func MarkQueue(store string) string { return markPrefix + store }

// IsMarkQueue says whether a queue has the mark of some store.
func IsMarkQueue(name string) bool { return strings.HasPrefix(name, markPrefix) }

const markPrefix = "dlo.epoch.mark."

// MaxQueueName is the length of a short string of AMQP 0-9-1, bytes: no queue has a longer name. A
// longer routing key would cost the connection and put all that is under way in doubt.
const MaxQueueName = 255
