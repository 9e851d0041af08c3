package system

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestAnErrorOfEasyNetQGoesBackAsItsMessage uses a consumer that wraps each failed message in an
// error message, as EasyNetQ does. dlo must send the original message back to the consumer. If the
// message fails again, dlo must find the row of the letter by the wrapped ids and merge the new
// error into it.
func TestAnErrorOfEasyNetQGoesBackAsItsMessage(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	p := newChild(t, url, "default: {retry: {delays: [0s]}}\nrequeue: {rate: 0, watch: 1s}\n")
	p.Start("")
	p.Draining()
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare("easy.q", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	work, err := ch.Consume("easy.q", "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	// builds the error message as DefaultConsumerErrorStrategy.cs of EasyNetQ does
	wrap := func(exception string, d *amqp.Delivery) {
		t.Helper()
		body, err := json.Marshal(map[string]any{
			"RoutingKey": "order",
			"Exchange":   "shop",
			"Queue":      "easy.q",
			"Exception":  exception,
			"Message":    string(d.Body),
			"DateTime":   time.Now().UTC(),
			"BasicProperties": map[string]any{
				"ContentType": d.ContentType, "Headers": d.Headers, "DeliveryMode": 2, "CorrelationId": d.CorrelationId,
				"Type": d.Type,
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := ch.PublishWithContext(context.Background(), "", "dlo.letters", false, false, amqp.Publishing{
			Type: "EasyNetQ.SystemMessages.Error, EasyNetQ", ContentType: "application/json", DeliveryMode: 2,
			Body: body,
		}); err != nil {
			t.Fatal(err)
		}
	}
	const body = `{"id":17}`
	wrap("System.X: first", &amqp.Delivery{
		ContentType:   "application/json",
		CorrelationId: "c-1",
		Type:          "Acme.OrderMsg, Acme",
		Headers:       amqp.Table{"x-tenant": "7"},
		Body:          []byte(body),
	})
	got := func() amqp.Delivery {
		t.Helper()
		select {
		case d := <-work:
			if string(d.Body) != body || d.Type != "Acme.OrderMsg, Acme" || d.CorrelationId != "c-1" ||
				d.ContentType != "application/json" || d.Headers["x-tenant"] != "7" ||
				d.Headers[deadletter.HeaderToken] == nil {
				t.Errorf("the consumer got %s with %+v", d.Body, d)
			}
			return d
		case <-time.After(time.Minute):
			t.Fatalf("nothing came to the consumer\n%s", p.Log())
		}
		return amqp.Delivery{}
	}
	d := got()
	wrap("System.Y: again", &d)
	eventually(t, "the letter dead, once its retry was used up", func() bool { return p.letters("dead") == 1 })
	if n := p.letters(); n != 1 || p.count("attempts", `outcome = 'came back'`) != 1 ||
		p.count("letters", `error = 'System.Y: again' AND reason = 'rejected' AND revision = 1`) != 1 {
		t.Errorf("%d rows, %d attempts came back", n, p.count("attempts", `outcome = 'came back'`))
	}
	if code, text := p.post(
		"/api/v1/operations", requeueAtOnce(p.ids(`SELECT id, random FROM letters`)),
	); code/100 != 2 {
		t.Fatal(code, text)
	}
	got()
	eventually(t, "the letter settled", func() bool { return p.letters("settled") == 1 && p.letters() == 1 })
}
