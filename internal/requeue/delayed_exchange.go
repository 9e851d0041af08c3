package requeue

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// delayedExchange lets letters wait in dlo.wait.delayed, an exchange of type x-delayed-message. The
// exchange holds each letter for the time in the header x-delay, on the one node that accepted the
// letter. The exchange cannot route a letter to the default exchange. It therefore routes the
// letter to a queue, which passes it on immediately to the queue in which the letter is to arrive.
// Letters that wait in the exchange cannot be counted or listed.
type delayedExchange struct{}

func (delayedExchange) place(time.Duration) deadletter.Wait {
	const name = "dlo.wait.delayed"
	return deadletter.Wait{Waiter: string(rules.WaiterDelayed), Exchange: name, Delayed: true, Queue: name, TTL: 0}
}

func (delayedExchange) address(p *deadletter.Publishing, _, rest time.Duration) time.Duration {
	p.Properties.Headers[deadletter.HeaderDelay] = rest.Milliseconds()
	return rest
}
