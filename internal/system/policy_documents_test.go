package system

import (
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestThePolicyOfTheDocuments runs the commands that protect queues, from one document after the
// other. The vhost also has a policy for all queues, as real sites have. No command may undo
// another one. The check at the end of each document must show that the queues are protected. The
// policy for dlo's queues must have priority over the policy for all queues.
func TestThePolicyOfTheDocuments(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	conn := publishParked(t, address, "orders", 0, nil)
	publishParked(t, address, "emails", 0, nil)
	publishParked(t, address, "dlo.letters", 0, amqp.Table{"x-queue-type": "quorum"})
	publishParked(t, address, "other", 0, nil)
	all := map[string]any{"pattern": ".*", "apply-to": "queues", "definition": map[string]any{"max-length": 1000}}
	if err := node.API(http.MethodPut, "/api/policies/"+url.PathEscape(vhost)+"/of-the-site", all, nil); err != nil {
		t.Fatal(err)
	}
	for _, document := range []string{"README.md", "docs/quickstart.md", "docs/consumers.md"} {
		list := commandsOf(t, document, "")
		if len(list) < 3 {
			t.Fatalf("%s has %d commands", document, len(list))
		}
		proof := ""
		for _, command := range list {
			out := rabbitmqctl(t, node, vhost, command)
			if strings.Contains(command, " list_queues") {
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
		if err := ch.PublishWithContext(
			t.Context(), "", queue, true, false, amqp.Publishing{Body: []byte("x")},
		); err != nil {
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

// commandsOf returns the commands that run rabbitmqctl, dlo or curl in the code blocks of a
// section, in order. If "section" is "", it searches the whole document and returns only the
// rabbitmqctl commands that protect queues.
func commandsOf(t *testing.T, document, section string) []string {
	t.Helper()
	text, err := os.ReadFile("../../" + document)
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`^ *rabbitmqctl (list_policies|list_queues|set_policy)`)
	if section != "" {
		_, behind, ok := strings.Cut(string(text), "\n## "+section+"\n")
		if !ok {
			t.Fatalf("%s has no section %q", document, section)
		}
		behind, _, _ = strings.Cut(behind, "\n## ")
		text, command = []byte(behind), regexp.MustCompile(`^ *(rabbitmqctl|dlo|curl) [-a-z]`)
	}
	var list []string
	code := false
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		}
		if command.MatchString(line) && (section == "" || code) {
			list = append(list, strings.TrimSpace(line))
		}
	}
	return list
}

// words splits a command of a document into words, as a shell would.
func words(command string) []string {
	var all []string
	for _, word := range regexp.MustCompile(`'([^']*)'|\S+`).FindAllString(command, -1) {
		all = append(all, strings.Trim(word, "'"))
	}
	return all
}

// rabbitmqctl runs a rabbitmqctl command of a document in a vhost and returns its output. It also
// applies a grep that follows the command.
func rabbitmqctl(t *testing.T, node *testenv.Node, vhost, command string) string {
	t.Helper()
	command, grep, filtered := strings.Cut(command, " | grep ")
	args := words(command)[1:]
	var out string
	var err error
	within(t, time.Minute, command, func() bool { // a restarted node serves clients before rabbitmqctl finds it running
		out, err = node.Ctl(append([]string{args[0], "-p", vhost}, args[1:]...)...)
		return !strings.Contains(out, "requires the 'rabbit' app to be running")
	})
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	if !filtered {
		return out
	}
	var kept strings.Builder
	for line := range strings.Lines(out) {
		if regexp.MustCompile(strings.Trim(grep, "'")).MatchString(line) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
