package requeue

import (
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// waitQueue uses one queue per delay, dlo.wait.<milliseconds>. The queue holds letters for all
// queues. All of them wait equally long, so none delays another. The routing key of each letter is
// the name of its own queue, and the broker uses the key to pass the letter on.
type waitQueue struct{}

func (waitQueue) place(delay time.Duration) deadletter.Wait {
	delay = delay.Truncate(time.Millisecond) // a millisecond is the broker's time unit
	name := fmt.Sprintf("dlo.wait.%d", delay.Milliseconds())
	return deadletter.Wait{Waiter: string(rules.WaiterQueue), Exchange: name, Queue: name, TTL: delay}
}

func (waitQueue) address(_ *deadletter.Publishing, delay, _ time.Duration) time.Duration {
	return delay
}
