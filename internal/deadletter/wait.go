package deadletter

import "time"

// Wait is a place in the broker where letters wait for their retry. It consists of an exchange and
// of a queue that is bound to it. Each letter is published to the exchange with the name of its
// target queue as the routing key. When the wait of a letter is over, the wait queue dead-letters
// the letter to the default exchange with this routing key.
type Wait struct {
	Waiter   string // waiter to which the place belongs
	Exchange string // of the type fanout or x-delayed-message
	// the exchange has the type x-delayed-message: letters wait in the exchange, and the queue
	// sends them on immediately
	Delayed bool
	Queue   string
	TTL     time.Duration // time to live of all letters in the queue; negative = each letter has its own expiration
}

// WaiterQueue is a waiter, which is a place where letters wait for their retry. It has one queue
// for each delay, so all letters with the same delay wait in the same queue.
const WaiterQueue = "wait-queue"

// WaitTTL is the queue of the waiter with the name "message-ttl". In this queue, each letter has
// its own expiration.
const WaitTTL = "dlo.wait.ttl"

// HeaderDelay is the header that says how long an exchange of the type x-delayed-message keeps a
// message. The value is in milliseconds and below 2^32.
const HeaderDelay = "x-delay"

// Overdue limits how long a letter may stay in the broker after the planned end of its wait. If the
// letter has not been moved on after this time, people may act on it. A letter can stay too long if
// the broker was removed from the configuration, or if the clock of the broker was wrong.
const Overdue = time.Minute

// WhyInBroker is the reason why nobody can act on a letter that waits in the broker.
const WhyInBroker = "it waits in the broker, and nothing calls it back from there"

// Waited is a letter whose wait in the broker is over.
type Waited struct {
	Letter ID
	Rule   string
	Queue  string // queue in which the letter should be now
	In     string
	Since  time.Time // time at which the waiter confirmed the letter
}

// WaitEnd says what happened to a letter whose wait in the broker is over.
type WaitEnd struct {
	Letter  ID
	DueAt   time.Time // end of the watch over the letter
	Depth   *int      // number of ready messages in the queue now; nil = unknown
	Doubt   string    // reason why it is in doubt whether the letter arrived; "" = as far as dlo can know, it arrived
	Lost    string    // reason why the letter is held: it did not arrive, or this is in doubt
	InDoubt bool      // the reason in Lost is only a doubt and not a fact

	Channels []string // channels for the notice about a lost letter, if its group needs a notice
}
