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
	quorum bool // Returned messages are counted and are delivered after earlier returned ones.
	leaks  bool // A first delivery may be flagged redelivered.
	tells  bool // A delivery's count distinguishes a return from a first delivery.
	counts bool // The count does so even for a letter that came without a count.

	deletes int // delivery limit: messages returned more often are deleted; 0 = no limit
}

var (
	classic  = broker{name: "3.10 classic"}
	quorum   = broker{name: "3.10 quorum", quorum: true}
	leaking  = broker{name: "4.3 classic", leaks: true}
	halfway  = broker{name: "4.0 quorum", quorum: true, leaks: true, counts: true}
	counting = broker{name: "4.3 quorum", quorum: true, leaks: true, tells: true, counts: true}

	brokers = []broker{classic, quorum, leaking, halfway, counting}
)

// message is a dead-lettered message. Its number is its true identity. Only the tests know the
// number.
type message struct {
	number  int
	arrival deadletter.Arrival
	returns int  // number of returns to the queue; more than 0 flags it as redelivered
	leaked  bool // the message was returned before it died
	undone  bool // the message was acknowledged, and a broker restart brought it back
}

// queue is a dead-letter queue and its broker.
type queue struct {
	broker
	t       *testing.T
	fate    fate
	note    func(format string, args ...any)
	safe    func(number int) bool // reports whether a message may be acknowledged
	forgets func(acks int) int    // how many of the newest acks a restart undoes
	tags    map[uint64]int        // message number by delivery tag
	tag     uint64                // tag of the newest delivery

	mu       sync.Mutex
	changed  chan struct{} // closed by the next change
	returned []*message    // returned messages of a quorum queue, delivered before the ready ones
	ready    []*message
	held     []*message // the session's window
	kept     []*message // the window of a session whose cluster node died
	acked    []*message // oldest first
	session  *inbox     // nil = none
	markers  map[string]bool
	number   int // number of the newest message
	restarts int
	up       time.Time // when the broker is back after a restart
}

// publish puts messages with these bodies into the queue, all at once. A body that begins with "m"
// is also the message id. A message whose body begins with "r" was redelivered before it died.
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
	q.change()
}

// change wakes everything that waits for a change.
func (q *queue) change() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// take moves the next message into the session's window. It returns nil if there is no message.
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
		if m.leaked && !q.tells { // the count is 1 before and after the first return of the message (4.0.5)
			count = max(1, count-1)
		}
		a.Properties.Headers = deadletter.Table{"x-delivery-count": count}
	}
	return a
}

// end ends the session. Its window goes back whole and in order.
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
	q.change()
}

// keep ends the session in the same way as the death of its cluster node: a quorum queue keeps the
// session's window.
func (q *queue) keep() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.kept, q.held = q.held, nil
	q.restarts++
	q.end()
}

// release gives back the kept messages.
func (q *queue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.held, q.kept = slices.Concat(q.kept, q.held), nil
	q.end()
}

// restart ends the session and removes every marker. It brings back the newest acknowledged
// messages and restores the original order.
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

// has reports whether a message is still in the queue. A message that a restart brought back does
// not count.
func (q *queue) has(number int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	left := slices.Concat(q.returned, q.ready, q.held, q.kept)
	return slices.ContainsFunc(left, func(m *message) bool { return m.number == number && !m.undone })
}

// free reports whether no session holds the queue.
func (q *queue) free() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.session == nil
}

// left returns the number of messages in the queue.
func (q *queue) left() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.returned) + len(q.ready) + len(q.held) + len(q.kept)
}

// numbers returns the numbers of delivered messages.
func (q *queue) numbers(w []deadletter.Arrival) []int {
	list := make([]int, len(w))
	for i := range w {
		list[i] = q.tags[w[i].Tag]
	}
	return list
}
