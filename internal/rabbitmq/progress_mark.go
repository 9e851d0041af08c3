package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

const markBack = 3 * time.Second // how long a killed process may still hold an expected mark

// Session returns the number of the current publishing connection, 0 while there is none.
func (l *Link) Session() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.publish.session
}

// ReadMark returns the progress that the broker holds for a store, or nil if it has no readable
// mark. It creates the mark's queue if needed. If a mark is expected and the queue is empty,
// ReadMark keeps looking for markBack. A process that was killed while it read the mark still holds
// the mark until the broker notices the closed connection.
//
// ReadMark uses its own connection. If a queue has no majority of its cluster, a get ends the
// connection with 541 after 13 s (3.10.8, 4.3.6), and that must not interrupt letters.
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

// readMark takes all marks in a mark's queue, and publishes the newest one again before it
// acknowledges them. Otherwise the queue would count the deliveries of the mark and drop it at the
// delivery limit, which is 20 on a quorum queue from 4.0 on.
func (l *Link) readMark(ctx context.Context, c *confirming, queue string, expected bool) (*deadletter.Progress, error) {
	if err := l.declareMark(c.ch, queue); err != nil {
		return nil, err
	}
	newest, last, err := takeMarks(c, queue)
	for began := time.Now(); expected && last == 0 && err == nil && time.Since(began) < markBack; newest, last, err = takeMarks(c, queue) {
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

// takeMarks takes all marks in a mark's queue. It returns the newest mark and the last delivery
// tag, 0 for none. The caller acknowledges that tag.
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

// declareMark declares the queue of a mark if it does not exist.
func (l *Link) declareMark(ch *amqp.Channel, queue string) error {
	_, err := ch.QueueDeclare(queue, true, false, false, false, amqp.Table{"x-queue-type": "quorum", "x-max-length": int32(1)})
	return err
}

// WriteMark records the progress of a store in the broker and waits for the confirm. It uses only
// the connection with the number session.
func (l *Link) WriteMark(ctx context.Context, session int64, p deadletter.Progress) error {
	l.marking.Lock()
	defer l.marking.Unlock()
	if l.markedIn == session && l.marked >= p.Commits {
		return nil // another worker has recorded it in the meantime
	}
	if l.Session() != session {
		return errOtherSession
	}
	err := l.onMarks(ctx, func(c *confirming) error {
		err := putMark(c, deadletter.MarkQueue(p.Store), p)
		switch {
		case errors.Is(err, errNoMarkQueue):
			if err := l.declareMark(c.ch, deadletter.MarkQueue(p.Store)); err != nil {
				return err
			}
			return putMark(c, deadletter.MarkQueue(p.Store), p)
		case errors.Is(err, errMarkRefused):
			return changeMark(c, deadletter.MarkQueue(p.Store), p)
		}
		return err
	})
	if err == nil {
		l.markedIn, l.marked = session, p.Commits
	}
	return err
}

var (
	errOtherSession = errors.New("the connection is another one by now")
	errNoMarkQueue  = errors.New("the queue of the mark is gone")
	errMarkRefused  = errors.New("the queue of the mark has refused it")
)

// changeMark writes a mark if a policy makes the full queue reject it (overflow: reject-publish; a
// policy overrides the argument, 3.10.8, 4.0.5, 4.3.6). It holds the old mark unacknowledged while
// it publishes the new one.
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

// putMark publishes a mark and waits for its confirm. If the mark is returned, the return precedes
// the confirm on the wire.
func putMark(c *confirming, queue string, p deadletter.Progress) error {
	confirm, err := c.ch.PublishWithDeferredConfirm("", queue, true, false, amqp.Publishing{DeliveryMode: amqp.Persistent, ContentType: "application/json", Body: p.Bytes()})
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

// onMarks calls fn with the channel reserved for marks. A reply may take a minute if a queue has no
// leader. When ctx ends, onMarks stops waiting, and the channel is not used again.
func (l *Link) onMarks(ctx context.Context, fn func(*confirming) error) error {
	c, err := l.markChannel()
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
		go c.ch.Close() // a silent queue delays the close for a minute
	}
	return err
}

func (l *Link) markChannel() (*confirming, error) {
	l.mu.Lock()
	session, c := l.publish.session, l.publish.mark
	l.mu.Unlock()
	if c != nil && !c.ch.IsClosed() {
		return c, nil
	}
	c, err := l.channel(true)
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
