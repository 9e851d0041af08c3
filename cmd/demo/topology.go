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

// These are the exchanges and queues of the shop, and its policy.
const (
	eventsExchange   = "shop.events"   // fan-out: each service gets a copy of a message
	requestsExchange = "shop.requests" // direct: only one service gets a message
	mailKey          = "mail.requested"
	smsKey           = "sms.requested"

	emailQueue   = "email-queue"   // a quorum queue
	smsQueue     = "sms-queue"     // a classic queue
	billingQueue = "billing-queue" // a classic queue

	policyName    = "dlo"
	policyPattern = "^(email|sms|billing)-queue$"
)

var queues = []string{emailQueue, smsQueue, billingQueue}

// declare creates the exchanges, queues and bindings of the shop. If "deadLetterExchange" is not
// empty, each queue gets it as an argument. Real applications use a policy instead. The demo uses
// the argument only if the broker has no management API, because it then cannot set a policy.
func declare(c *amqp.Connection, deadLetterExchange string) error {
	ch, err := c.Channel()
	if err != nil {
		return err
	}
	defer ch.Close()
	for name, kind := range map[string]string{
		eventsExchange:   amqp.ExchangeFanout,
		requestsExchange: amqp.ExchangeDirect,
	} {
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

// setPolicy sets the dead-letter policy, as `rabbitmqctl set_policy` would. It returns when every
// queue of the shop follows the policy. This takes 1 to 2 s after the response of the API, and
// messages that die before then are lost (RabbitMQ 3.10.8, 4.0.5, 4.3.6).
func setPolicy(ctx context.Context, m *management, deadLetterExchange string) error {
	if err := m.put(ctx, "/api/policies/"+m.vhost()+"/"+policyName, map[string]any{
		"pattern":    policyPattern,
		"apply-to":   "queues",
		"definition": map[string]string{"dead-letter-exchange": deadLetterExchange},
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
				return errors.New(
					"it does not follow the policy yet; does another policy with a higher priority match it?",
				)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("dead-letter policy of %s: %w", q, err)
		}
	}
	return nil
}

// await calls "ask" again and again until it returns nil or ctx is done. If ctx is done, await
// returns an error that includes the last error of "ask".
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

// errTaken is the error if the broker already has a queue that the demo would create. Such a queue
// belongs to someone else, or another demo may be using it.
var errTaken = errors.New(
	"a demo of its own needs a vhost of its own (rabbitmqctl add_vhost demo, and that vhost in DLO_AMQP_URL)",
)

// checkFree returns an error if the existing broker already has queues with the names that the demo
// uses. Queues that an earlier demo left behind are allowed. If the inbox of the demo exists, the
// queues belong to an earlier demo.
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

// inspect reports whether a queue exists and how many consumers it has. It does not declare the
// queue. If the queue is missing, the broker closes the channel, so inspect opens a channel of its
// own.
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

// remove removes everything that the demo and its dlo created on an existing broker. It removes the
// inbox last. While the inbox exists, the demo can tell that the other queues are its own.
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
		for _, q := range left { // dlo's marker queue has a random name, which only the management API knows
			if strings.HasPrefix(q.Name, deadletter.MarkerPrefix(n.inbox)) {
				do(func(ch *amqp.Channel) error { _, err := ch.QueueDelete(q.Name, false, false, false); return err })
			}
		}
	}
	do(func(ch *amqp.Channel) error { _, err := ch.QueueDelete(n.inbox, false, false, false); return err })
	return errors.Join(all...)
}
