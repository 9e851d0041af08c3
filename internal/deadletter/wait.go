package deadletter

import "time"

// Wait is a place in the broker where letters wait for their retry. It consists of an exchange and
// a queue that is bound to it. Each letter is published to the exchange with its target as routing
// key. The queue then dead-letters it to the default exchange with that routing key.
type Wait struct {
	Waiter   string // waiter that uses it
	Exchange string // fanout, or type x-delayed-message
	Delayed  bool   // the exchange has type x-delayed-message: it holds the letters, and the queue passes them on immediately
	Queue    string
	TTL      time.Duration // time to live of all letters in the queue; negative = each has its own expiration
}

// WaiterQueue is the waiter that has one queue per delay. All letters with the same delay share a
// queue.
const WaiterQueue = "wait-queue"

// WaitTTL is the queue of the waiter message-ttl, in which each letter has its own expiration.
const WaitTTL = "dlo.wait.ttl"

// HeaderDelay is the header that sets how long an exchange of type x-delayed-message holds a
// message, in milliseconds below 2^32.
const HeaderDelay = "x-delay"

// Overdue is the time that must pass after a letter's wait in the broker should have ended. If the
// letter has not been moved on by then, people may act on it. A letter is not moved on if its
// broker was removed from the configuration, or if the clock of the broker was wrong.
const Overdue = time.Minute

// WhyInBroker is the reason why nobody can act on a letter that waits in the broker.
const WhyInBroker = "it waits in the broker, and nothing calls it back from there"

// Waited is a letter whose wait in the broker is over.
type Waited struct {
	Letter ID
	Rule   string
	Queue  string // queue in which it should be now
	In     string
	Since  time.Time // when the waiter confirmed it
}

// WaitEnd is what became of a Waited letter.
type WaitEnd struct {
	Letter  ID
	DueAt   time.Time // end of the watch
	Depth   *int      // ready messages in the queue now; nil = unknown
	Doubt   string    // why its arrival is in doubt; "" = it arrived, as far as dlo can know
	Lost    string    // why it is held: it did not arrive, or its arrival is in doubt
	InDoubt bool      // Lost is only a doubt, not a fact

	Channels []string // channels for the notice of a lost letter, if its group needs one
}
