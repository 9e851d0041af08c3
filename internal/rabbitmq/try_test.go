package rabbitmq_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// trialOf returns the message of a trial.
func trialOf(id string) deadletter.TrialMessage {
	return deadletter.TrialMessage{
		Properties: deadletter.Properties{
			MessageID:    id,
			DeliveryMode: 2,
			Headers:      deadletter.Table{deadletter.HeaderTrial: "mark"},
		},
		Body: []byte("hello"),
	}
}

// TestATrialGoesThroughItsQueue checks the method Try, which sends a message to a queue for trials.
// Try must reject the message once, and the broker must then dead-letter it to dlo's exchange. When
// the message comes again, Try must accept it. Afterwards Try must delete the queue, although the
// queue would also expire.
func TestATrialGoesThroughItsQueue(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	vhost, url := node.VHost(t)
	ch := openChannel(t, url, nil)
	declareInbox(t, ch, "letters", nil)
	if err := ch.ExchangeDeclare("dlo.dlx", "fanout", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := ch.QueueBind("letters", "", "dlo.dlx", false, nil); err != nil {
		t.Fatal(err)
	}
	link := connect(t, rabbitmq.Broker{URL: url, Exchange: "dlo.dlx", Inboxes: []string{"letters"}})
	ctx, cancel := context.WithCancel(t.Context())
	heard, over := make(chan bool, 2), make(chan error, 1)
	go func() { over <- link.Try(ctx, trialOf("one"), func(accepted bool) { heard <- accepted }) }()
	if accepted := <-heard; accepted {
		t.Error("it was not rejected first")
	}
	died := take(t, ch, "letters")
	if died.MessageId != "one" || string(died.Body) != "hello" || died.Headers[deadletter.HeaderTrial] != "mark" {
		t.Errorf("%+v", died)
	}
	deaths, _ := died.Headers["x-death"].([]any)
	if len(deaths) != 1 || deaths[0].(amqp.Table)["queue"] != "dlo.try" ||
		deaths[0].(amqp.Table)["reason"] != "rejected" {
		t.Errorf("%v", died.Headers)
	}
	var queue struct {
		Arguments map[string]any
		Durable   bool
	}
	eventually(
		t, "the API shows the queue",
		func() bool { return node.API("GET", "/api/queues/"+vhost+"/dlo.try", nil, &queue) == nil },
	)
	if queue.Arguments["x-expires"] != 3.6e6 || queue.Arguments["x-dead-letter-exchange"] != "dlo.dlx" ||
		!queue.Durable {
		t.Errorf("%+v", queue)
	}
	left := amqp.Publishing{
		MessageId: "earlier",
		Headers:   amqp.Table{deadletter.HeaderTrial: "mark"},
		Body:      []byte("left"),
	}
	// a message that an earlier trial left behind, and that this trial must remove
	if err := ch.PublishWithContext(ctx, "", "dlo.try", true, false, left); err != nil {
		t.Fatal(err)
	}
	publishLetters(t, openChannel(t, url, nil), "dlo.try", "a stranger")
	if died := take(t, ch, "letters"); string(died.Body) != "a stranger" {
		t.Errorf("what somebody else sent there is not a letter: %s", died.Body)
	}
	if err := ch.PublishWithContext(ctx, "", "dlo.try", true, false, amqp.Publishing{
		MessageId: "one", Headers: died.Headers, Body: []byte("hello"),
	}); err != nil {
		t.Fatal(err)
	}
	if accepted := <-heard; !accepted {
		t.Error("it was not accepted the second time")
	}
	cancel()
	if err := <-over; err != nil {
		t.Error(err)
	}
	if _, err := openChannel(t, url, nil).QueueDeclarePassive("dlo.try", true, false, false, false, nil); err == nil {
		t.Error("the queue is still there")
	}
}

// take waits until the queue has a message, and takes it.
func take(t *testing.T, ch *amqp.Channel, queue string) amqp.Delivery {
	t.Helper()
	var d amqp.Delivery
	eventually(t, "a message is in "+queue, func() bool {
		var ok bool
		var err error
		if d, ok, err = ch.Get(queue, true); err != nil {
			t.Fatal(err)
		}
		return ok
	})
	return d
}

// TestATrialThatMayNotBe covers a user who lacks a permission. The error must name the permission
// and the command that grants it.
func TestATrialThatMayNotBe(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, owner := node.VHost(t)
	ch := openChannel(t, owner, nil)
	if err := ch.ExchangeDeclare("dlo.dlx", "fanout", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	user, address := node.User(t, vhost, "")
	link := connect(t, rabbitmq.Broker{URL: address, Exchange: "dlo.dlx", Inboxes: []string{"dlo.letters"}})
	refused := func(what string) *deadletter.TrialRefused {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		var e *deadletter.TrialRefused
		if err := link.Try(ctx, trialOf("one"), func(bool) { cancel() }); !errors.As(err, &e) {
			t.Fatalf("%s: %v", what, err)
		}
		return e
	}
	for what, rights := range map[string][3]string{
		"nothing":   {``, ``, ``},
		"configure": {`^dlo\.epoch`, `^(amq\.default|dlo\.dlx)$`, `^dlo\.try$`},
		"write":     {`^dlo\.try$`, `^dlo\.dlx$`, `^dlo\.try$`},
		"exchange":  {`^dlo\.try$`, `^amq\.default$`, `^dlo\.try$`},
		"read":      {`^dlo\.try$`, `^(amq\.default|dlo\.dlx)$`, `^dlo\.epoch`},
	} {
		node.Grant(t, vhost, user, rights[0], rights[1], rights[2])
		e := refused(what)
		if !strings.Contains(e.Why, "user "+user+" lacks a permission that a trial needs (ACCESS_REFUSED") ||
			!strings.HasPrefix(e.Cure, "rabbitmqctl set_permissions") {
			t.Errorf("%s: %+v", what, e)
		}
	}
	goes := func(what string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if err := link.Try(ctx, trialOf("one"), func(bool) { cancel() }); err != nil || ctx.Err() != context.Canceled {
			t.Errorf("%s: %v", what, err)
		}
	}
	manual, err := os.ReadFile("../../docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	_, row, _ := strings.Cut(string(manual), "| a trial |")
	row, _, _ = strings.Cut(row, "\n")
	var expressions []string
	for _, cell := range strings.Split(row, "|") {
		if names := strings.ReplaceAll(strings.Trim(strings.TrimSpace(cell), "`"), "`, `", "|"); names != "" {
			expressions = append(expressions, "^("+names+")$")
		}
	}
	if len(expressions) != 3 {
		t.Fatalf("the manual names %v", expressions)
	}
	node.Grant(t, vhost, user, expressions[0], expressions[1], expressions[2])
	goes("the rights that the manual names")
	node.Cure(t, link.Status().Grant)
	goes("the rights that are printed")

	if _, err := ch.QueueDeclare("dlo.try", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	publishLetters(t, ch, "dlo.try", "of somebody")
	e := refused("another queue")
	if !strings.Contains(e.Why, "with other arguments") ||
		!strings.Contains(e.Cure, "delete_queue -p "+vhost+" --if-empty --if-unused dlo.try") {
		t.Errorf("%+v", e)
	}
	if died := take(t, ch, "dlo.try"); string(died.Body) != "of somebody" {
		t.Errorf("%s", died.Body)
	}
	node.Cure(t, e.Cure)
	goes("the queue of somebody is deleted")
}

// TestATrialLeavesThatOfAnotherAlone covers trials of two dlo processes in one vhost. The second
// trial must be refused, and the first one must continue.
func TestATrialLeavesThatOfAnotherAlone(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, url := node.VHost(t)
	ch := openChannel(t, url, nil)
	if err := ch.ExchangeDeclare("dlo.dlx", "fanout", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	first := connect(t, rabbitmq.Broker{URL: url, Exchange: "dlo.dlx", Inboxes: []string{"dlo.letters"}})
	second := connect(t, rabbitmq.Broker{URL: url, Exchange: "dlo.dlx", Inboxes: []string{"other"}})
	ctx, cancel := context.WithCancel(t.Context())
	heard, over := make(chan bool, 2), make(chan error, 1)
	go func() { over <- first.Try(ctx, trialOf("one"), func(accepted bool) { heard <- accepted }) }()
	<-heard
	var refused *deadletter.TrialRefused
	if err := second.Try(t.Context(), trialOf("two"), func(bool) {}); !errors.As(err, &refused) ||
		!strings.Contains(refused.Why, "another trial may be under way") || refused.Cure != "" {
		t.Errorf("%v", err)
	}
	again := amqp.Publishing{
		MessageId: "one",
		Headers:   amqp.Table{deadletter.HeaderTrial: "mark"},
		Body:      []byte("hello"),
	}
	if err := ch.PublishWithContext(ctx, "", "dlo.try", true, false, again); err != nil {
		t.Fatal(err)
	}
	select {
	case accepted := <-heard:
		if !accepted {
			t.Error("it was not accepted the second time")
		}
	case err := <-over:
		t.Fatal("the first one has ended: ", err)
	}
	cancel()
	if err := <-over; err != nil {
		t.Error(err)
	}
	if _, err := openChannel(t, url, nil).QueueDeclarePassive("dlo.try", true, false, false, false, nil); err == nil {
		t.Error("the queue of " + vhost + " is still there")
	}
}

// TestATrialEndsWithItsConnection checks that a trial ends with an error when its connection ends.
func TestATrialEndsWithItsConnection(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, _ := node.VHost(t)
	relay := testenv.Relay(t, node.AMQPAddr())
	link := connect(t, rabbitmq.Broker{
		URL:      node.AMQPURLVia(relay.Addr(), vhost),
		Exchange: "dlo.dlx",
		Inboxes:  []string{"dlo.letters"},
	})
	over := make(chan error, 1)
	go func() { over <- link.Try(t.Context(), trialOf("one"), func(bool) { relay.Cut() }) }()
	select {
	case err := <-over:
		if err == nil {
			t.Error("it ended without a word")
		}
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
}
