package system

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// frameworkError is a message as a framework puts it into its error queue. The framework itself
// does not run in this test. The framework's headers name the queue in which the message failed.
// The tests of classify contain these headers in full.
type frameworkError struct {
	name  string
	inbox string // name of the error queue; %s stands for the queue of the consumer
	p     amqp.Publishing
	// reads is a list of the headers that a consumer of the framework needs to decode the message.
	// These headers must come back unchanged. The content type, the type and the body must come
	// back unchanged too.
	reads []string
}

func (f *frameworkError) queue() string { return "sms " + f.name }

// frameworkErrors are messages whose headers name the queue in which they failed. %s stands for the
// name of that queue.
var frameworkErrors = []frameworkError{
	{
		name:  "Spring AMQP",
		inbox: "parked %s",
		reads: []string{"__TypeId__"},
		p: amqp.Publishing{ContentType: "application/json", Body: []byte(`{"id":17}`), Headers: amqp.Table{
			"x-exception-message":    "stock of 17",
			"x-exception-stacktrace": "java.lang.IllegalStateException: stock of 17\n\tat com.acme.Stock.take(Stock.java:42)\n",
			"x-original-exchange":    "", "x-original-routingKey": "%s", "__TypeId__": "com.acme.orders.Place",
		}},
	},
	{
		name:  "MassTransit",
		inbox: "%s_error",
		p: amqp.Publishing{
			ContentType: "application/vnd.masstransit+json",
			Body: []byte(
				`{"messageId":"1","messageType":["urn:message:Acme.Orders:Place"],"message":{"id":17}}`,
			),
			Headers: amqp.Table{
				"MT-Reason": "fault", "MT-Fault-ExceptionType": "System.InvalidOperationException",
				"MT-Fault-Message": "stock of 17", "MT-Fault-InputAddress": "rabbitmq://localhost/shop/%s",
				"MT-Fault-MessageType": "Acme.Orders.Place", "MT-Fault-RetryCount": int32(3),
			},
		},
	},
	{
		name:  "NServiceBus",
		inbox: "errors of %s",
		reads: []string{"NServiceBus.EnclosedMessageTypes", "NServiceBus.MessageId"},
		p: amqp.Publishing{
			ContentType: "application/json",
			Type:        "Acme.Orders.Place",
			MessageId:   "5d41",
			Body:        []byte(`{"id":17}`),
			Headers: amqp.Table{
				"NServiceBus.FailedQ":                     "%s",
				"NServiceBus.ExceptionInfo.ExceptionType": "System.InvalidOperationException",
				"NServiceBus.ExceptionInfo.Message":       "stock of 17",
				"NServiceBus.EnclosedMessageTypes":        "Acme.Orders.Place, Acme.Contracts",
				"NServiceBus.MessageId":                   "5d41",
			},
		},
	},
	{
		name:  "Rebus",
		inbox: "error of %s",
		reads: []string{"rbs2-msg-type", "rbs2-content-type", "rbs2-msg-id"},
		p: amqp.Publishing{Body: []byte(`{"id":17}`), Headers: amqp.Table{
			"rbs2-error-details": "1 unhandled exceptions: stock of 17", "rbs2-source-queue": "%s",
			"rbs2-msg-type": "Acme.Orders.Place, Acme.Contracts", "rbs2-content-type": "application/json;charset=utf-8",
			"rbs2-msg-id": "7f1c",
		}},
	},
	{
		name:  "Wolverine",
		inbox: "wolverine of %s",
		reads: []string{"message-type"},
		p: amqp.Publishing{
			ContentType: "application/json",
			Type:        "Acme.Orders.Place",
			Body:        []byte(`{"id":17}`),
			Headers: amqp.Table{
				"exception-type": "System.InvalidOperationException", "exception-message": "stock of 17",
				"failed-at": "1795158672123", "original-destination": "rabbitmq://queue/%s", "attempts": "3",
				"message-type": "Acme.Orders.Place",
			},
		},
	},
	{
		name:  "Sneakers",
		inbox: "%s-error",
		reads: []string{"x-tenant"},
		p: amqp.Publishing{ContentType: "application/json", Body: []byte(`{"id":17}`), Headers: amqp.Table{
			"retry_info": `{"error":"stock of 17","num_attempts":6,"failed_at":"2026-11-20T07:11:12Z","error_class":"Shop::OutOfStock","error_message":"stock of 17"}`,
			"x-tenant":   "7",
		}},
	},
	{
		name:  "Watermill",
		inbox: "poison of %s",
		reads: []string{"_watermill_message_uuid", "name"},
		p: amqp.Publishing{Body: []byte(`{"id":17}`), Headers: amqp.Table{
			"_watermill_message_uuid": "6c2a", "reason_poisoned": "stock of 17", "topic_poisoned": "%s",
			"handler_poisoned": "place", "name": "Place",
		}},
	},
	{
		name:  "Laravel",
		inbox: "%s.failed",
		p: amqp.Publishing{
			ContentType: "application/json",
			Body: []byte(
				`{"displayName":"App\\Jobs\\Place","job":"Illuminate\\Queue\\CallQueuedHandler@call","data":{"commandName":"App\\Jobs\\Place","command":"O:14:"}}`,
			),
			Headers: amqp.Table{
				"laravel": amqp.Table{"attempts": int32(2)},
			},
		},
	},
}

// rejectedOnly are messages of frameworks that record nothing about a failure. Their consumers only
// reject the messages.
var rejectedOnly = []frameworkError{
	{
		name:  "Symfony Messenger",
		reads: []string{"type"},
		p: amqp.Publishing{
			ContentType: "application/json",
			Body:        []byte(`{"id":17}`),
			Headers:     amqp.Table{"type": `App\Message\Place`, "Content-Type": "application/json"},
		},
	},
	{
		name:  "Nameko",
		reads: []string{"nameko.call_id_stack"},
		p: amqp.Publishing{
			ContentType: "application/json",
			Body:        []byte(`{"args":[17],"kwargs":{}}`),
			Headers:     amqp.Table{"nameko.call_id_stack": []any{"standalone.call.0", "orders.place.6c2a"}},
		},
	},
	{
		name:  "CloudEvents",
		reads: []string{"cloudEvents_type", "cloudEvents_id"},
		p: amqp.Publishing{
			ContentType: "application/json",
			Body:        []byte(`{"id":17}`),
			Headers: amqp.Table{
				"cloudEvents_specversion": "1.0", "cloudEvents_type": "com.acme.placed", "cloudEvents_source": "/shop",
				"cloudEvents_id": "1",
			},
		},
	},
}

// TestLettersOfFrameworksGoBack checks that dlo sends a letter of a framework back to the right
// queue. A consumer of the framework must be able to read the letter as before.
func TestLettersOfFrameworksGoBack(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	all := slices.Concat(frameworkErrors, rejectedOnly)
	inboxes := []string{"dlo.letters"}
	_, ch := testenv.Channel(t, url)
	declare := func(queue string, args amqp.Table) {
		t.Helper()
		if _, err := ch.QueueDeclare(queue, true, false, false, false, args); err != nil {
			t.Fatal(err)
		}
	}
	for i := range all {
		f := &all[i]
		if f.inbox == "" {
			declare(f.queue(), amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlo.letters"})
			continue
		}
		f.inbox = fmt.Sprintf(f.inbox, f.queue())
		inboxes = append(inboxes, fmt.Sprintf("%q", f.inbox))
		declare(f.queue(), nil)
		declare(f.inbox, nil)
		f.p.Headers = maps.Clone(f.p.Headers)
		for k, v := range f.p.Headers {
			if text, ok := v.(string); ok {
				f.p.Headers[k] = strings.ReplaceAll(text, "%s", f.queue())
			}
		}
	}
	p := newChild(
		t, url,
		"brokers: [{url: %AMQP%, inboxes: ["+strings.Join(inboxes, ", ")+
			"]}]\ndefault: {retry: {delays: []}}\nrequeue: {rate: 0, watch: 1s}\n",
	)
	p.Start("")
	p.Draining()
	var mu sync.Mutex
	got := map[string][]amqp.Delivery{}
	for _, f := range all {
		key := f.inbox
		if key == "" {
			key = f.queue()
		}
		deliveries, err := ch.Consume(f.queue(), "", false, false, false, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for d := range deliveries {
				if f.inbox == "" && d.Headers["x-death"] == nil && d.Headers[deadletter.HeaderToken] == nil {
					d.Reject(false)
					continue
				}
				mu.Lock()
				got[f.name] = append(got[f.name], d)
				mu.Unlock()
				d.Ack(false)
			}
		}()
		if err := ch.PublishWithContext(t.Context(), "", key, true, false, f.p); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all letters are dead", func() bool { return p.letters("dead") == len(all) })
	for _, f := range all {
		if n := p.count("letters l JOIN origins o ON o.id = l.origin", "o.queue = $1", f.queue()); n != 1 {
			t.Errorf("%s: %d letters of its queue", f.name, n)
		}
	}
	if code, text := p.post("/api/v1/operations", requeueAtOnce(p.ids(`SELECT id, random FROM letters`))); code != 202 {
		t.Fatal(code, text)
	}
	eventually(t, "all letters quiet", func() bool { return p.letters("settled") == len(all) })
	mu.Lock()
	defer mu.Unlock()
	for _, f := range all {
		if len(got[f.name]) != 1 {
			t.Errorf("%s: its consumer got %d messages", f.name, len(got[f.name]))
			continue
		}
		d := got[f.name][0]
		if string(d.Body) != string(f.p.Body) || d.ContentType != f.p.ContentType || d.Type != f.p.Type ||
			d.MessageId != f.p.MessageId {
			t.Errorf("%s: its consumer got %s, %+v", f.name, d.Body, d)
		}
		for _, name := range f.reads {
			if fmt.Sprint(d.Headers[name]) != fmt.Sprint(f.p.Headers[name]) {
				t.Errorf("%s: its consumer got %s = %v", f.name, name, d.Headers[name])
			}
		}
	}
}
