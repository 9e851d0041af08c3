package rabbitmq

import (
	"context"
	"errors"
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

// answer waits for the answer to a question about a classic queue, which may be on a cluster node
// that is away: 4.0.5 and 4.3.6 answer after 65 s where the node is down, and not within three
// minutes where it is cut off. What is still asked then ends with the connection.
func answer(question func() error) error {
	done := make(chan error, 1)
	go func() { done <- question() }()
	select {
	case err := <-done:
		return err
	case <-time.After(answerWait):
		return errNoAnswer
	}
}

// answerWait is long for a node that lives: it answers within milliseconds.
const answerWait = 30 * time.Second

var errNoAnswer = errors.New("no answer about a queue, whose cluster node may be away")
