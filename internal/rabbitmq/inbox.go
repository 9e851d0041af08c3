package rabbitmq

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// Limits bound a window.
type Limits struct {
	Letters int           // at most so many
	Bytes   int           // of bodies: reached = the window closes
	Linger  time.Duration // how long a window waits for more after its first letter
}

// firstPrefetch is where the adaptive prefetch of a session starts. RabbitMQ has no prefetch by bytes, so a first burst is at most this many of the largest bodies.
const firstPrefetch = 16

// Inbox drains one dead-letter queue, window by window: while a window is open nothing more is delivered, so after a crash only that window can come back.
// One goroutine uses it.
type Inbox struct {
	link     *Link
	queue    string
	limits   Limits
	backoff  backoff
	conn     *amqp.Connection
	ch       *amqp.Channel
	closed   chan *amqp.Error
	canceled chan string
	prefetch int
	applied  int // prefetch that the channel has
	consumes int
}

// Inbox returns the inbox of a dead-letter queue; nothing is connected yet.
func (l *Link) Inbox(queue string, limits Limits) *Inbox {
	return &Inbox{link: l, queue: queue, limits: limits}
}

// Open drops what is left of the session before and begins another, as often as it takes; marker is the one to look for, "" for none. It returns only with a
// session or with the error of ctx.
func (i *Inbox) Open(ctx context.Context, marker string) (deadletter.SessionFacts, error) {
	i.Close()
	if i.backoff.failures > 0 { // the last session ended before it delivered anything
		if err := sleep(ctx, i.backoff.next()); err != nil {
			return deadletter.SessionFacts{}, err
		}
	}
	for {
		s, err := i.open(ctx, marker)
		if err == nil {
			i.backoff.failures = 1 // until something is delivered
			i.link.inboxStatus(i.queue, true, "")
			i.link.log.Info("inbox connected", "inbox", i.queue)
			return s, nil
		}
		i.Close()
		if ctx.Err() != nil {
			return deadletter.SessionFacts{}, ctx.Err()
		}
		wait := i.backoff.next()
		if errors.Is(err, errNotDrained) {
			wait = max(wait, 10*time.Second) // a person has to act first
		}
		i.link.inboxStatus(i.queue, false, err.Error())
		i.link.log.Warn("inbox not connected", "inbox", i.queue, "err", err, "next_try", wait)
		if err := sleep(ctx, wait); err != nil {
			return deadletter.SessionFacts{}, err
		}
	}
}

func (i *Inbox) open(ctx context.Context, marker string) (deadletter.SessionFacts, error) {
	var s deadletter.SessionFacts
	var err error
	if i.conn, err = i.link.dial(ctx, "inbox "+i.queue); err != nil {
		return s, err
	}
	if err := i.alone(); err != nil {
		return s, err
	}
	facts, err := i.link.prepare(ctx, i.conn, i.queue)
	if err != nil {
		return s, err
	}
	version := i.link.Status().Version
	s.RedeliveredLeaks = atLeast(version, 4, 0)
	s.DeliveryCountTells = facts.quorum && atLeast(version, 4, 3)
	i.link.update(func(st *deadletter.BrokerStatus) {
		st.Notes = nil
		if facts.note != "" {
			st.Notes = []string{facts.note}
		}
	})
	if marker != "" {
		var found amqp.Queue
		err := onChannel(i.conn, func(ch *amqp.Channel) (err error) {
			found, err = ch.QueueDeclarePassive(marker, true, false, false, false, nil)
			return err
		})
		if err != nil && i.conn.IsClosed() {
			return s, err
		}
		s.MarkerGone = err != nil || found.Messages == 0 // also where it may not be asked: then every reconnect counts as a restart
	}
	return s, i.channel()
}

// alone makes sure that nobody else drains the inbox: neither another dlo nor a session of ours that the broker has not noticed the end of. Such a session would still hold the open
// window, and a new one that is served what comes after it would take the window for acknowledged (window_return_test.go). The lock is an exclusive queue, which lives and dies
// with this connection.
func (i *Inbox) alone() error {
	sum := sha256.Sum256([]byte(i.queue)) // a queue's name may be as long as a name can be
	lock := "dlo.epoch.lock." + hex.EncodeToString(sum[:16])
	err := onChannel(i.conn, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(lock, false, true, true, false, nil)
		return err
	})
	switch {
	case isCode(err, amqp.ResourceLocked):
		return fmt.Errorf("%s is being drained by another connection: another dlo, or our last one, whose end the broker has not noticed yet", deadletter.Visible(i.queue))
	case isCode(err, amqp.AccessRefused):
		return nil // a user without configure rights on dlo.epoch.*: nothing guards against a second one
	}
	return err
}

// Mark makes a marker that tells a restart of the broker from a lost connection: a durable classic queue with one transient message in it. A restart drops the message, a kill as well as
// a clean stop (measured on 3.10.8, 4.0.5, 4.3.6, restart_marker_test.go). A transient exchange would do on 3.10 and 4.0, but 4.3 keeps it.
//
// It has a connection of its own: a broker under a memory or disk alarm stops reading from connections that publish, and the acks of the inbox must still arrive. Without an answer
// within markWait there may be no marker, and the next reconnect counts as a restart.
func (i *Inbox) Mark(name string) error {
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), markWait)
	defer cancel()
	go func() { done <- i.mark(ctx, name) }()
	select {
	case err := <-done:
		if isCode(err, amqp.AccessRefused) {
			return nil // each reconnect will count as a restart
		}
		return err
	case <-ctx.Done():
		return nil
	}
}

const markWait = 5 * time.Second

func (i *Inbox) mark(ctx context.Context, name string) error {
	conn, err := i.link.dial(ctx, "marker "+i.queue)
	if err != nil {
		return err
	}
	go func() {
		<-ctx.Done()
		conn.CloseDeadline(time.Now().Add(time.Second)) // a blocked connection does not answer a plain close
	}()
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	if _, err := ch.QueueDeclare(name, true, false, false, false, amqp.Table{"x-queue-type": "classic"}); err != nil {
		return err
	}
	if err := ch.Confirm(false); err != nil {
		return err
	}
	confirm, err := ch.PublishWithDeferredConfirm("", name, true, false, amqp.Publishing{DeliveryMode: amqp.Transient, Body: []byte("Dead Letter Office leaves this here: when it is gone, the broker was restarted.")})
	if err != nil {
		return err
	}
	<-confirm.Done() // also when the connection ends
	return nil
}

// Unmark deletes a marker that is not needed any more; nothing happens where there is none.
func (i *Inbox) Unmark(name string) error {
	err := onChannel(i.conn, func(ch *amqp.Channel) error {
		_, err := ch.QueueDelete(name, false, false, false)
		return err
	})
	if isCode(err, amqp.AccessRefused) {
		return nil
	}
	return err
}

// channel begins a fresh channel on the connection.
func (i *Inbox) channel() error {
	if i.ch != nil {
		i.ch.Close()
	}
	ch, err := i.conn.Channel()
	if err != nil {
		return err
	}
	i.ch = ch
	i.closed = ch.NotifyClose(make(chan *amqp.Error, 1))
	i.canceled = ch.NotifyCancel(make(chan string, 1))
	i.prefetch, i.applied = min(firstPrefetch, i.limits.Letters), 0
	return nil
}

// Close ends the session; its unacknowledged letters go back to the queue.
func (i *Inbox) Close() {
	if i.conn != nil {
		i.conn.CloseDeadline(time.Now().Add(closeWait))
		i.conn, i.ch = nil, nil
		i.link.inboxStatus(i.queue, false, "the connection ended; connecting again")
	}
}

// Next blocks for the first letter, then takes what comes until the window is full or has lingered. The letters are in delivery order and unacknowledged, and nothing
// more is delivered until Ack. When ctx ends it returns the letters it has, or the error of ctx when it has none.
func (i *Inbox) Next(ctx context.Context) ([]deadletter.Arrival, error) {
	for {
		w, err := i.window(ctx, fetch{letters: i.prefetch, linger: i.limits.Linger, full: func(_ []deadletter.Arrival, bytes int) bool { return bytes >= i.limits.Bytes }})
		if err != nil {
			return nil, err
		}
		if len(w) > 0 {
			i.adapt(w)
			return w, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := i.channel(); err != nil {
			return nil, fmt.Errorf("inbox %s: %w", i.queue, err)
		}
	}
}

// adapt doubles the prefetch while full windows stay under a quarter of the byte bound, and halves it at once otherwise.
func (i *Inbox) adapt(w []deadletter.Arrival) {
	bytes := 0
	for k := range w {
		bytes += len(w[k].Body)
	}
	switch {
	case bytes >= i.limits.Bytes/4:
		i.prefetch = max(1, i.prefetch/2)
	case len(w) >= i.prefetch:
		i.prefetch = min(2*i.prefetch, i.limits.Letters)
	}
}

// resumeQuiet is how long some, but not all, letters of an open window may be alone before the window counts as not come back.
const resumeQuiet = 30 * time.Second

// Resume finds out whether the open window came back: whole, first and in order, or not at all (docs/reliability.md has the measurement). It waits until that is decided. The
// letters are the window itself when whole is true, else a window of other letters.
func (i *Inbox) Resume(ctx context.Context, open []deadletter.Fingerprint) (w []deadletter.Arrival, whole bool, err error) {
	equal := func(w []deadletter.Arrival) bool {
		for k := range w {
			if !w[k].Redelivered || w[k].Fingerprint != open[k] {
				return false
			}
		}
		return true
	}
	for {
		w, err = i.window(ctx, fetch{letters: len(open), linger: resumeQuiet, sliding: true, full: func(w []deadletter.Arrival, _ int) bool {
			last := len(w) - 1
			return !w[last].Redelivered || w[last].Fingerprint != open[last] // not the next row: decided at once
		}})
		if err != nil {
			return nil, false, err
		}
		if len(w) > 0 {
			if len(w) < len(open) && equal(w) && ctx.Err() != nil {
				return nil, false, ctx.Err() // not decided: the letters go back with the session
			}
			return w, len(w) == len(open) && equal(w), nil
		}
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		if err := i.channel(); err != nil {
			return nil, false, fmt.Errorf("inbox %s: %w", i.queue, err)
		}
	}
}

// fetch says which letters make a window.
type fetch struct {
	letters int                                          // at most, but for what arrives while the consumer is cancelled
	full    func(w []deadletter.Arrival, bytes int) bool // asked after each letter whether the window may close early
	linger  time.Duration                                // how long to wait for more
	sliding bool                                         // linger counts from the last letter, not from the first
}

// window consumes and cancels: what arrives before cancel-ok belongs to the window. Without a letter for the whole silence it is empty.
func (i *Inbox) window(ctx context.Context, f fetch) ([]deadletter.Arrival, error) {
	fail := func(err error) ([]deadletter.Arrival, error) { return nil, fmt.Errorf("inbox %s: %w", i.queue, err) }
	if err := i.fence(f.letters); err != nil {
		return fail(err)
	}
	i.consumes++
	tag := fmt.Sprintf("dlo-%d", i.consumes)
	deliveries, err := i.ch.Consume(i.queue, tag, false, false, false, false, nil)
	if err != nil {
		return fail(err)
	}
	var w []deadletter.Arrival
	bytes := 0
	take := func(d *amqp.Delivery) error {
		a, err := arrival(d)
		if err != nil {
			return fmt.Errorf("delivery %d: %w", d.DeliveryTag, err)
		}
		w = append(w, a)
		bytes += len(d.Body)
		return nil
	}
	timer := time.NewTimer(silence)
	defer timer.Stop()
	for open := true; open && len(w) < f.letters; {
		select {
		case d, ok := <-deliveries:
			if !ok {
				return fail(i.ended())
			}
			if err := take(&d); err != nil {
				return fail(err)
			}
			if len(w) == 1 || f.sliding {
				timer.Reset(f.linger)
			}
			open = !f.full(w, bytes)
		case <-timer.C:
			open = false
		case <-i.canceled:
			return fail(errors.New("the broker cancelled the consumer"))
		case <-ctx.Done():
			open = false
		}
	}
	if err := i.ch.Cancel(tag, false); err != nil {
		return fail(err)
	}
	for d := range deliveries { // ends with cancel-ok
		if err := take(&d); err != nil {
			return fail(err)
		}
	}
	select { // a session that died meanwhile closes the deliveries too, and may have swallowed some
	case err := <-i.closed:
		return fail(closeError(err))
	default:
	}
	if len(w) > 0 {
		i.backoff.failures = 0
	}
	return w, nil
}

// Ack acknowledges a window and fences: when it returns nil the broker has processed the ack, so that nothing of the window can come back while the broker lives.
func (i *Inbox) Ack(w []deadletter.Arrival) error {
	if err := i.ch.Ack(w[len(w)-1].Tag, true); err != nil {
		return fmt.Errorf("ack %d letters of %s: %w", len(w), i.queue, err)
	}
	return nil
}

// Fence makes sure that the broker has processed the ack before: a synchronous round trip on the same channel.
func (i *Inbox) Fence() error {
	i.applied = 0
	if err := i.fence(i.prefetch); err != nil {
		return fmt.Errorf("fence after the ack of %s: %w", i.queue, err)
	}
	return nil
}

// fence sets the prefetch of the next consumer, by a round trip that is left out where nothing would change.
func (i *Inbox) fence(n int) error {
	if i.applied == n {
		return nil
	}
	if err := i.ch.Qos(n, 0, false); err != nil {
		return err
	}
	i.applied = n
	return nil
}

func (i *Inbox) ended() error {
	select {
	case err := <-i.closed:
		return closeError(err)
	case <-time.After(time.Second):
		return errors.New("the consumer ended")
	}
}

func closeError(err *amqp.Error) error {
	if err == nil {
		return amqp.ErrClosed
	}
	return err
}
