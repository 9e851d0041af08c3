package system

import (
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestThePolicyOfTheDocuments runs the commands of each document that protect queues, one document
// after the other, beside a policy for all queues, as sites have one. None undoes another, and the
// proof that they end with says that the queues are protected. The policy for the queues of dlo
// takes them out of the one for all.
func TestThePolicyOfTheDocuments(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	conn := parked(t, address, "orders", 0, nil)
	parked(t, address, "emails", 0, nil)
	parked(t, address, "dlo.letters", 0, amqp.Table{"x-queue-type": "quorum"})
	parked(t, address, "other", 0, nil)
	all := map[string]any{"pattern": ".*", "apply-to": "queues", "definition": map[string]any{"max-length": 1000}}
	if err := node.API(http.MethodPut, "/api/policies/"+url.PathEscape(vhost)+"/of-the-site", all, nil); err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`(?m)^ *rabbitmqctl (list_policies|list_queues|set_policy)( .*)?$`)
	for _, document := range []string{"README.md", "docs/quickstart.md", "docs/consumers.md"} {
		text, err := os.ReadFile("../../" + document)
		if err != nil {
			t.Fatal(err)
		}
		list := command.FindAllStringSubmatch(string(text), -1)
		if len(list) < 3 {
			t.Fatalf("%s has %d commands", document, len(list))
		}
		proof := ""
		for _, m := range list {
			args := []string{m[1], "-p", vhost}
			for _, word := range regexp.MustCompile(`'([^']*)'|\S+`).FindAllString(m[2], -1) {
				args = append(args, strings.Trim(word, "'"))
			}
			out, err := node.Ctl(args...)
			if err != nil {
				t.Fatalf("%s: %s: %v\n%s", document, m[0], err, out)
			}
			if m[1] == "list_queues" {
				proof = out
			}
		}
		for queue, want := range map[string]string{"orders": "dlo", "emails": "dlo", "other": "of-the-site"} {
			if !strings.Contains(proof, queue+"\t"+want+"\n") {
				t.Errorf("%s proves of %s:\n%s", document, queue, proof)
			}
		}
	}
	out, err := node.Ctl("list_queues", "-p", vhost, "name", "policy")
	if err != nil || !strings.Contains(out, "dlo.letters\tdlo-own") {
		t.Errorf("%s %v", out, err)
	}
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := ch.ExchangeDeclare("dlo.dlx", "fanout", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := ch.QueueBind("dlo.letters", "", "dlo.dlx", false, nil); err != nil {
		t.Fatal(err)
	}
	for _, queue := range []string{"orders", "emails"} {
		if err := ch.PublishWithContext(t.Context(), "", queue, true, false, amqp.Publishing{Body: []byte("x")}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the message", func() bool {
			d, ok, err := ch.Get(queue, false)
			if err != nil {
				t.Fatal(err)
			}
			return ok && d.Reject(false) == nil
		})
	}
	eventually(t, "what was rejected is in the inbox", func() bool { return ready(t, conn, "dlo.letters") == 2 })
}
