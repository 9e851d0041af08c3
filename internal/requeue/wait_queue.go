package requeue

import (
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// waitQueue has a queue for each delay, dlo.wait.<milliseconds>, in which letters for all queues
// wait equally long: none holds up another. The routing key of each is its own queue, by which the
// broker passes it on.
type waitQueue struct{}

func (waitQueue) place(delay time.Duration) deadletter.Wait {
	delay = delay.Truncate(time.Millisecond) // what the broker counts in
	name := fmt.Sprintf("dlo.wait.%d", delay.Milliseconds())
	return deadletter.Wait{Waiter: string(rules.WaiterQueue), Exchange: name, Queue: name, TTL: delay}
}

func (waitQueue) address(_ *deadletter.Publishing, delay, _ time.Duration) time.Duration {
	return delay
}
