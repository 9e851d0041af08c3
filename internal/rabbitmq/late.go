package rabbitmq

import (
	"context"
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// mayComeLate returns a reason why the broker may deliver some old letters only after the first
// letters of this session. An old letter is one that dlo has acknowledged, or one that an earlier
// session held. This can happen in a cluster. If there is no sign of it, mayComeLate returns "".
func (i *Inbox) mayComeLate(ctx context.Context) (string, error) {
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

// heldTry is the pause between two checks whether the broker still holds letters for an ended
// session. heldWait is how long a queue may need to notice that a session has ended. This time
// begins when the channel of the session has ended.
const (
	heldTry  = 50 * time.Millisecond
	heldWait = 2 * time.Second
)

// Held reports whether the broker may still hold letters of the inbox for a consumer that no longer
// exists. It must be called while this session holds no letter.
//
// If the node of a connection dies, a quorum queue keeps the letters of the cancelled consumers
// until another node leads the queue (3.10.8, 4.0.5), or for a minute (4.3.6). During that time,
// the queue still counts these consumers (cluster_test.go). A classic queue returns the letters
// immediately.
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
		return false, nil // this user has no permission to ask (4.3.0)
	}
	return found.Consumers > 0, err
}

// awaitReply waits for the reply to a request about a classic queue, which may be on a cluster node
// that cannot be reached. If the node is down, 4.0.5 and 4.3.6 reply after 65 s. If the node is cut
// off, they do not reply within three minutes. A request without a reply ends when the connection
// ends.
func awaitReply(question func() error) error {
	done := make(chan error, 1)
	go func() { done <- question() }()
	select {
	case err := <-done:
		return err
	case <-time.After(answerWait):
		return errNoAnswer
	}
}

// answerWait is how long awaitReply waits for a reply. A live node replies within milliseconds.
const answerWait = 30 * time.Second

var errNoAnswer = errors.New("no answer about a queue, whose cluster node may be away")
