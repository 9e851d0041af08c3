package system

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestTheLogStaysQuiet makes letters die as fast as they can be published. The queues of some
// letters are missing, and those of others are full. A worker rejects further letters repeatedly,
// each time with a different error, and each error sends a page to a channel that accepts nothing.
// At the same time, consumers publish invalid annotations, and connections are cut. No log line may
// be about a single letter, and no log line may be repeated endlessly.
func TestTheLogStaysQuiet(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, url := testenv.VHost(t)
	relay := testenv.Relay(t, node.AMQPAddr())
	work := newAudit(t, url, "work", nil)
	work.refuse = func(*amqp.Delivery) bool { return true }
	gone := newAudit(t, url, "gone", nil)
	full := newAudit(t, url, "full", amqp.Table{"x-max-length": int32(1), "x-overflow": "reject-publish"})
	hook := newReceiver(t)
	hook.setStatus(400)
	config := strings.Replace(hook.configFor(t, "page"), "retry: {delays: []}", "retry: {delays: [0s, 0s, 0s]}", 1)
	config = strings.Replace(
		config, "requeue: {watch: 2s}",
		"requeue: {rate: 0, watch: 2s, nack: {first: 1s, max: 2s}, breaker: {came_back: 50, of: 6, window: 10m}}", 1,
	)
	p := newChild(t, node.AMQPURLVia(relay.Addr(), vhost), config)
	p.Start("")
	p.Draining()
	work.awaitAnnotationsQueue()
	work.work()
	if _, err := gone.channel().QueueDelete("gone", false, false, false); err != nil {
		t.Fatal(err)
	}
	const letters = 10_000
	began := time.Now()
	ch := work.channel()
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	var last *amqp.DeferredConfirmation
	for n := range letters {
		queue := []string{work.queue, gone.queue, full.queue, "work.of.nobody"}[n%4]
		headers := amqp.Table{
			"x-death":         rejectedIn(queue, "", queue, time.Now()),
			"x-error-message": fmt.Sprintf("word%s is wrong", strings.Repeat(string(rune('a'+n%26)), 1+n%400/26)),
		}
		var err error
		if last, err = ch.PublishWithDeferredConfirm("", "dlo.letters", true, false, amqp.Publishing{
			Headers: headers, Body: fmt.Appendf(nil, "letter %d", n/2), DeliveryMode: 2,
		}); err != nil {
			t.Fatal(err)
		}
		if n%10 == 0 {
			body := []byte(fmt.Sprintf("this says nothing, for the %d. time", n))
			if err := ch.PublishWithContext(
				t.Context(), "", "dlo.annotations", true, false, amqp.Publishing{Body: body},
			); err != nil {
				t.Fatal(err)
			}
		}
		if n%2500 == 2499 {
			last.Wait()
			relay.Cut()
		}
	}
	eventually(t, "all letters are read", func() bool { return p.letters() >= letters && p.letters("received") == 0 })
	rate := float64(letters) / time.Since(began).Seconds()
	eventually(t, "letters are sent again, held and refused, and pages are too", func() bool {
		return p.letters("held") >= letters/4 && p.count("letters", `nacks > 0`) > 0 && p.count("breakers", "") > 0 &&
			p.count("deliveries", `tries > 0`) > 0
	})
	log := p.Log()
	if m := regexp.MustCompile(
		`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`,
	).FindString(log); m != "" {
		t.Errorf("the log names the letter %s", m)
	}
	messages, lines := map[string]int{}, 0
	for line := range strings.Lines(log) {
		lines++
		if m := regexp.MustCompile(`msg=("[^"]*"|\S+)`).FindString(line); m != "" {
			messages[m]++
		}
	}
	for message, n := range messages {
		if n > 20 {
			t.Errorf("%d lines of %s", n, message)
		}
	}
	t.Logf(
		"%d letters, %.0f a second, %d letters held, %d lines: %v", letters, rate, p.letters("held"), lines, messages,
	)
}
