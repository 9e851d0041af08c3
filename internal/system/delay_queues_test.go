package system

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// delayRecipe is a published recipe for retries with RabbitMQ queues that delay messages. The
// worker tries a message three times. After that, it publishes the message to the inbox with all
// its headers.
type delayRecipe struct {
	name, queue, inbox string
	declare            func(ch *amqp.Channel) error
	// publishes the message for its next try and settles the delivery
	retry func(ch *amqp.Channel, d *amqp.Delivery, try int64) error
	// the worker rejects the message, so x-death names the queue of the work
	rejects bool
	// the queue in which the newest death happened
	delay string
}

// delayedCopy returns a message with the headers and the body of a delivery, as these recipes
// publish it. The header "tries" contains the number of the try.
func delayedCopy(d *amqp.Delivery, try int64, expiration string) amqp.Publishing {
	headers := amqp.Table{}
	for k, v := range d.Headers {
		headers[k] = v
	}
	headers["tries"] = try
	return amqp.Publishing{
		Headers: headers, Body: d.Body, DeliveryMode: 2, ContentType: d.ContentType, MessageId: d.MessageId,
		Expiration: expiration,
	}
}

func queueDeclare(ch *amqp.Channel, name, exchange, key string, ttl int32) error {
	args := amqp.Table{"x-dead-letter-exchange": exchange}
	if key != "" {
		args["x-dead-letter-routing-key"] = key
	}
	if ttl > 0 {
		args["x-message-ttl"] = ttl
	}
	_, err := ch.QueueDeclare(name, true, false, false, false, args)
	return err
}

var delayRecipes = []delayRecipe{
	{
		// The worker rejects messages, and an exchange routes them to the delay queue. The delay
		// queue sends them back to the work queue.
		name: "two queues that lead to each other", queue: "timeline", inbox: "timeline_error", rejects: true,
		delay: "timeline_retry10",
		declare: func(ch *amqp.Channel) error {
			for _, x := range []string{"acme", "acme_back"} {
				if err := ch.ExchangeDeclare(x, "direct", true, false, false, false, nil); err != nil {
					return err
				}
			}
			if err := queueDeclare(ch, "timeline", "acme", "timeline_retry10", 0); err != nil {
				return err
			}
			if err := queueDeclare(ch, "timeline_retry10", "acme_back", "timeline", 100); err != nil {
				return err
			}
			if err := ch.QueueBind("timeline_retry10", "timeline_retry10", "acme", false, nil); err != nil {
				return err
			}
			return ch.QueueBind("timeline", "timeline", "acme_back", false, nil)
		},
		retry: func(_ *amqp.Channel, d *amqp.Delivery, _ int64) error { return d.Reject(false) },
	},
	{
		// The worker publishes each message to a delay queue, one for each length of delay, and
		// acknowledges the delivery.
		name: "one queue for each delay", queue: "orders", inbox: "orders_error", delay: "orders.retry.200",
		declare: func(ch *amqp.Channel) error {
			if err := ch.ExchangeDeclare("orders_back", "fanout", true, false, false, false, nil); err != nil {
				return err
			}
			if _, err := ch.QueueDeclare("orders", true, false, false, false, nil); err != nil {
				return err
			}
			for _, ttl := range []int32{100, 200} {
				if err := queueDeclare(ch, "orders.retry."+strconv.Itoa(int(ttl)), "orders_back", "", ttl); err != nil {
					return err
				}
			}
			return ch.QueueBind("orders", "", "orders_back", false, nil)
		},
		retry: func(ch *amqp.Channel, d *amqp.Delivery, try int64) error {
			if err := ch.PublishWithContext(
				context.Background(), "", "orders.retry."+strconv.FormatInt(100*try, 10), true, false,
				delayedCopy(d, try, ""),
			); err != nil {
				return err
			}
			return d.Ack(false)
		},
	},
	{
		// One delay queue without a time to live serves all delays. Each message has its own
		// expiration.
		name: "an expiration for each message", queue: "mail", inbox: "mail_error", delay: "mail_wait",
		declare: func(ch *amqp.Channel) error {
			if _, err := ch.QueueDeclare("mail", true, false, false, false, nil); err != nil {
				return err
			}
			return queueDeclare(ch, "mail_wait", "", "mail", 0)
		},
		retry: func(ch *amqp.Channel, d *amqp.Delivery, try int64) error {
			if err := ch.PublishWithContext(
				context.Background(), "", "mail_wait", true, false, delayedCopy(d, try, strconv.FormatInt(100*try, 10)),
			); err != nil {
				return err
			}
			return d.Ack(false)
		},
	},
}

// delayWorker is the worker of a recipe. Its tries fail until it is repaired, and then it accepts
// every message.
type delayWorker struct {
	delayRecipe
	repaired atomic.Bool
	mu       sync.Mutex
	accepted map[string]int // number of accepted messages, by body
}

func (w *delayWorker) work(t *testing.T, ch *amqp.Channel) {
	t.Helper()
	deliveries, err := ch.Consume(w.queue, "", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for d := range deliveries {
			if w.handle(ch, &d) != nil {
				return
			}
		}
	}()
}

func (w *delayWorker) handle(ch *amqp.Channel, d *amqp.Delivery) error {
	if w.repaired.Load() {
		w.mu.Lock()
		w.accepted[string(d.Body)]++
		w.mu.Unlock()
		return d.Ack(false)
	}
	try, _ := d.Headers["tries"].(int64)
	if w.rejects {
		try = deathsIn(d, w.queue)
	}
	if try < 2 {
		return w.retry(ch, d, try+1)
	}
	if err := ch.PublishWithContext(
		context.Background(), "", w.inbox, true, false, delayedCopy(d, try+1, ""),
	); err != nil {
		return err
	}
	return d.Ack(false)
}

// deathsIn returns how often a message has died in a queue, according to x-death. The worker of the
// first recipe uses deathsIn to count its tries.
func deathsIn(d *amqp.Delivery, queue string) int64 {
	entries, _ := d.Headers["x-death"].([]any)
	for _, e := range entries {
		if death, ok := e.(amqp.Table); ok && death["queue"] == queue {
			n, _ := death["count"].(int64)
			return n
		}
	}
	return 0
}

func (w *delayWorker) done() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.accepted)
}

// TestRetryRecipesWithDelayQueues runs each recipe with a worker that fails. The worker is then
// repaired and gets its letters back as one group. Origin, reason and rule of the letters must
// belong to the queue that the worker consumes. dlo knows this queue from x-death, from the broker
// or from dlo's configuration. If none of them names the queue, dlo holds the letters with a
// question until people send them to the queue.
func TestRetryRecipesWithDelayQueues(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	management := fmt.Sprintf("management: %q, ", node.ManagementURLOf("guest:guest"))
	for _, knows := range []string{"with management", "without management", "with origins"} {
		for _, r := range delayRecipes {
			t.Run(knows+"/"+r.name, func(t *testing.T) {
				t.Parallel()
				vhost, address := testenv.VHost(t)
				shown := func(queue string) { awaitFigures(t, node, vhost, queue) }
				entry := map[string]string{
					"with management": management, "without management": "",
					"with origins": "origins: {" + r.inbox + ": " + r.queue + "}, ",
				}[knows]
				playDelayRecipe(t, address, r, shown, entry, knows == "without management" && !r.rejects)
			})
		}
	}
}

// awaitFigures waits until the management API reports the number of consumers of a queue. The API
// reports it some seconds after the queue was declared.
func awaitFigures(t *testing.T, node *testenv.Node, vhost, queue string) {
	t.Helper()
	eventually(t, "the figures of "+queue, func() bool {
		var q struct {
			Consumers *int `json:"consumers"`
		}
		err := node.API(http.MethodGet, "/api/queues/"+url.PathEscape(vhost)+"/"+queue, nil, &q)
		return err == nil && q.Consumers != nil
	})
}

func playDelayRecipe(
	t *testing.T, address string, r delayRecipe, shown func(queue string), entry string, question bool,
) {
	const letters = 10
	conn := publishParked(t, address, r.inbox, 0, nil)
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.declare(ch); err != nil {
		t.Fatal(err)
	}
	w := &delayWorker{delayRecipe: r, accepted: map[string]int{}}
	w.work(t, ch)
	for i := range letters {
		if err := ch.PublishWithContext(t.Context(), "", r.queue, true, false, amqp.Publishing{
			Body: fmt.Appendf(nil, "letter %d", i), DeliveryMode: 2,
		}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all letters in the inbox", func() bool { return ready(t, conn, r.inbox) == letters })
	shown(r.delay)
	p := newChild(
		t, address,
		fmt.Sprintf(
			"brokers: [{url: %%AMQP%%, %sinboxes: [dlo.letters, %s]}]\nrules: [{name: of-the-work, match: {queue: %s, reason: rejected}, retry: {delays: []}, dead: {severity: notify, group: broken}}]\nrequeue: {rate: 0, watch: 2s}\n",
			entry, r.inbox, r.queue,
		),
	)
	p.Start("")
	if question {
		eventually(t, "all letters held", func() bool { return p.letters("held") == letters })
		if n := p.count(
			"letters", `why LIKE $1`,
			"which queue rejected it? It expired in "+r.delay+
				", and that may be a queue that only delays retries: broker main has no management API%",
		); n != letters {
			t.Errorf("%d of %d letters ask", n, letters)
		}
	} else {
		eventually(
			t, "all letters decided", func() bool { return p.count("letters", "state != 'received'") == letters },
		)
		if n := p.letters("dead"); n != letters {
			code, text := p.get("/api/v1/letters")
			t.Fatalf("%d of %d letters are dead: %d %s", n, letters, code, text)
		}
		if n := p.count("letters l JOIN origins o ON o.id = l.origin", `o.queue = $1 AND l.reason = 'rejected'
			AND l.rule = 'of-the-work' AND l.died_at IS NOT NULL = $2`, r.queue, r.rejects); n != letters {
			t.Errorf("%d of %d letters are of %s, rejected, under its rule", n, letters, r.queue)
		}
	}
	if n := p.ask(`SELECT count(DISTINCT grp) FROM letters`); n != 1 {
		t.Errorf("%d groups", n)
	}
	w.repaired.Store(true)
	q := requeueAtOnce(nil)
	delete(q, "ids")
	q["q"] = fmt.Sprintf("group:G-%d", p.ask(`SELECT max(grp) FROM letters`))
	if question {
		q["to"] = r.queue
	}
	if code, answer := p.post("/api/v1/operations", q); code != 202 {
		t.Fatalf("%d %s", code, answer)
	}
	eventually(t, "all letters accepted", func() bool { return w.done() == letters })
	eventually(t, "all letters quiet", func() bool { return p.letters("settled") == letters })
	for body, n := range w.accepted {
		if n != 1 {
			t.Errorf("%s was accepted %d times", body, n)
		}
	}
	if n := ready(t, conn, r.delay); n != 0 {
		t.Errorf("%d letters in the delay queue", n)
	}
}
