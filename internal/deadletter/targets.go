package deadletter

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// OwnQueue reports whether a queue belongs to dlo itself on any broker. Nothing is requeued to such
// a queue, except that a trial's letters return to the trial queue.
func OwnQueue(name string) bool { return strings.HasPrefix(name, "dlo.") }

// NoOrigin reports whether a queue is never the origin of a letter, because letters only wait or
// are watched there. The queues of trials and probes can be origins, because the letters of trials
// and probes do die there.
func NoOrigin(queue string) bool { return OwnQueue(queue) && !Tries(queue) }

// MarkerPrefix returns the prefix of the names of an inbox's markers, by which dlo detects a
// restart of the inbox's broker. It consists of dlo.epoch. and a hash of the inbox, because the
// inbox's own name may already have the maximum length.
func MarkerPrefix(inbox string) string {
	sum := sha256.Sum256([]byte(inbox))
	return "dlo.epoch." + hex.EncodeToString(sum[:8]) + "."
}

// MarkQueue returns the queue for the mark of a store. The mark is one message with the store's
// progress.
func MarkQueue(store string) string { return markPrefix + store }

// IsMarkQueue reports whether a queue holds the mark of any store.
func IsMarkQueue(name string) bool { return strings.HasPrefix(name, markPrefix) }

const markPrefix = "dlo.epoch.mark."

// MaxQueueName is the maximum length in bytes of an AMQP 0-9-1 short string, and so of a queue
// name. A longer routing key would close the connection and put everything in progress in doubt.
const MaxQueueName = 255
