package rabbitmq_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestWhereAQueueLeads checks the method Onward on this version of the broker. For queues in which
// letters expired, the method must report where the broker sends these letters.
func TestWhereAQueueLeads(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	to := func(exchange, key string) amqp.Table {
		return amqp.Table{"x-dead-letter-exchange": exchange, "x-dead-letter-routing-key": key}
	}
	by := func(exchange string) amqp.Table { return amqp.Table{"x-dead-letter-exchange": exchange} }
	declare(t, address, map[string]amqp.Table{
		"work":              by("dlo.dlx"),
		"other":             nil,
		"team.dlq":          nil,
		"to work":           to("", "work"),
		"to the key":        by(""),
		"to itself":         to("", "to itself"),
		"to the office":     by("dlo.dlx"),
		"to the inbox":      to("", "team.dlq"),
		"direct":            to("direct", "work.retried"),
		"direct by the key": by("direct"),
		"direct nowhere":    to("direct", "nothing"),
		"fanout":            by("fanout"),
		"two":               by("two"),
		"topic":             to("topic", "a.b"),
		"topic of one":      to("one topic", "a.b"),
		"headers":           by("headers"),
		"with the inbox":    by("inbox too"),
		"no exchange":       by("gone"),
		"chain":             by("chain"),
		"policy":            nil,
		"quorum": {
			"x-queue-type": "quorum", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "work",
		},
	})
	ch := openChannel(t, address, nil)
	for name, kind := range map[string]string{
		"direct": "direct", "fanout": "fanout", "two": "fanout", "topic": "topic", "one topic": "topic",
		"headers": "headers", "inbox too": "fanout", "chain": "fanout",
	} {
		if err := ch.ExchangeDeclare(name, kind, true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range [][3]string{
		{"direct", "work.retried", "work"},
		{"direct", "other", "other"},
		{"fanout", "", "work"},
		{"two", "", "work"},
		{"two", "", "other"},
		{"topic", "a.*", "work"},
		{"topic", "a.b", "other"},
		{"topic", "b", "team.dlq"},
		{"one topic", "#", "work"},
		{"one topic", "a.b", "work"},
		{"headers", "", "work"},
		{"inbox too", "", "work"},
		{"inbox too", "", "team.dlq"},
	} {
		if err := ch.QueueBind(b[2], b[1], b[0], false, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := ch.ExchangeBind("fanout", "", "chain", false, nil); err != nil {
		t.Fatal(err)
	}
	consumed, err := ch.Consume("other", "", true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for range consumed {
		}
	}()
	policy := map[string]any{
		"pattern":    "^policy$",
		"apply-to":   "queues",
		"definition": map[string]any{"dead-letter-exchange": "", "dead-letter-routing-key": "work"},
	}
	if err := node.API(http.MethodPut, "/api/policies/"+url.PathEscape(vhost)+"/p", policy, nil); err != nil {
		t.Fatal(err)
	}
	b := brokerAt(node, address)
	link := connect(t, b)
	work, ends := deadletter.Onward{Queue: "work"}, deadletter.Onward{Ends: true}
	why := func(text string) deadletter.Onward { return deadletter.Onward{Why: text} }
	for _, c := range []struct {
		queue, key string
		want       deadletter.Onward
	}{
		{"to work", "k", work},
		{"quorum", "k", work},
		{"policy", "k", work},
		{"to the key", "work", work},
		{"to the key", "team.dlq", ends},
		{"to the key", "", why("nobody consumes it, and its dead letters go on to 1 queues")},
		{"to itself", "k", why("nobody consumes it, and its dead letters go on to 1 queues")},
		{"to the office", "k", ends},
		{"to the inbox", "k", ends},
		{"team.dlq", "k", ends},
		{"other", "k", deadletter.Onward{Consumed: true}},
		{"direct", "other", work},
		{"direct by the key", "work.retried", work},
		{"direct nowhere", "other", why("nobody consumes it, and its dead letters go on to 0 queues")},
		{"fanout", "k", work},
		{"two", "k", why("nobody consumes it, and its dead letters go on to 2 queues")},
		{"topic", "k", why("nobody consumes it, and its dead letters go on to 2 queues")},
		{"topic of one", "k", work},
		{"headers", "k", work},
		{"with the inbox", "k", ends},
		{
			"no exchange", "k",
			why("the management API does not say where exchange gone leads: there is no such exchange"),
		},
		{"chain", "k", why("the management API does not say where exchange chain leads: it leads to another exchange")},
		{"gone", "k", why("that queue is gone")},
		{"wait \xff", "k", why("the management API cannot be asked for a queue of that name")},
		{"..", "k", why("the management API cannot be asked for a queue of that name")},
		{strings.Repeat("n", 256), "k", why("the management API cannot be asked for a queue of that name")},
	} {
		var got deadletter.Onward
		// the API does not show the numbers of a new queue for some time, and they are unknown
		// until then
		for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			if got = link.Onward(
				t.Context(), c.queue, c.key, deadletter.Route{},
			); got == c.want || time.Now().After(deadline) {
				break
			}
		}
		if got != c.want {
			t.Errorf("%q: %+v, want %+v", c.queue, got, c.want)
		}
	}
}

// TestWhereAQueueLeadsWithoutAnAnswer covers letters that expired in a queue, while the management
// API does not say where that queue sends its dead letters. If a letter came through dlo's
// exchange, dlo must assume that the letter had reached the end of its way when it expired in this
// queue. For other letters, the next queue is unknown, and the result contains the reason.
func TestWhereAQueueLeadsWithoutAnAnswer(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(`{"name":"another","consumers":1}`))
	}))
	t.Cleanup(other.Close)
	none := rabbitmq.Broker{URL: "amqp://127.0.0.1:1/", Exchange: "dlo.dlx", Inboxes: []string{"dlo.letters"}}
	wrong, gone := none, none
	wrong.Management, gone.Management = other.URL, "http://127.0.0.1:1"
	for want, b := range map[string]rabbitmq.Broker{
		"broker main has no management API in the configuration to ask": none,
		"the management API does not say whether anybody consumes it":   wrong,
		"the management API does not say: management: queue wait: dial": gone,
	} {
		link := connect(t, b)
		if on := link.Onward(
			t.Context(), "wait", "k", deadletter.Route{RoutingKey: "parked"},
		); !strings.HasPrefix(on.Why, want) || on.Queue != "" || on.Ends || on.Consumed {
			t.Errorf("%+v, want %s", on, want)
		}
		if on := link.Onward(
			t.Context(), "wait", "k", deadletter.Route{Exchange: "dlo.dlx"},
		); on != (deadletter.Onward{Ends: true}) {
			t.Errorf("through the exchange of dlo: %+v", on)
		}
	}
}
