package rabbitmq

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// publisher holds the publishing connection and its idle channels.
type publisher struct {
	conn    *amqp.Connection
	blocked bool
	refused bool        // the user may not publish
	session int64       // number of the current connection, counted from 1
	mark    *confirming // the channel for marks; nil = none is open
	idle    []*confirming
	stands  map[deadletter.Wait]bool // wait queues that were declared over this connection
}

// confirming is a channel in confirm mode. Only one Publish at a time uses it.
type confirming struct {
	ch    *amqp.Channel
	frame int // the largest frame that the broker accepts, in bytes
	// has room for the returns of all messages in flight, so that the client's reader never blocks
	returns chan amqp.Return
	closed  chan *amqp.Error
}

// steady is how long a connection must live so that earlier failures are forgotten. If a connection
// that lived longer ends, the back-off starts from the beginning.
const steady = 10 * time.Second

// Run keeps the publishing connection open until ctx ends.
func (l *Link) Run(ctx context.Context) error {
	var b backoff
	for ctx.Err() == nil {
		asked := l.tryRequests()
		conn, err := l.dial(ctx, "publisher")
		if err == nil {
			began := time.Now()
			l.log.Info("publisher connected", "version", l.Status().Version)
			err = l.publishUntilClosed(ctx, conn)
			if time.Since(began) > steady {
				b.failures = 0
			}
		}
		if ctx.Err() != nil {
			break
		}
		wait := b.next()
		l.updateStatus(func(s *deadletter.BrokerStatus) {
			if s.Connected || s.Reason == "" {
				s.Since = time.Now()
			}
			s.Connected, s.Blocked, s.Reason, s.NextTry = false, "", err.Error(), time.Now().Add(wait)
			l.recordTry()
		})
		l.log.Warn("publisher not connected", "err", err, "next_try", wait)
		b.waitOrAsked(ctx, wait, asked)
	}
	return nil
}

// publishUntilClosed makes a connection available for publishing until the connection ends. The
// result is the reason why the connection ended.
func (l *Link) publishUntilClosed(ctx context.Context, conn *amqp.Connection) error {
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	blocked := conn.NotifyBlocked(make(chan amqp.Blocking, 8))
	set := func(p publisher, status func(*deadletter.BrokerStatus)) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.publish = p
		status(&l.status)
		close(l.changed)
		l.changed = make(chan struct{})
	}
	refused := !l.mayWrite(ctx, conn)
	l.mu.Lock()
	l.sessions++
	session := l.sessions
	l.mu.Unlock()
	set(publisher{
		conn:    conn,
		session: session,
		refused: refused,
		stands:  map[deadletter.Wait]bool{},
	}, func(s *deadletter.BrokerStatus) {
		s.Connected, s.Reason, s.Blocked, s.Since, s.NextTry = true, "", "", time.Now(), time.Time{}
		l.recordTry()
	})
	looking, stop := context.WithCancel(ctx)
	var looks sync.WaitGroup
	looks.Go(func() { l.lookAfter(looking) })
	looks.Go(func() { l.watchPermission(looking, conn) })
	defer func() {
		stop()
		looks.Wait()
		set(publisher{}, func(s *deadletter.BrokerStatus) {
			s.Connected, s.Since, s.Reason = false, time.Now(), "the connection ended"
		})
		conn.CloseDeadline(time.Now().Add(closeWait))
	}()
	for {
		select {
		case err := <-closed:
			return closeError(err)
		case b, ok := <-blocked:
			if !ok {
				return amqp.ErrClosed
			}
			l.mu.Lock()
			l.publish.blocked = b.Active
			l.status.Blocked = ""
			if b.Active {
				l.status.Blocked = deadletter.Visible(b.Reason)
			}
			close(l.changed)
			l.changed = make(chan struct{})
			l.mu.Unlock()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watchPermission checks again and again, until ctx ends, whether a user who may not publish has
// been given the permission.
func (l *Link) watchPermission(ctx context.Context, conn *amqp.Connection) {
	var b backoff
	for wait := backoffFirst; sleep(ctx, wait) == nil; {
		l.mu.Lock()
		refused := l.publish.refused
		l.mu.Unlock()
		switch {
		case !refused:
			wait, b = backoffFirst, backoff{}
		case l.mayWrite(ctx, conn):
			l.setRefused(false)
		default:
			wait = min(b.next(), rightAgain)
		}
	}
}

// setRefused records whether the broker refuses this user the permission to publish.
func (l *Link) setRefused(refused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.publish.refused = refused
	close(l.changed)
	l.changed = make(chan struct{})
}

// Ready waits until the broker is connected and accepts messages from this user.
func (l *Link) Ready(ctx context.Context) error {
	for {
		l.mu.Lock()
		ready, changed := l.publish.conn != nil && !l.publish.blocked && !l.publish.refused, l.changed
		l.mu.Unlock()
		if ready {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// channel returns an idle channel of a session. If there is none, it opens one. If the parameter
// "alone" is true, it opens a channel that is neither shared nor used again.
func (l *Link) channel(session int64, alone bool) (*confirming, error) {
	l.mu.Lock()
	if n := len(l.publish.idle); n > 0 && !alone && l.publish.session == session {
		c := l.publish.idle[n-1]
		l.publish.idle = l.publish.idle[:n-1]
		l.mu.Unlock()
		return c, nil
	}
	l.mu.Unlock()
	conn, err := l.connection(session)
	if err != nil {
		return nil, err
	}
	return confirmingOn(conn, l.broker.InFlight)
}

// connection returns the publishing connection, if it still belongs to the given session.
func (l *Link) connection(session int64) (*amqp.Connection, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.publish.conn == nil:
		return nil, errors.New("the broker is not connected")
	case l.publish.session != session:
		return nil, errOtherSession
	}
	return l.publish.conn, nil
}

// confirmingOn opens a channel in confirm mode. The channel has room for as many returned messages
// as "inFlight" says.
func confirmingOn(conn *amqp.Connection, inFlight int) (*confirming, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	if err := ch.Confirm(false); err != nil {
		return nil, err
	}
	return &confirming{
		ch:      ch,
		frame:   conn.Config.FrameSize,
		returns: ch.NotifyReturn(make(chan amqp.Return, inFlight)),
		closed:  ch.NotifyClose(make(chan *amqp.Error, 1)),
	}, nil
}

// release makes a channel available for the next Publish, if the channel still belongs to the
// current connection.
func (l *Link) release(c *confirming) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.publish.conn == nil || c.ch.IsClosed() {
		return
	}
	l.publish.idle = append(l.publish.idle, c)
}
