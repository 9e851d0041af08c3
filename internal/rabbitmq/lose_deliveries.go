package rabbitmq

import (
	"context"
	"fmt"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// loseWait is how long LoseDeliveries waits for the first message of the queue.
const loseWait = 10 * time.Second

// LoseDeliveries takes the first message of a queue and then closes its own connection, so that the
// broker returns the message to the queue. It repeats this the given number of times. The queue
// must not be empty. A quorum queue counts each time as a delivery (3.10.8, 4.0.5, 4.3.6).
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
		return explain(withoutURL(err))
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
