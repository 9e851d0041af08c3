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

// alone makes sure that nobody else drains the inbox: neither another dlo nor a session of ours
// that the broker has not noticed the end of. Such a session would still hold the open window, and
// a new one that is served what comes after it would take the window for acknowledged
// (window_return_test.go). The lock is an exclusive queue, which lives and dies with this
// connection.
func (i *Inbox) alone() error {
	sum := sha256.Sum256([]byte(i.queue)) // a queue's name may be as long as a name can be
	lock := "dlo.epoch.lock." + hex.EncodeToString(sum[:16])
	err := onChannel(i.conn, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(lock, false, true, true, false, nil)
		return err
	})
	refused := i.link.right("configure", epochQueues, err)
	if isCode(err, amqp.ResourceLocked) && i.holderAway(lock) {
		i.link.log.Warn("the cluster node of the last session is down or cannot be reached, and with it its lock; going on without a lock", "inbox", i.queue)
		i.unlocked = true
		return nil
	}
	switch {
	case isCode(err, amqp.ResourceLocked):
		return fmt.Errorf("%s is being drained by another connection: another dlo, or our last one, whose end the broker has not noticed yet", deadletter.Visible(i.queue))
	case refused:
		return nil // a user without configure rights on dlo.epoch.*: nothing guards against a second one
	}
	return err
}

// holderAway says that the lock is of a connection to a cluster node that is down, or cannot be
// reached. 4.3.6 keeps the exclusive queue of such a connection until the node is back; 3.10.8 and
// 4.0.5 delete it at once. A lock that is held by a connection that lives answers 405; 4.3.6 takes
// 65 s to answer 404 for one whose node is down (cluster_test.go). What that session had in hand is
// told by Held, so no letter is taken twice; only another dlo would not be noticed.
func (i *Inbox) holderAway(lock string) bool {
	return isAway(answer(func() error { return exists(i.conn, lock) }))
}

// turn returns a channel on which the inbox is read in its turn: after the broker has ended the
// last channel of an earlier session, and put what that one had back. The exclusive queue of alone
// goes with a connection, whose channels may live on for a moment with a window in their hands. A
// queue that each channel reads exclusively is given free by the same event as the window, the end
// of the channel. Where it cannot be had (no right to it, its node is down, it is of another make)
// there is the other lock alone. The queue takes no message from anybody, as that would be
// delivered among the letters.
func (i *Inbox) turn() (*amqp.Channel, error) {
	if i.unlocked {
		return i.conn.Channel() // its queue is on the node that is away, where each question takes 65 s (4.0.5, 4.3.6)
	}
	sum := sha256.Sum256([]byte(i.queue))
	queue := "dlo.epoch.turn." + hex.EncodeToString(sum[:16])
	args := amqp.Table{"x-queue-type": "classic", "x-max-length": int32(0), "x-overflow": "reject-publish"}
	for began := time.Now(); ; time.Sleep(turnTry) {
		ch, err := i.conn.Channel()
		if err != nil {
			return nil, err
		}
		err = answer(func() error {
			_, err := ch.QueueDeclare(queue, true, true, false, false, args) // deleted with its last reader
			return err
		})
		if err == nil {
			_, err = ch.Consume(queue, "turn", true, true, false, false, nil)
			i.link.right("read", epochQueues, err)
		}
		switch {
		case err == nil:
			return ch, nil
		case i.conn.IsClosed():
			return nil, err
		// Its last reader has just ended, or is an older dlo, which made it otherwise, and will
		// end.
		case (isCode(err, amqp.NotFound) && !isAway(err) || isCode(err, amqp.PreconditionFailed)) && time.Since(began) < turnWait:
		case !isCode(err, amqp.AccessRefused) || !strings.Contains(err.Error(), "exclusive use"):
			i.unlocked = isAway(err) // 3.10.8 says so at once, 4.0.5 and 4.3.6 after 65 s: it is not asked again
			return i.conn.Channel()
		case time.Since(began) > turnWait:
			return nil, fmt.Errorf("the broker has not ended the last channel that read %s", deadletter.Visible(i.queue))
		}
	}
}

const (
	turnTry  = 10 * time.Millisecond
	turnWait = 5 * time.Second
)
