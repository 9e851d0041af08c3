package system

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestLettersAtTheEdges sends unusual letters in one window with ordinary ones. The unusual letters
// have 10,000 entries of x-death, no properties, names of 255 bytes, or names that are not UTF-8.
// Each letter must be stored, must be shown, and must accept actions. Letters that cannot be sent
// must be held or dead with an accurate reason, and all others must arrive.
func TestLettersAtTheEdges(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	_, address := testenv.VHost(t)
	long := "work-" + strings.Repeat("ü", 125) // this name has 255 bytes
	a := newAudit(t, address, long, nil)
	p := newChild(t, address, fast)
	p.Start("")
	p.Draining()
	p.Stop()
	deaths := make([]any, 10_000)
	for i := range deaths {
		if deaths[i] = (amqp.Table{}); i < 1_000 {
			deaths[i] = amqp.Table{"queue": long[:20], "count": int64(1)}
		}
	}
	deaths[0] = amqp.Table{"queue": long, "reason": "rejected"}
	foreign := "caf\xe9"
	odd := []struct {
		name, why string
		p         amqp.Publishing
	}{
		{"10,000 deaths", "", amqp.Publishing{Body: []byte("10,000 deaths"), Headers: amqp.Table{"x-death": deaths}}},
		{"empty", "nothing says which queue it died in", amqp.Publishing{}},
		{
			"foreign queue",
			"is not UTF-8",
			amqp.Publishing{
				Body: []byte("foreign queue"),
				Headers: amqp.Table{
					"x-death": []any{
						amqp.Table{
							"queue":        foreign,
							"reason":       "rejected",
							"exchange":     foreign,
							"routing-keys": []any{foreign},
						},
					},
				},
			},
		},
		{
			"foreign header",
			"",
			amqp.Publishing{
				Body: []byte("foreign header"),
				Headers: amqp.Table{
					foreign:   foreign,
					"x-death": []any{amqp.Table{"queue": long, "reason": "rejected"}},
				},
			},
		},
		{
			"long header",
			"",
			amqp.Publishing{
				Body: []byte("long header"),
				Headers: amqp.Table{
					strings.Repeat("h", 255): "v",
					"x-death":                []any{amqp.Table{"queue": long, "reason": "rejected"}},
				},
			},
		},
	}
	a.publish(10, func(i int) (string, string) { return fmt.Sprintf("letter %d", i), fmt.Sprint(i) })
	a.work()
	eventually(t, "good letters in the inbox", func() bool { return ready(t, a.conn, "dlo.letters") == 10 })
	ch := a.channel()
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	for _, o := range odd { // published directly to the inbox, so that RabbitMQ does not change the headers
		o.p.DeliveryMode = 2
		c, err := ch.PublishWithDeferredConfirm("", "dlo.letters", true, false, o.p)
		if err != nil || !c.Wait() {
			t.Fatalf("%s: %v", o.name, err)
		}
	}
	p.Start("")
	p.Draining()
	eventually(
		t, "all letters stored and decided",
		func() bool { return p.letters() == 10+len(odd) && p.letters("received") == 0 },
	)
	const sent = 13 // the ordinary letters, and the unusual letters with a known queue
	eventually(
		t, "what has a queue arrives there",
		func() bool { return a.acceptedLetters() == sent && p.letters("settled") == sent },
	)
	for _, o := range odd {
		if o.why != "" && p.count("letters", `state IN ('held', 'dead') AND why LIKE '%`+o.why+`%'`) != 1 {
			t.Errorf("%s: nothing says %q", o.name, o.why)
		}
	}
	ids := p.ids(`SELECT id, random FROM letters`)
	for _, id := range ids {
		for _, path := range []string{"/letters/", "/api/v1/letters/"} {
			if code, body := p.get(path + string(id)); code != 200 || len(body) > 1_000_000 && path == "/letters/" {
				t.Errorf("%s%s: %d, %d bytes", path, id, code, len(body))
			}
		}
	}
	for _, path := range []string{
		"/", "/letters", "/queues", "/api/v1/letters", "/api/v1/queues", "/letters?q=" + url.QueryEscape("queue:"+long),
	} {
		if code, _ := p.get(path); code != 200 {
			t.Errorf("%s: %d", path, code)
		}
	}
	left := p.ids(`SELECT id, random FROM letters WHERE state IN ('held', 'dead')`)
	if len(left) != 2 {
		t.Fatalf("%d letters are left", len(left))
	}
	// The two letters that are left cannot be sent anywhere. The operation must report this for
	// each letter, and must end.
	if code, text := p.post("/api/v1/operations", requeueAtOnce(left)); code >= 500 {
		t.Errorf("requeue: %d %s", code, text)
	}
	if code, text := p.post("/api/v1/operations", requeueAtOnce([]deadletter.ID{ids[0]})); code >= 500 {
		t.Errorf("requeue: %d %s", code, text)
	}
	if n := p.letters("held", "dead"); n != 2 {
		t.Errorf("%d letters are left after a requeue that has no target", n)
	}
	if strings.Contains(p.Log(), "panic") || strings.Count(p.Log(), `msg="session ended"`) > 0 {
		t.Error("a session ended")
	}
}
