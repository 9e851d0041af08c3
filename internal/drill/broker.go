package drill

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
)

// declare declares a durable queue. The parameter "pairs" contains the arguments of the queue: a
// name, its value, the next name, and so on.
func (s *site) declare(ctx context.Context, name string, pairs ...any) error {
	arguments := map[string]any{"x-queue-type": "classic"} // always set, because the default of the vhost may differ
	for i := 0; i+1 < len(pairs); i += 2 {
		arguments[pairs[i].(string)] = pairs[i+1]
	}
	return s.Do(ctx, "PUT", s.apiPath("queues", name), map[string]any{"durable": true, "arguments": arguments}, nil)
}

// workQueue declares a queue whose rejected messages go to dlo's inbox.
func (s *site) workQueue(ctx context.Context, name string) error {
	return s.declare(ctx, name, "x-dead-letter-exchange", "dlo.dlx")
}

func (s *site) drop(ctx context.Context, kind, name string) error {
	return s.Do(ctx, "DELETE", s.apiPath(kind, name), nil, nil)
}

// policy sets a policy or an operator policy for one queue of the drill. This policy causes a
// failure. It has the lowest priority, so that a policy that cures the failure takes precedence
// over it. On a real site, the faulty policy may have any priority.
func (s *site) policy(ctx context.Context, kind, name, queue string, definition map[string]any) error {
	body := map[string]any{
		"pattern": "^" + strings.ReplaceAll(queue, ".", `\.`) + "$", "apply-to": "queues", "priority": 0,
		"definition": definition,
	}
	return s.Do(ctx, "PUT", s.apiPath(kind, name), body, nil)
}

// publishers is the number of publishers that work at the same time. Several are needed, because
// the management API accepts only one message per call.
const publishers = 8

// publish publishes n messages to a queue.
func (s *site) publish(ctx context.Context, queue string, n int, headers map[string]any) error {
	turns := make(chan int, n)
	for i := range n {
		turns <- i
	}
	close(turns)
	var wg sync.WaitGroup
	failed := make(chan error, publishers)
	for range publishers {
		wg.Go(func() {
			for i := range turns {
				if err := s.publishOne(ctx, queue, fmt.Sprintf("%s %d", queue, i), headers); err != nil {
					failed <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(failed)
	return <-failed
}

func (s *site) publishOne(ctx context.Context, queue, body string, headers map[string]any) error {
	var answer struct{ Routed bool }
	if headers == nil {
		headers = map[string]any{} // the API does not accept null (3.10.8)
	}
	err := s.Do(ctx, "POST", s.apiPath("exchanges", "amq.default")+"/publish", map[string]any{
		"routing_key":      queue,
		"payload":          body,
		"payload_encoding": "string",
		"properties":       map[string]any{"delivery_mode": 2, "message_id": body, "headers": headers},
	}, &answer)
	if err == nil && !answer.Routed {
		return fmt.Errorf("there is no queue %s", queue)
	}
	return err
}

// take takes at most n messages from a queue, as a worker would, and returns their number. If
// "handled" is true, it acknowledges them. Otherwise it rejects them.
func (s *site) take(ctx context.Context, queue string, n int, handled bool) (int, error) {
	mode := "reject_requeue_false"
	if handled {
		mode = "ack_requeue_false"
	}
	var list []struct {
		Bytes int `json:"payload_bytes"`
	}
	err := s.Do(ctx, "POST", s.apiPath("queues", queue)+"/get", map[string]any{
		"count": n, "ackmode": mode, "encoding": "auto", "truncate": 16,
	}, &list)
	return len(list), err
}

// cutConnections closes connections of the vhost: those with a client name that contains the given
// text. A client, such as dlo, chooses this name when it connects. The result is the number of
// connections that were closed.
func (s *site) cutConnections(ctx context.Context, named string) (int, error) {
	list, err := s.Connections(ctx)
	n := 0
	for _, c := range list {
		if strings.Contains(c.Client.Name, named) &&
			s.Do(ctx, "DELETE", "/api/connections/"+url.PathEscape(c.Name), nil, nil) == nil {
			n++
		}
	}
	return n, err
}

// queuesNamed returns the queues whose names begin with the prefix.
func (s *site) queuesNamed(ctx context.Context, prefix string) (names []string, err error) {
	var list []struct {
		Name string `json:"name"`
	}
	err = s.Do(ctx, "GET", s.apiPath("queues"), nil, &list)
	for _, q := range list {
		if strings.HasPrefix(q.Name, prefix) {
			names = append(names, q.Name)
		}
	}
	return names, err
}
