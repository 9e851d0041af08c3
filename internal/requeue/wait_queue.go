package requeue

import (
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// waitQueue is a waiter with one wait queue for each delay. The name of this queue is
// dlo.wait.<milliseconds>. Letters for all queues wait in it, and all of them wait equally long, so
// no letter delays another. The routing key of each letter is the name of its target queue. The
// broker passes the letter on to that queue when the wait is over.
type waitQueue struct{}

func (waitQueue) place(delay time.Duration) deadletter.Wait {
	delay = delay.Truncate(time.Millisecond) // the broker measures time in milliseconds
	name := fmt.Sprintf("dlo.wait.%d", delay.Milliseconds())
	return deadletter.Wait{Waiter: string(rules.WaiterQueue), Exchange: name, Queue: name, TTL: delay}
}

func (waitQueue) address(_ *deadletter.Publishing, delay, _ time.Duration) time.Duration {
	return delay
}
