package rabbitmq

import (
	"context"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// loseWait is how long a queue may take to deliver its first message.
const loseWait = 10 * time.Second

// LoseDeliveries takes the first message of a non-empty queue and closes its own connection while
// it holds the message. It does so the given number of times. A quorum queue counts each time as a
// delivery (3.10.8, 4.0.5, 4.3.6).
func LoseDeliveries(ctx context.Context, url, queue string, times int) error {
	for range times {
		if err := loseDelivery(ctx, url, queue); err != nil {
			return fmt.Errorf("lose a delivery of %s: %w", queue, err)
		}
	}
	return nil
}

func loseDelivery(ctx context.Context, url, queue string) error {
	conn, err := amqp.Dial(url)
	if err != nil {
		return explain(scrub(err))
	}
	defer conn.CloseDeadline(time.Now().Add(closeWait))
	ch, err := conn.Channel()
	if err != nil {
		return err
	}
	letters, err := ch.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		return err
	}
	select {
	case <-letters:
		return nil
	case <-time.After(loseWait):
		return fmt.Errorf("nothing was delivered within %s", loseWait)
	case <-ctx.Done():
		return ctx.Err()
	}
}
