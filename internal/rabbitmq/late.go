package rabbitmq

import (
	"context"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// late says why letters that were acknowledged, or that a session before had in hand, may come back
// later than the first letters of this one, as they may in a cluster; "" = nothing says so.
func (i *Inbox) late(ctx context.Context) (string, error) {
	if i.away {
		return "the cluster node of the inbox was away", nil
	}
	for began := time.Now(); ; {
		held, err := i.Held()
		if err != nil || !held {
			return "", err
		}
		if time.Since(began) > heldWait {
			return "a consumer that is not ours has letters of the inbox, or its cluster node is down", nil
		}
		if err := sleep(ctx, heldTry); err != nil {
			return "", err
		}
	}
}

// heldWait is how long a queue may take to notice the end of a session whose channel has ended.
const (
	heldTry  = 50 * time.Millisecond
	heldWait = 2 * time.Second
)

// Held says that the broker may have letters of the inbox in hand for a consumer that is gone.
// Where the node of a connection dies, its quorum queues keep what a cancelled consumer of it had,
// until another node leads the queue (3.10.8, 4.0.5), or for a minute (4.3.6), and count that
// consumer all the while (cluster_test.go). It is asked while this session has no letter in hand.
// A classic queue gives such letters back at once.
func (i *Inbox) Held() (bool, error) {
	if i.facts.kind == "classic" {
		return false, nil
	}
	var found amqp.Queue
	err := onChannel(i.conn, func(ch *amqp.Channel) (err error) {
		found, err = ch.QueueDeclarePassive(i.queue, true, false, false, false, nil)
		return err
	})
	if isCode(err, amqp.AccessRefused) {
		return false, nil // a user that may not ask (4.3.0)
	}
	return found.Consumers > 0, err
}
