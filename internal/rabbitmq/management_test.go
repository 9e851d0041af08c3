package rabbitmq_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"
)

// connect returns a link to a vhost of the shared node.
func connect(t *testing.T, b rabbitmq.Broker) *rabbitmq.Link {
	t.Helper()
	b.Name, b.InFlight, b.ConfirmTimeout = "main", 1, time.Second
	link, err := rabbitmq.Connect(b, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return link
}

// declare declares durable queues, each with its arguments.
func declare(t *testing.T, url string, queues map[string]amqp.Table) {
	t.Helper()
	ch := openChannel(t, url, nil)
	for name, args := range queues {
		if _, err := ch.QueueDeclare(name, true, false, false, false, args); err != nil {
			t.Fatal(name, err)
		}
	}
}

// TestFactsOfAQueue checks the facts that result from a queue's arguments and policies on this
// version of the broker.
func TestFactsOfAQueue(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	declare(t, address, map[string]amqp.Table{
		"plain": nil,
		"arguments": {
			"x-max-length": int32(7), "x-max-length-bytes": int32(900), "x-dead-letter-exchange": "dlx",
			"x-single-active-consumer": true, "x-message-ttl": int32(5000),
		},
		"policy":  nil,
		"at once": {"x-message-ttl": int32(0)},
		"stream":  {"x-queue-type": "stream"},
		"both": {
			"x-queue-type": "quorum", "x-max-length": int32(5), "x-dead-letter-exchange": "",
			"x-dead-letter-routing-key": "grave", "x-message-ttl": int32(4000),
		},
	})
	policies := "/api/policies/" + url.PathEscape(vhost) + "/"
	for name, definition := range map[string]map[string]any{
		"policy": {
			"max-length": 3, "max-length-bytes": 1000, "dead-letter-exchange": "dlx", "dead-letter-routing-key": "k",
			"message-ttl": 3000,
		},
		"both": {"max-length": 2, "dead-letter-exchange": "dlx", "message-ttl": 2000},
	} {
		if err := node.API(http.MethodPut, policies+name, map[string]any{
			"pattern": "^" + name + "$", "apply-to": "queues", "definition": definition,
		}, nil); err != nil {
			t.Fatal(err)
		}
	}
	management := node.ManagementURLOf("guest:guest")
	link := connect(t, rabbitmq.Broker{URL: address, Management: management})
	known := deadletter.QueueFacts{Known: true, Exists: true}
	forms := map[string]string{}
	for name, want := range map[string]func(*deadletter.QueueFacts){
		"plain": func(f *deadletter.QueueFacts) { f.DeadLetters = deadletter.DeadLettersNowhere },
		"arguments": func(f *deadletter.QueueFacts) {
			f.MaxLength, f.MaxBytes, f.DeadLetters, f.SingleActive, f.TTL, f.LeadsOn = 7, 900, "exchange dlx", true, 5*time.Second, true
		},
		"policy": func(f *deadletter.QueueFacts) {
			f.MaxLength, f.MaxBytes, f.DeadLetters, f.TTL, f.LeadsOn = 3, 1000, "exchange dlx with key k", 3*time.Second, true
		},
		"both": func(f *deadletter.QueueFacts) {
			f.MaxLength, f.DeadLetters, f.TTL, f.LeadsOn = 2, "queue grave", 2*time.Second, true
		},
		"at once": func(
			f *deadletter.QueueFacts,
		) {
			f.DeadLetters, f.TTL = deadletter.DeadLettersNowhere, time.Millisecond
		},
		"stream": func(f *deadletter.QueueFacts) { f.DeadLetters, f.Stream = deadletter.DeadLettersNowhere, true },
	} {
		want, expected := known, want
		expected(&want)
		var got deadletter.QueueFacts
		// the API does not show the numbers of a new queue for some time, and they are unknown
		// until then
		for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
			got = link.Facts(t.Context(), name)
			forms[name], got.Form = got.Form, ""
			if got == want || time.Now().After(deadline) {
				break
			}
			if got.Consumers > 0 || got.Ready > 0 {
				t.Fatalf("%s: %+v", name, got)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	ch := openChannel(t, address, nil)
	for name, exclusive := range map[string]bool{"exclusive": true, "auto-delete": false} {
		if _, err := ch.QueueDeclare(name, !exclusive, !exclusive, exclusive, false, nil); err != nil {
			t.Fatal(err)
		}
		forms[name] = link.Facts(t.Context(), name).Form
	}
	if forms["policy"] != forms["plain"] {
		t.Errorf("a policy makes another queue of %q: %q", forms["plain"], forms["policy"])
	}
	delete(forms, "policy")
	for name, form := range forms {
		for other, same := range forms {
			if form == "" || form == same && name != other {
				t.Errorf("queue %s has the form %q, like %s", name, form, other)
			}
		}
	}
	missing := deadletter.UnknownQueue
	missing.Known = true
	connected := runLink(t, rabbitmq.Broker{URL: address, Management: management, InFlight: 1})
	if err := connected.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, link := range []*rabbitmq.Link{link, connected} {
		if got := link.Facts(t.Context(), "missing"); got != missing {
			t.Errorf("a queue that does not exist: %+v", got)
		}
	}
	if got := connect(t, rabbitmq.Broker{URL: address}).Facts(t.Context(), "plain"); got != deadletter.UnknownQueue {
		t.Errorf("without the management API: %+v", got)
	}
	if got := connect(t, rabbitmq.Broker{
		URL: address, Management: node.ManagementURLOf("guest:wrong"),
	}).Facts(t.Context(), "plain"); got != silentFacts() {
		t.Errorf("without rights: %+v", got)
	}
}

// TestAQueueThatOnlyTheAPIDoesNotKnow covers a management URL that leads to another broker. dlo
// must then believe the AMQP broker. Otherwise it would hold letters although their queue exists.
func TestAQueueThatOnlyTheAPIDoesNotKnow(t *testing.T) {
	t.Parallel()
	_, address := testenv.Broker(t).VHost(t)
	declare(t, address, map[string]amqp.Table{"here": nil})
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	link := runLink(t, rabbitmq.Broker{URL: address, Management: other.URL, InFlight: 1})
	if err := link.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := deadletter.UnknownQueue
	want.Known, want.Exists = true, true
	if got := link.Facts(t.Context(), "here"); got != want {
		t.Errorf("%+v", got)
	}
	owner := openChannel(t, address, nil)
	if _, err := owner.QueueDeclare("here too", false, false, true, false, nil); err != nil {
		t.Fatal(err)
	}
	if got := link.Facts(t.Context(), "here too"); got != want {
		t.Errorf("of another connection alone: %+v", got)
	}
	want.Exists = false
	if got := link.Facts(t.Context(), "nowhere"); got != want {
		t.Errorf("%+v", got)
	}
}

// silentFacts returns the facts that dlo has about a queue while the management API does not
// respond.
func silentFacts() deadletter.QueueFacts {
	f := deadletter.UnknownQueue
	f.Silent = true
	return f
}

// TestASilentManagementAPIIsNotAskedForEveryQueue checks that an unavailable API delays a plan
// once, not once for each queue.
func TestASilentManagementAPIIsNotAskedForEveryQueue(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	var asked atomic.Int64
	over := make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked.Add(1)
		<-over
	}))
	t.Cleanup(func() { close(over); api.Close() })
	link := connect(t, rabbitmq.Broker{URL: "amqp://guest:guest@127.0.0.1:1/", Management: api.URL})
	for range 50 {
		if got := link.Facts(t.Context(), "q"); got != silentFacts() {
			t.Errorf("%+v", got)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
}
