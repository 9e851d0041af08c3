package deadletter

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// OwnQueue says whether a queue belongs to dlo itself on any broker: nothing is requeued to it, but
// the letters of a trial to theirs.
func OwnQueue(name string) bool { return strings.HasPrefix(name, "dlo.") }

// NoOrigin says whether no letter has its origin in a queue: it only waited there, or was watched.
// What dies in the queue of a trial died there.
func NoOrigin(queue string) bool { return OwnQueue(queue) && queue != TrialQueue }

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
