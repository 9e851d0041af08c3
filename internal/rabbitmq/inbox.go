package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// Limits says when a window is full. A window is a batch of letters that dlo takes from an inbox.
type Limits struct {
	Letters int           // maximum number of letters in a window
	Bytes   int           // memory of the letters in bytes, headers included; the window closes when they reach it
	Linger  time.Duration // how long a window waits for further letters after its first one
}

// firstPrefetch is the initial prefetch of an inbox, which adapts later. RabbitMQ has no prefetch
// in bytes, so the first burst may consist of this many letters of the maximum size.
const firstPrefetch = 16

// Inbox drains one dead-letter queue in batches of letters, called windows. It takes the next
// window only when the last one is acknowledged. While a window is open, the broker delivers
// nothing more, so only that window can come back after a crash. Only one goroutine may use an
// Inbox.
type Inbox struct {
	link   *Link
	queue  string
	limits Limits
	once   bool // the session ends when the queue is empty
	// how many letters the caller still wants in a window; 0 = no limit
	most int
	// called with the reason why nothing is read now; "" when something is
	say     func(text string)
	failure string // why the session ended
	// counts sessions that settled no window; attempts to reach an unavailable broker do not count
	fruitless backoff
	sleep     func(context.Context, time.Duration) error // waits between sessions that settled no window
	conn      *amqp.Connection
	letters   *letterConn // the same connection, which the client reads through
	ch        *amqp.Channel
	closed    chan *amqp.Error
	canceled  chan string
	prefetch  int
	applied   int // the prefetch that is set on the channel
	consumes  int
	tag       uint64 // tag of the last delivery on the channel
	taken     int    // memory that the newest window takes, in bytes
	locked    bool   // the broker refuses basic.get for the queue
	regain    bool   // windows are full only by their number of letters, so that no letter needs basic.get
	facts     inboxFacts
	away      bool  // the node of a classic inbox was away since the last settled window
	unlocked  bool  // the queue of the lock or of the turn is on a cluster node that is away
	scarce    bool  // an unsettled letter has one delivery left
	spent     int64 // the delivery count that was last reported
	probation probation
	changed   <-chan string // gets the reason if the session has to end because the settings of the queue have changed
	heldUntil time.Time     // until when the broker may hold back letters of earlier sessions; zero = not known yet
}

// Inbox returns the inbox of a dead-letter queue. It opens no connection yet.
func (l *Link) Inbox(queue string, limits Limits) *Inbox {
	i := &Inbox{link: l, queue: queue, limits: limits, sleep: sleep, probation: probation{proof: steady}}
	i.say = func(text string) { l.inboxStatus(queue, false, text) }
	return i
}

// Once returns an Inbox for a queue that is not drained all the time, but only when somebody
// requests it. Next returns no letters when the queue is empty, and Open gives up on a queue that
// cannot be drained. The Inbox calls the function "report" with the reason why the queue cannot be
// read, and with "" when it can be read.
func (l *Link) Once(queue string, limits Limits, report func(text string)) *Inbox {
	return &Inbox{
		link:      l,
		queue:     queue,
		limits:    limits,
		once:      true,
		say:       report,
		sleep:     sleep,
		probation: probation{proof: steady},
	}
}

// Limit limits each of the next windows to n letters.
func (i *Inbox) Limit(n int) { i.most = n }

// Prefetch returns the maximum number of letters that the broker may deliver without an ack. As
// long as the newest window is not acknowledged, the broker can deliver only letters of this
// window. After the ack, it can deliver letters of the next window.
func (i *Inbox) Prefetch() int { return max(i.prefetch, i.applied) }

// Open drops the rest of the previous session and begins another one. It tries as often as needed.
// The parameter "session" is what the store knows about earlier sessions. The first window takes
// all letters that these may have held unacknowledged, because a window that came back must come
// first. A quorum queue puts returned letters behind letters that were returned earlier
// (returned_order_test.go). Open returns only with a session or with the error of ctx. For a queue
// that is drained once, it also returns the reason why the queue cannot be drained.
func (i *Inbox) Open(ctx context.Context, session deadletter.InboxSession) (deadletter.SessionFacts, error) {
	i.Close()
	if i.fruitless.failures > 0 { // no window has been settled since the last session began
		if err := i.sleep(ctx, i.restTime()); err != nil {
			return deadletter.SessionFacts{}, err
		}
	}
	for away := (backoff{}); ; {
		i.prefetch = min(max(firstPrefetch, session.Prefetch), i.limits.Letters)
		asked := i.link.tryRequests()
		s, err := i.open(ctx, session)
		if err == nil {
			// reset only when a window is settled; otherwise dlo would request a letter that ends
			// every session faster and faster
			i.fruitless.failures = max(1, i.fruitless.failures)
			i.link.log.Info("inbox connected", "inbox", i.queue)
			return s, nil
		}
		i.away = i.away || isAway(err)
		i.Close()
		if ctx.Err() != nil {
			return deadletter.SessionFacts{}, ctx.Err()
		}
		if i.once && errors.Is(err, errNotDrained) {
			return deadletter.SessionFacts{}, err
		}
		wait := away.next()
		if errors.Is(err, errNotDrained) {
			wait = max(wait, 10*time.Second) // a person has to do something first
		}
		i.say(err.Error())
		i.link.log.Warn("inbox not connected", "inbox", i.queue, "err", err, "next_try", wait)
		if err := away.waitOrAsked(ctx, wait, asked); err != nil {
			return deadletter.SessionFacts{}, err
		}
	}
}

func (i *Inbox) open(ctx context.Context, session deadletter.InboxSession) (deadletter.SessionFacts, error) {
	var s deadletter.SessionFacts
	marker := session.Marker
	var err error
	if i.conn, i.letters, err = i.link.dialReading(ctx, "inbox "+i.queue); err != nil {
		return s, err
	}
	i.unlocked = false
	if err := i.lockInbox(); err != nil {
		return s, err
	}
	i.facts, err = i.link.prepare(ctx, i.conn, i.queue, i.once, marker != "")
	if err != nil {
		return s, err
	}
	if !i.once {
		i.link.Reached()
	}
	if err := i.link.mayRead(i.conn, i.queue); err != nil {
		return s, err
	}
	version := i.link.Status().Version
	s.RedeliveredLeaks = redeliveredLeaks(version, i.facts.kind)
	s.DeliveryLimit = i.facts.limit
	s.FirstReturnCounted = i.facts.kind == "quorum"
	s.EveryReturnCounted = s.FirstReturnCounted && atLeast(version, 4, 3)
	if err := i.channel(); err != nil {
		return s, err
	}
	switch {
	case marker != "" && i.unlocked:
		// the marker is likely on the node that is away, where each request takes 65 s (4.0.5,
		// 4.3.6)
		s.Marker = deadletter.MarkerUnknown
	case marker != "":
		if s.Marker, err = i.markerState(marker); err != nil {
			return s, err
		}
	}
	if s.Late, err = i.mayComeLate(ctx); err != nil {
		return s, err
	}
	s.Delay = i.facts.delay
	if err := i.awaitHeldBack(ctx, max(session.Delay, s.Delay)); err != nil {
		return s, err
	}
	i.changed = i.link.watch(i.queue, i.facts)
	if i.once {
		i.say(i.facts.note)
		return s, nil
	}
	if i.facts.note != "" {
		i.link.log.Warn("note about an inbox", "inbox", i.queue, "note", i.facts.note)
	}
	i.probation.began, i.probation.note = time.Now(), i.facts.note
	if !i.probation.on {
		i.recordReading()
	}
	return s, nil
}

// channel opens a new channel on the connection.
func (i *Inbox) channel() error {
	if i.ch != nil {
		i.ch.Close()
	}
	ch, err := i.awaitTurn()
	if err != nil {
		return err
	}
	i.ch = ch
	i.letters.forget() // drops the properties of deliveries that the client discarded with the last channel
	i.closed = ch.NotifyClose(make(chan *amqp.Error, 1))
	i.canceled = ch.NotifyCancel(make(chan string, 1))
	i.applied, i.tag = 0, 0
	return nil
}

// Close ends the session. Its unacknowledged letters go back to the queue.
func (i *Inbox) Close() {
	if i.conn != nil {
		i.conn.CloseDeadline(time.Now().Add(closeWait))
		i.conn, i.ch = nil, nil
		i.probation.end()
		i.say(joinReasons("the connection ended; connecting again", i.failure))
		i.failure = ""
	}
}

// Next waits for the first letter, and then collects letters until the window is full or the time
// for collecting is over. It returns the letters in delivery order without acknowledging them. The
// broker delivers no further letters until Ack is called.
//
// When ctx ends, Next returns the letters that it has collected. If there are none, it returns the
// error of ctx. In a drain that somebody requested, it returns no letters when the queue is empty.
func (i *Inbox) Next(ctx context.Context) ([]deadletter.Arrival, error) {
	for began := time.Now(); ; {
		n := i.prefetch
		if i.most > 0 {
			n = min(n, i.most)
		}
		w, err := i.window(ctx, fetch{
			letters: n,
			linger:  i.limits.Linger,
			full:    func(_ []deadletter.Arrival, bytes int) bool { return bytes >= i.limits.Bytes },
		})
		if err != nil {
			return nil, err
		}
		if len(w) > 0 {
			i.adaptPrefetch(len(w))
			return w, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if done, err := i.empty(began); done || err != nil {
			return nil, err
		}
		if err := i.channel(); err != nil {
			return nil, fmt.Errorf("inbox %s: %w", i.queue, err)
		}
	}
}

const (
	// time without a delivery after which dlo checks whether a queue that is drained once is empty
	onceQuiet = time.Second
	onceWait  = time.Minute // time without a delivery after which dlo gives up although the queue still has letters
)

// empty reports whether a drain that somebody requested has taken all letters of its queue. Letters
// that another consumer holds do not count. For an inbox, which is drained all the time, it always
// returns false.
func (i *Inbox) empty(since time.Time) (bool, error) {
	if !i.once {
		return false, nil
	}
	var q amqp.Queue
	err := onChannel(i.conn, func(ch *amqp.Channel) (err error) {
		q, err = ch.QueueDeclarePassive(i.queue, true, false, false, false, nil)
		return err
	})
	switch {
	case isCode(err, amqp.AccessRefused):
		// this user may not ask for the count, so a long time without a delivery decides
		return time.Since(since) > resumeQuiet, nil
	case isCode(err, amqp.NotFound):
		return false, newRefusal(deadletter.ErrNotFound, "queue %s is gone", deadletter.Visible(i.queue))
	case err != nil:
		return false, fmt.Errorf("look at %s: %w", i.queue, err)
	case q.Messages == 0:
		return true, nil
	case time.Since(since) > onceWait:
		return false, newRefusal(
			deadletter.ErrConflict,
			"%d messages are ready in %s, and the broker delivers none: another consumer may be its single active one, or have a higher priority. Stop it",
			q.Messages, deadletter.Visible(i.queue),
		)
	}
	return false, nil
}

// resumeQuiet is a time limit for Resume. When some letters of the window of an earlier session
// have come back, Resume waits this long for the rest of that window. If the rest does not arrive,
// the window counts as not returned.
const resumeQuiet = 30 * time.Second

// Resume is called if dlo stored a window in an earlier session, but does not know whether the
// broker processed the acknowledgement. This window is called the open window. Resume finds out
// whether its letters come back. They come back all together and before all other letters, or not
// at all (docs/reliability.md has the measurement). If dlo fetched the window with more than one
// request, the broker chooses the order of its letters.
//
// Resume waits until it is certain. If the result "whole" is true, the returned letters are the
// open window. Otherwise they are a window of other letters. Resume returns no letters if a queue
// that is drained once is empty.
func (i *Inbox) Resume(
	ctx context.Context, open []deadletter.Fingerprint,
) (w []deadletter.Arrival, whole bool, err error) {
	for began := time.Now(); ; {
		ours := lettersOf(open)
		// a letter that is not part of the open window decides it
		w, err = i.window(ctx, fetch{
			letters: len(open),
			linger:  resumeQuiet,
			sliding: true,
			full:    func(w []deadletter.Arrival, _ int) bool { return !ours(w) },
		})
		if err != nil {
			return nil, false, err
		}
		if len(w) > 0 {
			if len(w) < len(open) && ours(w) && ctx.Err() != nil {
				return nil, false, ctx.Err() // not decided yet: the letters go back to the queue with the session
			}
			return w, len(w) == len(open) && ours(w), nil
		}
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		if done, err := i.empty(began); err != nil || done && time.Since(began) > onceSettled {
			return nil, false, err
		}
		if err := i.channel(); err != nil {
			return nil, false, fmt.Errorf("inbox %s: %w", i.queue, err)
		}
	}
}

// lettersOf returns a function that checks the letters that a new session receives. The function
// reports whether each letter so far is flagged redelivered and belongs to the window of an earlier
// session. The parameter "open" contains the fingerprints of the letters in that window.
func lettersOf(open []deadletter.Fingerprint) func(w []deadletter.Arrival) bool {
	left := map[deadletter.Fingerprint]int{}
	for _, f := range open {
		left[f]++
	}
	seen, all := 0, true
	return func(w []deadletter.Arrival) bool {
		for ; seen < len(w); seen++ {
			left[w[seen].Fingerprint]--
			all = all && w[seen].Redelivered && left[w[seen].Fingerprint] >= 0
		}
		return all
	}
}

// onceSettled is a time limit for drains that somebody requested. An earlier drain may have left a
// window open. A window is a batch of letters that dlo takes out of a queue. If the queue has been
// empty for 5 s (onceSettled), dlo assumes that the broker will not return the letters of that
// window. A shorter time would be wrong, because a broker that has just started may not show its
// letters yet.
const onceSettled = 5 * time.Second

// redeliveredLeaks reports whether a broker may flag the first delivery of a letter as a
// redelivery. 4.0 (measured on 4.0.5) does so if a quorum queue dead-letters into another quorum
// queue. 4.3 (measured on 4.3.6) always does so. 4.1 and 4.2 were not measured and are treated like
// 4.3.
func redeliveredLeaks(version, kind string) bool {
	return atLeast(version, 4, 1) || atLeast(version, 4, 0) && kind != "classic"
}
