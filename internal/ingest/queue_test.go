package ingest_test

import (
	"cmp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// broker is a kind of RabbitMQ broker. The tests of internal/rabbitmq have measured its behaviour.
type broker struct {
	name   string
	quorum bool // Returned messages have a count and are delivered after messages that were returned earlier.
	leaks  bool // A message that is delivered for the first time may have the flag redelivered.
	tells  bool // The count of a delivery distinguishes a returned message from a first delivery.
	counts bool // The count does this even for a message that came without a count.

	deletes int // delivery limit; messages that are returned more often are deleted; 0 = no limit
}

var (
	classic  = broker{name: "3.10 classic"}
	quorum   = broker{name: "3.10 quorum", quorum: true}
	leaking  = broker{name: "4.3 classic", leaks: true}
	halfway  = broker{name: "4.0 quorum", quorum: true, leaks: true, counts: true}
	counting = broker{name: "4.3 quorum", quorum: true, leaks: true, tells: true, counts: true}

	brokers = []broker{classic, quorum, leaking, halfway, counting}
)

// message is a dead-lettered message. Its number identifies it, and only the tests know this
// number.
type message struct {
	number  int
	arrival deadletter.Arrival
	returns int  // how often it was returned to the queue; with more than 0, it has the flag redelivered
	leaked  bool // true if the message was returned before it died
	undone  bool // true if the message was acknowledged and a broker restart brought it back
}

// queue is a dead-letter queue, together with its broker.
type queue struct {
	broker
	t       *testing.T
	fate    fate
	note    func(format string, args ...any)
	safe    func(number int) bool // reports whether the message with this number may be acknowledged
	forgets func(acks int) int    // returns how many of the newest acks a restart undoes
	tags    map[uint64]int        // delivery tag -> number of the message
	tag     uint64                // tag of the newest delivery

	mu       sync.Mutex
	changed  chan struct{} // closed at the next change
	returned []*message    // returned messages of a quorum queue, which are delivered before the ready ones
	ready    []*message
	held     []*message // the window of the current session
	kept     []*message // the window of a session whose cluster node died
	acked    []*message // acknowledged messages, oldest first
	session  *inbox     // the current session; nil = none
	markers  map[string]bool
	number   int // number of the newest message
	restarts int
	up       time.Time // when the broker is back after a restart
}

// publish puts one message per body into the queue, all at the same time. If a body begins with
// "m", it is also the message id. If a body begins with "r", the message was redelivered before it
// died.
func (q *queue) publish(bodies ...string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, body := range bodies {
		q.number++
		m := &message{number: q.number}
		m.arrival = deadletter.Arrival{Exchange: "dlo.dlx", RoutingKey: "k", Body: []byte(body)}
		switch {
		case body[0] == 'm':
			m.arrival.Properties.MessageID = body
		case body[0] == 'r' && q.leaks:
			m.returns, m.leaked = 1, true
		}
		print, err := m.arrival.Print()
		if err != nil {
			q.t.Error(err)
		}
		m.arrival.Fingerprint = print
		q.ready = append(q.ready, m)
	}
	q.wakeAll()
}

// wakeAll wakes everything that waits for a change of the queue.
func (q *queue) wakeAll() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// take moves the next message into the window of the session. If there is none, it returns nil.
func (q *queue) take() *message {
	from := &q.returned
	if len(*from) == 0 {
		from = &q.ready
	}
	if len(*from) == 0 {
		return nil
	}
	m := (*from)[0]
	*from = (*from)[1:]
	q.held = append(q.held, m)
	return m
}

// deliver returns a message as the session receives it.
func (q *queue) deliver(m *message) deadletter.Arrival {
	q.tag++
	q.tags[q.tag] = m.number
	a := m.arrival
	a.Tag, a.Redelivered = q.tag, m.returns > 0
	if q.quorum && m.returns > 0 {
		count := int64(m.returns)
		if m.leaked && !q.tells { // on 4.0.5, the count is 1 before and after the first return of such a message
			count = max(1, count-1)
		}
		a.Properties.Headers = deadletter.Table{"x-delivery-count": count}
	}
	return a
}

// end ends the session. The whole window goes back to the queue in order.
func (q *queue) end() {
	for _, m := range q.held {
		m.returns++
	}
	if q.deletes > 0 {
		q.held = slices.DeleteFunc(q.held, func(m *message) bool { return m.returns > q.deletes })
	}
	if q.quorum {
		q.returned = append(q.returned, q.held...)
	} else {
		q.ready = append(q.held, q.ready...)
	}
	q.held, q.session = nil, nil
	q.wakeAll()
}

// endByNodeDeath ends the session as the death of its cluster node would. A quorum queue then keeps
// the window of the session.
func (q *queue) endByNodeDeath() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.kept, q.held = q.held, nil
	q.restarts++
	q.end()
}

// release gives the kept messages back to the queue.
func (q *queue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held, q.kept = slices.Concat(q.kept, q.held), nil
	q.end()
}

// restart ends the session, as a restart of the broker would. It removes every marker, brings back
// the newest acknowledged messages, and restores the original order.
func (q *queue) restart() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.end()
	kept := len(q.acked) - q.forgets(len(q.acked))
	for _, m := range q.acked[kept:] {
		m.returns++
		m.undone = true
	}
	q.ready = slices.Concat(q.acked[kept:], q.returned, q.ready)
	slices.SortFunc(q.ready, func(a, b *message) int { return cmp.Compare(a.number, b.number) })
	q.acked, q.returned, q.markers = q.acked[:kept:kept], nil, map[string]bool{}
	q.restarts++
	q.up = time.Now().Add(3 * time.Second)
}

// hasMessage reports whether a message is still in the queue. It ignores a message that a restart
// brought back.
func (q *queue) hasMessage(number int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	left := slices.Concat(q.returned, q.ready, q.held, q.kept)
	return slices.ContainsFunc(left, func(m *message) bool { return m.number == number && !m.undone })
}

// isFree reports whether the queue has no session.
func (q *queue) isFree() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.session == nil
}

// size returns how many messages are in the queue.
func (q *queue) size() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.returned) + len(q.ready) + len(q.held) + len(q.kept)
}

// numbers returns the numbers of the messages in a window.
func (q *queue) numbers(w []deadletter.Arrival) []int {
	list := make([]int, len(w))
	for i := range w {
		list[i] = q.tags[w[i].Tag]
	}
	return list
}
