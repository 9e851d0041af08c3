package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// Limits bound a window.
type Limits struct {
	Letters int           // at most so many
	Bytes   int           // that its letters take in memory, headers included: reached = the window closes
	Linger  time.Duration // how long a window waits for more after its first letter
}

// firstPrefetch is where the adaptive prefetch of an inbox starts. RabbitMQ has no prefetch by
// bytes, so a first burst is at most this many of the largest letters.
const firstPrefetch = 16

// Inbox drains one dead-letter queue, window by window: while a window is open nothing more is
// delivered, so after a crash only that window can come back. One goroutine uses it.
type Inbox struct {
	link      *Link
	queue     string
	limits    Limits
	once      bool                                       // it ends when the queue is empty
	most      int                                        // letters of a window, of what the caller still wants; 0 = no such bound
	say       func(text string)                          // told why nothing is read now; "" when something is
	failure   string                                     // why the session ended, in words
	fruitless backoff                                    // of sessions that settle no window; a broker that is away does not count
	sleep     func(context.Context, time.Duration) error // after fruitless sessions
	conn      *amqp.Connection
	letters   *letterConn // the same, below the client
	ch        *amqp.Channel
	closed    chan *amqp.Error
	canceled  chan string
	prefetch  int
	applied   int // prefetch that the channel has
	consumes  int
	tag       uint64 // of the last delivery of the channel
	taken     int    // bytes that the newest window takes in memory
	locked    bool   // the broker refuses a get
	facts     inboxFacts
	away      bool  // the node of a classic inbox was away since a window was settled
	unlocked  bool  // the lock, or the queue of the turn, is on a cluster node that is away
	scarce    bool  // a letter that is not settled yet has one delivery left
	spent     int64 // deliveries of a letter, of which people were told
	trial     trial
}

// Inbox returns the inbox of a dead-letter queue; nothing is connected yet.
func (l *Link) Inbox(queue string, limits Limits) *Inbox {
	i := &Inbox{link: l, queue: queue, limits: limits, sleep: sleep, trial: trial{proof: steady}}
	i.say = func(text string) { l.inboxStatus(queue, false, text) }
	return i
}

// Once returns a queue that is drained once: Next returns no letters when it is empty, and Open
// gives up on a queue that cannot be drained. say is told in words what keeps it from being read,
// and "" when nothing does.
func (l *Link) Once(queue string, limits Limits, say func(text string)) *Inbox {
	return &Inbox{link: l, queue: queue, limits: limits, once: true, say: say, sleep: sleep, trial: trial{proof: steady}}
}

// Limit bounds the next windows to n letters.
func (i *Inbox) Limit(n int) { i.most = n }

// Prefetch returns how many letters the broker may have out at once: those of the newest window
// until they are acknowledged, or those of the next one.
func (i *Inbox) Prefetch() int { return max(i.prefetch, i.applied) }

// Open drops what is left of the session before and begins another, as often as it takes; marker is
// the one to look for, "" for none. prefetch is how many letters earlier sessions may have had out
// at once: the first window takes them all, as on a quorum queue what comes back stands behind what
// came back before (returned_order_test.go), and a window that came back must come first. It
// returns only with a session or with the error of ctx.
func (i *Inbox) Open(ctx context.Context, marker string, prefetch int) (deadletter.SessionFacts, error) {
	i.Close()
	if i.fruitless.failures > 0 { // no window has been settled since the last session began
		if err := i.sleep(ctx, i.rest()); err != nil {
			return deadletter.SessionFacts{}, err
		}
	}
	for away := (backoff{}); ; {
		i.prefetch = min(max(firstPrefetch, prefetch), i.limits.Letters)
		asked := i.link.asked()
		s, err := i.open(ctx, marker)
		if err == nil {
			i.fruitless.failures = max(1, i.fruitless.failures) // until a window is settled: a letter that ends every session must not be asked for faster and faster
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
			wait = max(wait, 10*time.Second) // a person has to act first
		}
		i.say(err.Error())
		i.link.log.Warn("inbox not connected", "inbox", i.queue, "err", err, "next_try", wait)
		if err := away.until(ctx, wait, asked); err != nil {
			return deadletter.SessionFacts{}, err
		}
	}
}

func (i *Inbox) open(ctx context.Context, marker string) (deadletter.SessionFacts, error) {
	var s deadletter.SessionFacts
	var err error
	if i.conn, i.letters, err = i.link.dialReading(ctx, "inbox "+i.queue); err != nil {
		return s, err
	}
	i.unlocked = false
	if err := i.alone(); err != nil {
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
	s.DeliveryCountTells = s.FirstReturnCounted && atLeast(version, 4, 3)
	if err := i.channel(); err != nil {
		return s, err
	}
	switch {
	case marker != "" && i.unlocked:
		s.Marker = deadletter.MarkerUnknown // likely on the node that is away, where each question takes 65 s (4.0.5, 4.3.6)
	case marker != "":
		if s.Marker, err = i.marked(marker); err != nil {
			return s, err
		}
	}
	if s.Late, err = i.late(ctx); err != nil {
		return s, err
	}
	if i.once {
		i.say(i.facts.note)
		return s, nil
	}
	if i.facts.note != "" {
		i.link.log.Warn("inbox", "inbox", i.queue, "note", i.facts.note)
	}
	i.trial.began, i.trial.note = time.Now(), i.facts.note
	if !i.trial.doubted {
		i.reads()
	}
	return s, nil
}

// channel begins a fresh channel on the connection.
func (i *Inbox) channel() error {
	if i.ch != nil {
		i.ch.Close()
	}
	ch, err := i.turn()
	if err != nil {
		return err
	}
	i.ch = ch
	i.letters.forget() // of deliveries of the last channel that the client dropped
	i.closed = ch.NotifyClose(make(chan *amqp.Error, 1))
	i.canceled = ch.NotifyCancel(make(chan string, 1))
	i.applied, i.tag = 0, 0
	return nil
}

// Close ends the session; its unacknowledged letters go back to the queue.
func (i *Inbox) Close() {
	if i.conn != nil {
		i.conn.CloseDeadline(time.Now().Add(closeWait))
		i.conn, i.ch = nil, nil
		i.trial.end()
		i.say(join("the connection ended; connecting again", i.failure))
		i.failure = ""
	}
}

// Next blocks for the first letter, then takes what comes until the window is full or has lingered.
// The letters are in delivery order and unacknowledged, and nothing more is delivered until Ack.
// When ctx ends it returns the letters it has, or the error of ctx when it has none. Of a queue
// that is drained once it returns none when the queue is empty.
func (i *Inbox) Next(ctx context.Context) ([]deadletter.Arrival, error) {
	for began := time.Now(); ; {
		n := i.prefetch
		if i.most > 0 {
			n = min(n, i.most)
		}
		w, err := i.window(ctx, fetch{letters: n, linger: i.limits.Linger, full: func(_ []deadletter.Arrival, bytes int) bool { return bytes >= i.limits.Bytes }})
		if err != nil {
			return nil, err
		}
		if len(w) > 0 {
			i.adapt(len(w))
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
	onceQuiet = time.Second // without a delivery: look whether a queue that is drained once is empty
	onceWait  = time.Minute // letters are there, but none is delivered: give up
)

// empty says that a queue which is drained once has nothing more. What is in another consumer's
// hands is not there. An inbox is never empty for good.
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
		return time.Since(since) > resumeQuiet, nil // nobody says how many are there; so long a silence does
	case isCode(err, amqp.NotFound):
		return false, refuse(deadletter.ErrNotFound, "queue %s is gone", deadletter.Visible(i.queue))
	case err != nil:
		return false, fmt.Errorf("look at %s: %w", i.queue, err)
	case q.Messages == 0:
		return true, nil
	case time.Since(since) > onceWait:
		return false, refuse(deadletter.ErrConflict, "%d messages are ready in %s, and the broker delivers none: another consumer may be its single active one, or have a higher priority. Stop it",
			q.Messages, deadletter.Visible(i.queue))
	}
	return false, nil
}

// resumeQuiet is how long some, but not all, letters of an open window may be alone before the
// window counts as not come back.
const resumeQuiet = 30 * time.Second

// Resume finds out whether the open window came back: whole and before all others, or not at all
// (docs/reliability.md has the measurement). In what order it comes back is the broker's choice
// where it was taken by more than one request. It waits until that is decided. The letters are the
// window itself when whole is true, else a window of other letters; none where a queue that is
// drained once is empty.
func (i *Inbox) Resume(ctx context.Context, open []deadletter.Fingerprint) (w []deadletter.Arrival, whole bool, err error) {
	for began := time.Now(); ; {
		ours := lettersOf(open)
		w, err = i.window(ctx, fetch{letters: len(open), linger: resumeQuiet, sliding: true, full: func(w []deadletter.Arrival, _ int) bool { return !ours(w) }}) // one that is not: decided
		if err != nil {
			return nil, false, err
		}
		if len(w) > 0 {
			if len(w) < len(open) && ours(w) && ctx.Err() != nil {
				return nil, false, ctx.Err() // not decided: the letters go back with the session
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

// lettersOf returns whether all letters of a growing window are letters of the open one, delivered
// again.
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

// onceSettled is how long a queue has to be empty before an open window of it counts as not come
// back: a broker that has just started may not show yet what it holds.
const onceSettled = 5 * time.Second

// redeliveredLeaks says whether a server may flag the first delivery of a letter as a redelivery.
// 4.0 does so where a quorum queue dead-letters into another, 4.3 everywhere (4.0.5, 4.3.6); 4.1
// and 4.2 were not measured.
func redeliveredLeaks(version, kind string) bool {
	return atLeast(version, 4, 1) || atLeast(version, 4, 0) && kind != "classic"
}
