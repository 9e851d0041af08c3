package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

const markBack = 3 * time.Second // how long a killed process may still hold the mark that a caller expects

// Session returns the number of the current publishing connection, or 0 if there is none.
func (l *Link) Session() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.publish.session
}

// ReadMark returns the progress that the broker holds for a store. It returns nil if there is no
// mark that can be read. It creates the mark's queue if needed.
//
// The parameter "expected" is true if the caller knows that there is a mark. If the queue is empty
// nevertheless, ReadMark looks for the mark again and again for 3 s (markBack). This is necessary
// because a process that was killed while it read the mark still holds the mark, until the broker
// notices the closed connection.
//
// ReadMark uses its own connection. If the mark's queue has no majority in its cluster, a get ends
// the connection with 541 after 13 s (3.10.8, 4.3.6), and that must not affect the publishing of
// letters.
func (l *Link) ReadMark(ctx context.Context, store string, expected bool) (*deadletter.Progress, error) {
	l.marking.Lock()
	defer l.marking.Unlock()
	conn, err := l.dial(ctx, "mark")
	if err != nil {
		return nil, err
	}
	defer func() { go conn.CloseDeadline(time.Now().Add(closeWait)) }()
	type answer struct {
		found *deadletter.Progress
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		c, err := confirmingOn(conn, 1)
		if err != nil {
			done <- answer{nil, err}
			return
		}
		found, err := l.readMark(ctx, c, deadletter.MarkQueue(store), expected)
		done <- answer{found, err}
	}()
	select {
	case a := <-done:
		return a.found, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("no answer: %w", ctx.Err())
	}
}

// readMark reads the mark of a store, which is a message in the broker that records how far the
// store had got. It takes all messages from the mark's queue, and publishes the newest mark again
// before it acknowledges them. If it only returned the mark to the queue, the queue would count the
// deliveries of the mark. It would drop the mark at the delivery limit, which is 20 for a quorum
// queue from 4.0 on.
func (l *Link) readMark(ctx context.Context, c *confirming, queue string, expected bool) (*deadletter.Progress, error) {
	if _, err := l.declareMark(c.ch, queue); err != nil {
		return nil, err
	}
	newest, last, err := takeMarks(c, queue)
	for began := time.Now(); expected && last == 0 && err == nil &&
		time.Since(began) < markBack; newest, last, err = takeMarks(
		c, queue,
	) {
		if err := sleep(ctx, markBack/30); err != nil {
			return nil, err
		}
	}
	if err != nil || last == 0 {
		return nil, err
	}
	if newest != nil {
		if err := putMark(c, queue, *newest); err != nil {
			return nil, err
		}
	}
	return newest, c.ch.Ack(last, true)
}

// takeMarks takes all messages from the queue of a store's mark. The mark is the message that
// records how far the store had got. takeMarks returns the newest mark, and the delivery tag of the
// last message for the caller to acknowledge. The tag is 0 if there was no message.
func takeMarks(c *confirming, queue string) (newest *deadletter.Progress, last uint64, err error) {
	for {
		d, ok, err := c.ch.Get(queue, false)
		if err != nil || !ok {
			return newest, last, err
		}
		last = d.DeliveryTag
		if p, err := deadletter.ParseProgress(d.Body); err == nil && (newest == nil || p.Claims > newest.Claims) {
			newest = &p
		}
	}
}

func (l *Link) declareMark(ch *amqp.Channel, queue string) (amqp.Queue, error) {
	args := amqp.Table{"x-queue-type": "quorum", "x-max-length": int32(1)}
	return ch.QueueDeclare(queue, true, false, false, false, args)
}

// WriteMark records the progress of a store in the broker and waits for the confirm. The parameter
// "session" is the number of a publishing connection. If this is not the current connection,
// WriteMark fails. It never writes the mark over another connection.
func (l *Link) WriteMark(ctx context.Context, session int64, p deadletter.Progress) error {
	l.marking.Lock()
	defer l.marking.Unlock()
	if l.markedIn == session && l.marked >= p.Commits {
		return nil // another worker has recorded it in the meantime
	}
	gone := false
	queue := deadletter.MarkQueue(p.Store)
	err := l.onMarks(ctx, session, func(c *confirming) error {
		if l.markedIn == session {
			q, err := l.declareMark(c.ch, queue)
			if err != nil {
				return err
			}
			gone = q.Messages == 0
		}
		err := putMark(c, queue, p)
		switch {
		case errors.Is(err, errNoMarkQueue):
			if _, err := l.declareMark(c.ch, queue); err != nil {
				return err
			}
			return putMark(c, queue, p)
		case errors.Is(err, errMarkRefused):
			return changeMark(c, queue, p)
		}
		return err
	})
	if err != nil {
		return err
	}
	l.markedIn, l.marked = session, p.Commits
	if gone { // a queue without a leader also reports 0 messages, but it would not have confirmed the mark
		l.recordEvent(deadletter.Problem{
			Kind: deadletter.ProblemOwnQueue, Severity: deadletter.SeverityNotify, Queue: queue,
			Title: "The mark of this store was gone from broker " + l.broker.Name + ".",
			Text: "Its queue was deleted or purged, or a policy let the mark expire. dlo writes the mark again. " +
				"Without the mark, only the note beside the store shows whether the store is an older copy.",
			Cure: "Find out who deletes or purges queues, and whether a policy lets them expire.",
		})
	}
	return nil
}

var (
	errOtherSession = errors.New("the connection is another one by now")
	errNoMarkQueue  = errors.New("the queue of the mark is gone")
	errMarkRefused  = errors.New("the queue of the mark has refused it")
)

// changeMark replaces the mark of a store, which is the only message in its queue. It is used if
// the queue is full and therefore rejects a second message. A policy with overflow reject-publish
// can cause this, because it overrides the argument of the queue (3.10.8, 4.0.5, 4.3.6). changeMark
// holds the old mark unacknowledged while it publishes the new one.
func changeMark(c *confirming, queue string, p deadletter.Progress) error {
	_, last, err := takeMarks(c, queue)
	if err != nil {
		return err
	}
	if err := putMark(c, queue, p); err != nil || last == 0 {
		return err
	}
	return c.ch.Ack(last, true)
}

// putMark publishes the mark of a store, which is a message that records how far the store has got.
// It waits for the confirm. If the broker cannot route the mark, it returns the mark before it
// sends the confirm.
func putMark(c *confirming, queue string, p deadletter.Progress) error {
	confirm, err := c.ch.PublishWithDeferredConfirm("", queue, true, false, amqp.Publishing{
		DeliveryMode: amqp.Persistent,
		ContentType:  "application/json",
		Body:         p.Bytes(),
	})
	if err != nil {
		return err
	}
	acked := confirm.Wait()
	select {
	case <-c.returns:
		return errNoMarkQueue
	default:
	}
	if !acked {
		return errMarkRefused
	}
	return nil
}

// onMarks calls fn with the channel that is reserved for the marks of stores. A mark is a message
// that records how far a store has got. If the queue of the marks has no leader, a reply may take a
// minute. Therefore onMarks stops waiting when ctx ends, and the channel is then not used again.
func (l *Link) onMarks(ctx context.Context, session int64, fn func(*confirming) error) error {
	c, err := l.markChannel(session)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- fn(c) }()
	select {
	case err = <-done:
	case <-ctx.Done():
		err = fmt.Errorf("no answer: %w", ctx.Err())
	}
	if err != nil {
		l.mu.Lock()
		if l.publish.mark == c {
			l.publish.mark = nil
		}
		l.mu.Unlock()
		go c.ch.Close() // if the queue does not respond, the close takes a minute
	}
	return err
}

func (l *Link) markChannel(session int64) (*confirming, error) {
	l.mu.Lock()
	now, c := l.publish.session, l.publish.mark
	l.mu.Unlock()
	if now == session && c != nil && !c.ch.IsClosed() {
		return c, nil
	}
	c, err := l.channel(session, true)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.publish.session == session {
		l.publish.mark = c
	}
	return c, nil
}
