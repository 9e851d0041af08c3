package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Onward finds out where the broker sends a letter that has expired in a queue. It is possible that
// the queue exists only to delay retries: it holds a message for a time and then sends it back to
// the work queue.
//
// The parameter "key" is the routing key with which the letter was published to the queue. The
// parameter "route" says how the letter reached an inbox. If the dead letters of the queue go
// through the default exchange or dlo's exchange, Onward needs one request. Otherwise it needs
// three.
func (l *Link) Onward(ctx context.Context, queue, key string, route deadletter.Route) deadletter.Onward {
	on := l.onward(ctx, queue, key)
	// brokers publish to dlo's exchange, and hardly any other client does
	if on.Why != "" && l.broker.Exchange != "" && route.Exchange == l.broker.Exchange {
		return deadletter.Onward{Ends: true}
	}
	return on
}

func (l *Link) onward(ctx context.Context, queue, key string) deadletter.Onward {
	unknown := func(format string, args ...any) deadletter.Onward {
		return deadletter.Onward{Why: fmt.Sprintf(format, args...)}
	}
	switch {
	case l.management.Load() == nil:
		return unknown("broker %s has no management API in the configuration to ask", l.broker.Name)
	case !canAsk(queue):
		return unknown("the management API cannot be asked for a queue of that name")
	}
	q, err := l.management.Load().Queue(ctx, l.vhost, queue)
	switch {
	case errors.Is(err, errNoQueue):
		return unknown("that queue is gone")
	case err != nil:
		return unknown("the management API does not say: %s", deadletter.Visible(err.Error()))
	case q.Name != queue || q.Consumers == nil:
		return unknown("the management API does not say whether anybody consumes it")
	case *q.Consumers > 0:
		return deadletter.Onward{Consumed: true}
	}
	exchange, by := q.deadLetterTo()
	if by != nil {
		key = *by
	}
	switch {
	case exchange == nil && !q.Effective.Known:
		return unknown("the management API does not say yet where its dead letters go")
	case exchange == nil || *exchange == l.broker.Exchange && *exchange != "":
		return deadletter.Onward{Ends: true}
	}
	targets := []string{key}
	if *exchange != "" {
		if targets, err = l.management.Load().targets(ctx, l.vhost, *exchange, key); err != nil {
			return unknown(
				"the management API does not say where exchange %s leads: %s", deadletter.Visible(*exchange),
				deadletter.Visible(err.Error()),
			)
		}
	}
	switch {
	case slices.ContainsFunc(
		targets, func(t string) bool { return deadletter.OwnQueue(t) || slices.Contains(l.broker.Inboxes, t) },
	):
		return deadletter.Onward{Ends: true}
	case len(targets) != 1 || targets[0] == "" || targets[0] == queue:
		return unknown("nobody consumes it, and its dead letters go on to %d queues", len(targets))
	}
	return deadletter.Onward{Queue: targets[0]}
}

// leadsOn reports whether the dead letters of a queue go elsewhere than to dlo. It looks only at
// the dead-letter exchange and the routing key. It does not look at bindings, because that would
// need another request.
func (l *Link) leadsOn(q *managedQueue) bool {
	exchange, key := q.deadLetterTo()
	switch {
	case exchange == nil:
		return false
	case *exchange != "":
		return *exchange != l.broker.Exchange
	}
	return key == nil || !slices.Contains(l.broker.Inboxes, *key)
}

// deadLetterTo returns the effective dead-letter exchange and routing key of a queue. A value that
// is not set is nil. An argument overrides a policy.
func (q *managedQueue) deadLetterTo() (exchange, key *string) {
	exchange, key = q.Arguments.Exchange, q.Arguments.Key
	if exchange == nil {
		exchange = q.Effective.Exchange
	}
	if key == nil {
		key = q.Effective.Key
	}
	return exchange, key
}

// targets returns the queues to which an exchange may route a message with the given routing key. A
// binding that dlo cannot evaluate counts as a match. Therefore, if there is more than one target,
// dlo does not know which of them is the right one.
func (m *Management) targets(ctx context.Context, vhost, exchange, key string) ([]string, error) {
	if !canAsk(exchange) {
		return nil, errors.New("it cannot be asked for an exchange of that name")
	}
	path := "/api/exchanges/" + url.PathEscape(vhost) + "/" + url.PathEscape(exchange)
	var of struct {
		Type string `json:"type"`
	}
	var bindings []struct {
		To   string `json:"destination"`
		Kind string `json:"destination_type"`
		Key  string `json:"routing_key"`
	}
	err := m.get(ctx, path, &of)
	if err == nil {
		err = m.get(ctx, path+"/bindings/source", &bindings)
	}
	switch {
	case errors.Is(err, errNoQueue):
		return nil, errors.New("there is no such exchange")
	case err != nil:
		return nil, err
	}
	var targets []string
	for _, b := range bindings {
		pattern := of.Type == "topic" && strings.ContainsAny(b.Key, "*#")
		if (of.Type == "direct" || of.Type == "topic" && !pattern) && b.Key != key {
			continue
		}
		if b.Kind != "queue" {
			return nil, errors.New("it leads to another exchange")
		}
		if !slices.Contains(targets, b.To) {
			targets = append(targets, b.To)
		}
	}
	return targets, nil
}
