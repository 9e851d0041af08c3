package rabbitmq

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// lockInbox makes sure that no other session drains the inbox. The other session could belong to
// another dlo, or it could be an earlier session whose end the broker has not noticed yet.
//
// An earlier session still holds the letters of its last window. A new session would receive the
// letters after that window, and would conclude that the window was acknowledged
// (window_return_test.go). The lock is an exclusive queue, which exists as long as this connection.
func (i *Inbox) lockInbox() error {
	sum := sha256.Sum256([]byte(i.queue)) // the name of the inbox itself may already have the maximum length
	lock := "dlo.epoch.lock." + hex.EncodeToString(sum[:16])
	err := onChannel(i.conn, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(lock, false, true, true, false, nil)
		return err
	})
	refused := i.link.noteRight("configure", epochQueues, err)
	if isCode(err, amqp.ResourceLocked) && i.holderAway(lock) {
		i.link.log.Warn(
			"the cluster node that holds the lock of the last session is down or cannot be reached; dlo continues without a lock",
			"inbox", i.queue,
		)
		i.unlocked = true
		return nil
	}
	switch {
	case isCode(err, amqp.ResourceLocked):
		return fmt.Errorf(
			"%s is being drained by another connection: another dlo, or our last one, whose end the broker has not noticed yet",
			deadletter.Visible(i.queue),
		)
	case refused:
		return nil // a user without configure permission on dlo.epoch.* has no protection against a second dlo
	}
	return err
}

// holderAway reports whether the lock belongs to a connection on a cluster node that is down or
// unreachable. 4.3.6 keeps the exclusive queue of such a connection until the node is back. 3.10.8
// and 4.0.5 delete the queue immediately. If a live connection holds the lock, the broker replies
// 405. If the node of the connection is down, 4.3.6 replies 404 after 65 s (cluster_test.go).
//
// If holderAway returns true, dlo can continue without the lock. Held reports whether the broker
// still holds letters for the earlier session, so dlo takes no letter twice. However, without the
// lock dlo does not notice another dlo that drains the same inbox.
func (i *Inbox) holderAway(lock string) bool {
	return isAway(awaitReply(func() error { return exists(i.conn, lock) }))
}

// awaitTurn returns a channel that reads the inbox when it is its turn. The turn comes when the
// broker has ended the last channel of an earlier session and requeued the letters of that channel.
// The exclusive queue of lockInbox ends with its connection, but the channels of the connection may
// live on for a moment and hold a window. Therefore each channel also reads a second queue
// exclusively. When the channel ends, the broker releases both this queue and the window. If the
// second queue is not available (no permission, its node is down, it was declared differently),
// only the lock of lockInbox protects the inbox. The second queue accepts no messages, because the
// broker would deliver them among the letters.
func (i *Inbox) awaitTurn() (*amqp.Channel, error) {
	if i.unlocked {
		// the queue of the turn is on the node that is away, where each request takes 65 s (4.0.5,
		// 4.3.6)
		return i.conn.Channel()
	}
	sum := sha256.Sum256([]byte(i.queue))
	queue := "dlo.epoch.turn." + hex.EncodeToString(sum[:16])
	args := amqp.Table{"x-queue-type": "classic", "x-max-length": int32(0), "x-overflow": "reject-publish"}
	for began := time.Now(); ; time.Sleep(turnTry) {
		ch, err := i.conn.Channel()
		if err != nil {
			return nil, err
		}
		err = awaitReply(func() error {
			_, err := ch.QueueDeclare(queue, true, true, false, false, args) // deleted together with its last consumer
			return err
		})
		if err == nil {
			_, err = ch.Consume(queue, "turn", true, true, false, false, nil)
			i.link.noteRight("read", epochQueues, err)
		}
		switch {
		case err == nil:
			return ch, nil
		case i.conn.IsClosed():
			return nil, err
		// The code below tries again in two cases, because the queue that serves as the lock will
		// soon be free. In the first case, the last consumer of this queue has just ended. In the
		// second case, an older dlo has declared the queue with other arguments, and that older
		// dlo will end.
		case (isCode(err, amqp.NotFound) && !isAway(err) || isCode(err, amqp.PreconditionFailed)) &&
			time.Since(began) < turnWait:
		case !isCode(err, amqp.AccessRefused) || !strings.Contains(err.Error(), "exclusive use"):
			// 3.10.8 reports it immediately, 4.0.5 and 4.3.6 only after 65 s, so dlo does not ask
			// again
			i.unlocked = isAway(err)
			return i.conn.Channel()
		case time.Since(began) > turnWait:
			return nil, fmt.Errorf(
				"the broker has not ended the last channel that read %s", deadletter.Visible(i.queue),
			)
		}
	}
}

const (
	turnTry  = 10 * time.Millisecond
	turnWait = 5 * time.Second
)
