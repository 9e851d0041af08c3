package requeue

import (
	"strconv"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// messageTTL lets letters wait in one queue, dlo.wait.ttl, in which each letter has its own
// expiration. The broker checks only the head of the queue. A letter behind another letter that
// waits longer therefore stays until the other letter has left (3.10.8, 4.0.5, 4.3.6).
type messageTTL struct{}

func (messageTTL) place(time.Duration) deadletter.Wait {
	return deadletter.Wait{
		Waiter:   string(rules.WaiterTTL),
		Exchange: deadletter.WaitTTL,
		Queue:    deadletter.WaitTTL,
		TTL:      -1,
	}
}

func (messageTTL) address(p *deadletter.Publishing, _, rest time.Duration) time.Duration {
	p.Properties.Expiration = strconv.FormatInt(rest.Milliseconds(), 10)
	return rest
}
