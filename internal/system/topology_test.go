package system

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestLostDeadLettersAreFound declares a queue without a dead-letter exchange. dlo must find this
// queue when it looks at the broker, when it reads the broker's definitions file, and while the
// server runs. After the commands of the plan, dlo must find nothing, and a rejected message must
// become a letter.
func TestLostDeadLettersAreFound(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	text := fmt.Sprintf("brokers: [{url: %q, management: %q}]\n", address, node.ManagementURLOf("guest:guest"))
	in := url.PathEscape(vhost)
	if err := node.API(http.MethodPut, "/api/queues/"+in+"/orders", map[string]any{"durable": true}, nil); err != nil {
		t.Fatal(err)
	}
	p := serve(t, address, text, nil).child
	file := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(file, []byte(node.ManagementURLOf("guest:guest")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	definitions := func() string {
		var all json.RawMessage
		if err := node.API(http.MethodGet, "/api/definitions/"+in, nil, &all); err != nil {
			t.Fatal(err)
		}
		return string(all)
	}
	eventually(t, "the server finds it", func() bool {
		_, body := p.get("/api/v1/topology/findings")
		return strings.Contains(body, `"kind":"no_exchange"`)
	})
	for name, args := range map[string][]string{
		"server": nil,
		"broker": {"--broker", "@" + file, "--vhost", vhost},
		"file":   {"-"},
	} {
		out, _ := p.dlo(t.Context(), 5, definitions(), append([]string{"topology", "check"}, args...)...)
		if !strings.Contains(
			out,
			"queues will drop what its consumers reject\n\nnotify  no_exchange\n  orders has no dead-letter exchange",
		) || strings.Count(out, "cure:") != 1 {
			t.Errorf("%s:\n%s", name, out)
		}
	}
	commands, _ := p.dlo(t.Context(), 0, "", "topology", "plan", "orders", "-o", "rabbitmqctl")
	comment, command, _ := strings.Cut(commands, "\n")
	if comment != "# broker main, vhost "+vhost {
		t.Error(comment)
	}
	words, err := arguments(strings.TrimSuffix(command, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := node.Ctl(words...); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--broker", "@" + file, "--vhost", vhost}, {"-"}} {
		p.dlo(t.Context(), 0, definitions(), append([]string{"topology", "check"}, args...)...)
	}
	conn, err := amqp.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "a rejected message is taken in", func() bool {
		if err := ch.PublishWithContext(
			t.Context(), "", "orders", false, false, amqp.Publishing{Body: []byte("x")},
		); err != nil {
			t.Fatal(err)
		}
		if d, ok, err := ch.Get("orders", false); err != nil {
			t.Fatal(err)
		} else if ok {
			if err := d.Reject(false); err != nil {
				t.Fatal(err)
			}
		}
		return p.letters() > 0
	})
}
