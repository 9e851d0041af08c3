package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// These are the shop's exchanges and queues.
const (
	eventsExchange   = "shop.events"   // fan-out: each service gets a copy
	requestsExchange = "shop.requests" // direct: only to one service
	mailKey          = "mail.requested"
	smsKey           = "sms.requested"

	emailQueue   = "email-queue"   // quorum
	smsQueue     = "sms-queue"     // classic
	billingQueue = "billing-queue" // classic

	policyName    = "dlo"
	policyPattern = "^(email|sms|billing)-queue$"
)

var queues = []string{emailQueue, smsQueue, billingQueue}

// declare creates the shop's exchanges, queues and bindings. If deadLetterExchange is set, each
// queue names it in an argument. Real applications use a policy instead, so the demo uses the
// argument only if it has no management API to set a policy with.
func declare(c *amqp.Connection, deadLetterExchange string) error {
	ch, err := c.Channel()
	if err != nil {
		return err
	}
	defer ch.Close()
	for name, kind := range map[string]string{eventsExchange: amqp.ExchangeFanout, requestsExchange: amqp.ExchangeDirect} {
		if err := ch.ExchangeDeclare(name, kind, true, false, false, false, nil); err != nil {
			return fmt.Errorf("declare exchange %s: %w", name, err)
		}
	}
	for _, q := range queues {
		args := amqp.Table{}
		if q == emailQueue {
			args["x-queue-type"] = "quorum"
		}
		if deadLetterExchange != "" {
			args["x-dead-letter-exchange"] = deadLetterExchange
		}
		if _, err := ch.QueueDeclare(q, true, false, false, false, args); err != nil {
			return fmt.Errorf("declare queue %s: %w", q, err)
		}
		if err := ch.QueueBind(q, "", eventsExchange, false, nil); err != nil {
			return fmt.Errorf("bind queue %s: %w", q, err)
		}
	}
	for q, key := range map[string]string{emailQueue: mailKey, smsQueue: smsKey} {
		if err := ch.QueueBind(q, key, requestsExchange, false, nil); err != nil {
			return fmt.Errorf("bind queue %s: %w", q, err)
		}
	}
	return nil
}

// setPolicy does the same as one `rabbitmqctl set_policy`. It returns once every queue of the shop
// follows the policy. That takes 1 to 2 s after the API responds, and messages that die before then
// are lost (RabbitMQ 3.10.8, 4.0.5, 4.3.6).
func setPolicy(ctx context.Context, m *management, deadLetterExchange string) error {
	if err := m.put(ctx, "/api/policies/"+m.vhost()+"/"+policyName, map[string]any{
		"pattern": policyPattern, "apply-to": "queues", "definition": map[string]string{"dead-letter-exchange": deadLetterExchange},
	}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, q := range queues {
		err := await(ctx, func() error {
			var shown struct {
				Definition map[string]any `json:"effective_policy_definition"`
			}
			if err := m.get(ctx, "/api/queues/"+m.vhost()+"/"+q, &shown); err != nil {
				return err
			}
			if shown.Definition["dead-letter-exchange"] != deadLetterExchange {
				return errors.New("it does not follow the policy yet; does another policy with a higher priority match it?")
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("dead-letter policy of %s: %w", q, err)
		}
	}
	return nil
}

// await calls ask until it returns nil or ctx ends. If ctx ends, the error includes the last error
// from ask.
func await(ctx context.Context, ask func() error) error {
	const pause = 200 * time.Millisecond
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last answer: %w", context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
}

// errTaken means that a queue that the demo would create already exists on the broker and does not
// belong to the demo.
var errTaken = errors.New("a demo of its own needs a vhost of its own (rabbitmqctl add_vhost demo, and that vhost in DLO_AMQP_URL)")

// checkFree returns an error if the demo would use the same queues as real applications on an
// existing broker. Queues that an earlier demo left behind are allowed. The inbox shows that they
// belong to the demo.
func checkFree(c *amqp.Connection, inbox string) error {
	_, ours, err := inspect(c, inbox)
	if err != nil {
		return err
	}
	for _, q := range queues {
		consumers, exists, err := inspect(c, q)
		switch {
		case err != nil:
			return err
		case exists && !ours:
			return fmt.Errorf("the queue %s is on that broker already: %w", q, errTaken)
		case consumers > 0:
			return fmt.Errorf("the queue %s has %d consumers, another demo perhaps: %w", q, consumers, errTaken)
		}
	}
	return nil
}

// inspect checks a queue without declaring it. A missing queue closes the channel, so each check
// opens its own channel.
func inspect(c *amqp.Connection, queue string) (consumers int, exists bool, err error) {
	ch, err := c.Channel()
	if err != nil {
		return 0, false, err
	}
	defer ch.Close()
	q, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil)
	var answer *amqp.Error
	if errors.As(err, &answer) && answer.Code == amqp.NotFound {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("look for queue %s: %w", queue, err)
	}
	return q.Consumers, true, nil
}

// remove removes everything that the demo and its dlo created on an existing broker. The inbox is
// removed last, because it identifies the remaining queues as the demo's.
func remove(c *amqp.Connection, m *management, n names, marks []string) error {
	var all []error
	do := func(what func(ch *amqp.Channel) error) {
		ch, err := c.Channel()
		if err == nil {
			err = what(ch)
			ch.Close()
		}
		all = append(all, err)
	}
	for _, q := range slices.Concat(queues, []string{n.annotations}, marks) {
		do(func(ch *amqp.Channel) error { _, err := ch.QueueDelete(q, false, false, false); return err })
	}
	for _, x := range []string{eventsExchange, requestsExchange, n.exchange} {
		do(func(ch *amqp.Channel) error { return ch.ExchangeDelete(x, false, false) })
	}
	if m != nil {
		all = append(all, m.delete(context.Background(), "/api/policies/"+m.vhost()+"/"+policyName))
		var left []struct{ Name string }
		all = append(all, m.get(context.Background(), "/api/queues/"+m.vhost()+"?columns=name", &left))
		for _, q := range left { // only the management API knows the random name of dlo's marker
			if strings.HasPrefix(q.Name, deadletter.MarkerPrefix(n.inbox)) {
				do(func(ch *amqp.Channel) error { _, err := ch.QueueDelete(q.Name, false, false, false); return err })
			}
		}
	}
	do(func(ch *amqp.Channel) error { _, err := ch.QueueDelete(n.inbox, false, false, false); return err })
	return errors.Join(all...)
}
