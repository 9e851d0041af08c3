package deadletter

import "time"

// Wait is a place in the broker where letters wait for their retry: an exchange that takes each
// with its target as routing key, and a queue that is bound to it and dead-letters to the default
// exchange by that same key.
type Wait struct {
	Waiter   string // which asks for it
	Exchange string // fanout, or of type x-delayed-message
	Delayed  bool   // it is the latter: it holds the letters, and the queue passes them on at once
	Queue    string
	TTL      time.Duration // of all letters in the queue; negative = each has an expiration of its own
}

// WaiterQueue is the waiter that has a queue of one delay for all that wait in it.
const WaiterQueue = "wait-queue"

// WaitTTL is the queue of the waiter message-ttl, in which each letter has an expiration of its
// own.
const WaitTTL = "dlo.wait.ttl"

// HeaderDelay is the header that tells an exchange of type x-delayed-message how long it holds a
// message, milliseconds below 2^32.
const HeaderDelay = "x-delay"

// Overdue is how long after its time in the broker is over people may act on a letter that nobody
// has moved on: its broker is not in the configuration any more, or its clock was wrong.
const Overdue = time.Minute

// WhyInBroker is why nobody acts on a letter that waits in the broker.
const WhyInBroker = "it waits in the broker, and nothing calls it back from there"

// Waited is a letter whose time in the broker is over.
type Waited struct {
	Letter ID
	Rule   string
	Queue  string // it should be there now
	In     string
	Since  time.Time // the waiter confirmed it
}

// Landed is what becomes of a Waited.
type Landed struct {
	Letter  ID
	DueAt   time.Time // end of the watch
	Depth   *int      // messages that are ready in the queue now; nil = unknown
	Doubt   string    // why nobody knows that it arrived; "" = as far as can be known it did
	Lost    string    // it did not arrive, or nobody knows and there is reason to doubt it: held, with the reason in words
	InDoubt bool      // Lost is a doubt

	Channels []string // where the notice of a lost one goes, if its group calls for one
}
