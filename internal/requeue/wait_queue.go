package requeue

import (
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// waitQueue lets letters wait in one queue for each delay, dlo.wait.<milliseconds>. This queue
// holds letters for all queues. All of its letters wait equally long, so no letter delays another.
// The routing key of each letter is the name of its own queue. The broker uses it to pass the
// letter on.
type waitQueue struct{}

func (waitQueue) place(delay time.Duration) deadletter.Wait {
	delay = delay.Truncate(time.Millisecond) // the broker measures time in milliseconds
	name := fmt.Sprintf("dlo.wait.%d", delay.Milliseconds())
	return deadletter.Wait{Waiter: string(rules.WaiterQueue), Exchange: name, Queue: name, TTL: delay}
}

func (waitQueue) address(_ *deadletter.Publishing, delay, _ time.Duration) time.Duration {
	return delay
}
