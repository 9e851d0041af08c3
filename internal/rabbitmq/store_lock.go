package rabbitmq

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// LockStore makes sure that no other dlo sends letters from this store, or from a copy of it, to
// this broker. The lock is an exclusive queue of the publishing connection. A dlo that loses the
// lock therefore cannot send either, for example because it was stopped for longer than the broker
// waits for its heartbeats. The parameter "session" is the number of the connection.
//
// It returns nil if this dlo has the lock. The error is a deadletter.StoreTwice if a live
// connection holds it. It wraps deadletter.ErrUnguarded if there can be no lock. Any other error
// means that the broker did not answer. LockStore may be called again to wait for that answer.
// There may be only one call at a time. The name is that of the lock (deadletter.Remembered).
func (l *Link) LockStore(ctx context.Context, session int64, name string) error {
	conn, err := l.connection(session)
	if err != nil {
		return err
	}
	if l.locking == nil || l.locking.conn != conn {
		l.locking = &locking{conn: conn, done: make(chan error, 1)}
		go func(done chan<- error) { done <- l.lockStore(conn, name) }(l.locking.done)
	}
	select {
	case err := <-l.locking.done:
		l.locking = nil
		return err
	case <-ctx.Done():
		return fmt.Errorf("no answer: %w", ctx.Err())
	}
}

// locking is a request for the lock of the store to which the broker has not replied yet.
type locking struct {
	conn *amqp.Connection
	done chan error
}

func (l *Link) lockStore(conn *amqp.Connection, lock string) error {
	sum := sha256.Sum256([]byte(lock))
	name := "dlo.epoch.send." + hex.EncodeToString(sum[:16])
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	_, err = ch.QueueDeclare(name, false, false, true, false, amqp.Table{
		"x-max-length": int32(0), "x-overflow": "reject-publish",
	})
	l.noteRight("configure", epochQueues, err)
	switch {
	case err == nil:
		l.watchLock(conn, ch, name)
		return nil
	case conn.IsClosed():
		return err
	case isCode(err, amqp.ResourceLocked) && !isAway(awaitReply(func() error { return exists(conn, name) })):
		// holderAway says what it replies
		return deadletter.StoreTwice(l.lockHolder(name))
	}
	return fmt.Errorf("%w: %s", deadletter.ErrUnguarded, brokerReason(err))
}

// watchLock ends the publishing connection if the lock goes while the connection lives on, for
// example because somebody deletes the queue. Its consumer also keeps a policy with the key expires
// from deleting the queue. A user who may not read dlo.epoch.* has a lock without a watch.
func (l *Link) watchLock(conn *amqp.Connection, ch *amqp.Channel, name string) {
	messages, err := ch.Consume(name, "lock", true, true, false, false, nil)
	l.noteRight("read", epochQueues, err)
	if err != nil {
		return
	}
	go func() {
		for range messages { // the queue accepts none
		}
		conn.CloseDeadline(time.Now().Add(closeWait))
	}()
}

// UnlockStore gives the lock of the store back by ending the publishing connection.
func (l *Link) UnlockStore(session int64) {
	if conn, err := l.connection(session); err == nil {
		conn.CloseDeadline(time.Now().Add(closeWait))
	}
}

// holderWait is how long dlo asks about the connection that has the lock.
const holderWait = 2 * time.Second

// lockHolder returns what the management API says about the connection that holds the lock of the
// store: where it comes from, and since when it exists. If nothing is known, it says so.
func (l *Link) lockHolder(name string) string {
	const unknown = "The broker does not say where the other dlo runs"
	if l.management.Load() == nil {
		return unknown + ", because management of the broker is not set."
	}
	var queue struct {
		Owner struct {
			Name string `json:"name"`
			Host string `json:"peer_host"`
			Port int    `json:"peer_port"`
		} `json:"owner_pid_details"`
	}
	var conn struct {
		User  string `json:"user"`
		Since int64  `json:"connected_at"` // milliseconds since 1970
	}
	ctx, cancel := context.WithTimeout(context.Background(), holderWait)
	defer cancel()
	err := l.management.Load().get(ctx, "/api/queues/"+url.PathEscape(l.vhost)+"/"+url.PathEscape(name), &queue)
	if err == nil {
		err = l.management.Load().get(ctx, "/api/connections/"+url.PathEscape(queue.Owner.Name), &conn)
	}
	if err != nil || queue.Owner.Host == "" {
		return unknown + "."
	}
	return fmt.Sprintf(
		"The other dlo is connected from %s, port %d, as user %s since %s UTC.", deadletter.Visible(queue.Owner.Host),
		queue.Owner.Port, deadletter.Visible(conn.User), time.UnixMilli(conn.Since).UTC().Format(time.DateTime),
	)
}
