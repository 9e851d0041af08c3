package requeue

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// delayedExchange has an exchange of type x-delayed-message, dlo.wait.delayed, which holds each
// letter for as long as its header x-delay says, on the one node that took it. Behind it a queue
// passes on at once what it gets, as an exchange cannot route to the default exchange. What waits
// in it nobody can count or list.
type delayedExchange struct{}

func (delayedExchange) place(time.Duration) deadletter.Wait {
	const name = "dlo.wait.delayed"
	return deadletter.Wait{Waiter: string(rules.WaiterDelayed), Exchange: name, Delayed: true, Queue: name, TTL: 0}
}

func (delayedExchange) address(p *deadletter.Publishing, _, rest time.Duration) time.Duration {
	p.Properties.Headers[deadletter.HeaderDelay] = rest.Milliseconds()
	return rest
}
