package deadletter

import "time"

// Wait is a place in the broker where letters wait for their retry. It consists of an exchange, to
// which each letter is published with its target as routing key, and a queue bound to the exchange.
// The queue dead-letters to the default exchange with that routing key.
type Wait struct {
	Waiter   string // waiter that uses it
	Exchange string // fanout, or type x-delayed-message
	Delayed  bool   // the exchange has type x-delayed-message: it holds the letters, and the queue passes them on immediately
	Queue    string
	TTL      time.Duration // time to live of all letters in the queue; negative = each has its own expiration
}

// WaiterQueue is the waiter with one queue per delay, shared by all letters with that delay.
const WaiterQueue = "wait-queue"

// WaitTTL is the queue of the waiter message-ttl, in which each letter has its own expiration.
const WaitTTL = "dlo.wait.ttl"

// HeaderDelay is the header that sets how long an exchange of type x-delayed-message holds a
// message, in milliseconds below 2^32.
const HeaderDelay = "x-delay"

// Overdue is the time after the end of a letter's wait in the broker at which people may act on the
// letter, if it has not been moved on by then. A letter is not moved on if its broker was removed
// from the configuration, or if the broker's clock was wrong.
const Overdue = time.Minute

// WhyInBroker is the reason why nobody can act on a letter that waits in the broker.
const WhyInBroker = "it waits in the broker, and nothing calls it back from there"

// Waited is a letter whose wait in the broker is over.
type Waited struct {
	Letter ID
	Rule   string
	Queue  string // queue where it should be now
	In     string
	Since  time.Time // when the waiter confirmed it
}

// WaitEnd is the result for a Waited letter.
type WaitEnd struct {
	Letter  ID
	DueAt   time.Time // end of the watch
	Depth   *int      // ready messages in the queue now; nil = unknown
	Doubt   string    // reason for doubt about its arrival; "" = it arrived, as far as this can be known
	Lost    string    // why it is held: it did not arrive, or its arrival is in doubt
	InDoubt bool      // Lost is only a doubt

	Channels []string // channels for the notice of a lost letter, if its group needs one
}
