package deadletter

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// OwnQueue reports whether a name belongs to a queue or exchange of dlo itself. Nothing is requeued
// to such a queue, except that trial letters return to the trial queue.
func OwnQueue(name string) bool { return strings.HasPrefix(name, "dlo.") }

// NoOrigin reports whether no letter can have died in the given queue, because dlo uses the queue
// only to let letters wait or to watch them. The queues of trials and probes are different: trial
// letters and probe letters die there.
func NoOrigin(queue string) bool { return OwnQueue(queue) && !Tries(queue) }

// MarkerPrefix returns the beginning of the names of an inbox's markers. By these markers, dlo
// detects a restart of the broker. The prefix consists of dlo.epoch. and a hash of the name of the
// inbox, because that name may already have the maximum length.
func MarkerPrefix(inbox string) string {
	sum := sha256.Sum256([]byte(inbox))
	return "dlo.epoch." + hex.EncodeToString(sum[:8]) + "."
}

// MarkQueue returns the name of the queue that contains the mark of a store. The mark is one
// message with the progress of the store.
func MarkQueue(store string) string { return markPrefix + store }

// IsMarkQueue reports whether a queue contains the mark of a store.
func IsMarkQueue(name string) bool { return strings.HasPrefix(name, markPrefix) }

const markPrefix = "dlo.epoch.mark."

// MaxQueueName is the maximum length of a queue name in bytes. It is the maximum of a short string
// in AMQP 0-9-1. With a longer routing key, the connection would be closed, and everything in
// progress would be in doubt.
const MaxQueueName = 255
