package system

import (
	"fmt"
	"net/url"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/deadletteroffice/dlo/web/view"
	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestALetterIsPublishedByHand runs the commands that dlo shows for publishing a letter by hand.
// The message that arrives must equal the letter. Whole numbers in its headers arrive as int64, and
// fractions as double.
func TestALetterIsPublishedByHand(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	connection, err := amqp.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	ch, err := connection.Channel()
	if err != nil {
		t.Fatal(err)
	}
	const queue = `mail $(it's) "q"`
	if _, err := ch.QueueDeclare(queue, true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	body := []byte("\x00'\xff\n{}")
	o := deadletter.Origin{VHost: vhost, Queue: queue}
	sent := deadletter.Properties{
		ContentType:     "application/x'",
		ContentEncoding: "identity",
		DeliveryMode:    2,
		Priority:        3,
		CorrelationID:   "c",
		ReplyTo:         "r",
		Expiration:      "60000",
		MessageID:       "é\u202e",
		Timestamp:       time.Unix(1763625600, 0).UTC(),
		Type:            "t",
		AppID:           "`a`",
		Headers: deadletter.Table{
			"text":  "a\n'b'\x00\u200b",
			"int32": int32(-5),
			"large": int64(1) << 60,
			"third": float32(2),
			"small": 1e-30,
			"yes":   true,
			"list":  []any{"x", int8(1), deadletter.Table{"in": int64(1)}},
			"void":  nil,
		},
	}
	want := amqp.Table{
		"text":  "a\n'b'\x00\u200b",
		"int32": int64(-5),
		"large": int64(1) << 60,
		"third": float64(2),
		"small": 1e-30,
		"yes":   true,
		"list":  []any{"x", int64(1), amqp.Table{"in": int64(1)}},
	}
	management, err := url.Parse(node.ManagementURL())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		copy view.Copy
		fill *strings.Replacer
	}{
		"curl": {
			view.Curl(o, sent, body), strings.NewReplacer("USER", "guest:guest", "HOST:15672", management.Host),
		},
		"rabbitmqadmin": {
			view.Admin(o, sent, body),
			strings.NewReplacer(
				"USER", "guest", "PASSWORD", "guest", "HOST", management.Hostname()+" --port "+management.Port(),
			),
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(name); err != nil {
				testenv.Unavailable(t, fmt.Errorf("%w: %v", testenv.ErrMissing, err))
			}
			said, err := exec.CommandContext(t.Context(), "sh", "-c", c.fill.Replace(c.copy.Text)).CombinedOutput()
			if err != nil || strings.Contains(string(said), "NOT routed") {
				t.Fatalf("%v %s\n%s", err, said, c.copy.Text)
			}
			d, there, err := ch.Get(queue, true)
			if err != nil || !there {
				t.Fatalf("nothing arrived: %v, it said %s", err, said)
			}
			if string(d.Body) != string(body) || d.ContentType != sent.ContentType ||
				d.ContentEncoding != sent.ContentEncoding || d.DeliveryMode != 2 || d.Priority != 3 ||
				d.CorrelationId != "c" || d.ReplyTo != "r" || d.Expiration != "60000" ||
				d.MessageId != sent.MessageID || !d.Timestamp.Equal(sent.Timestamp) || d.Type != "t" ||
				d.AppId != sent.AppID {
				t.Errorf("%+v", d)
			}
			if diff := cmp.Diff(want, d.Headers); diff != "" {
				t.Error(diff)
			}
		})
	}
}
