package rabbitmq

import (
	"context"
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// PassiveSnapshot returns a snapshot of the link's vhost for a broker without a management API. It
// uses AMQP alone. It says which of the given queues exist, and how many ready messages and
// consumers each of them has (3.10.8, 4.0.5, 4.3.6). Queues that do not exist are omitted. If a
// queue does not answer within lookWait, the snapshot lists this queue and all queues after it as
// unread.
func (l *Link) PassiveSnapshot(ctx context.Context, queues []string) (topology.Snapshot, error) {
	l.mu.Lock()
	conn := l.publish.conn
	l.mu.Unlock()
	if conn == nil {
		return topology.Snapshot{}, fmt.Errorf("dlo is not connected to broker %s", l.broker.Name)
	}
	s := topology.Snapshot{
		Broker: l.broker.Name, VHost: l.vhost, ReadAt: time.Now(), Passive: true,
		Gaps: []topology.Gap{{What: "exchanges, bindings, policies and other queues", Why: errNoManagement.Error()}},
	}
	ctx, cancel := context.WithTimeout(ctx, lookWait)
	defer cancel()
	for _, name := range queues {
		found := make(chan *topology.Queue, 1)
		go func() { // a queue without a leader replies after a minute
			var q *topology.Queue
			if state, err := queueState(conn, name); err == nil {
				q = &topology.Queue{
					Name:      name,
					Ready:     topology.Figure{N: int64(state.Messages), Known: true},
					Consumers: topology.Figure{N: int64(state.Consumers), Known: true},
				}
			}
			found <- q
		}()
		select {
		case q := <-found:
			if q != nil {
				s.Queues = append(s.Queues, *q)
			}
		case <-ctx.Done():
			s.Gaps = append(s.Gaps, topology.Gap{
				What: "queue " + deadletter.Visible(name) + " and those after it",
				Why:  "it gave no answer",
			})
			return s, nil
		}
	}
	return s, nil
}
