package system

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	neturl "net/url"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestTheBrokerRetriesWhileDloIsDown stops dlo while letters wait in the broker. The letters must
// arrive in their queue while dlo is down. After its start, dlo must find out which letters were
// rejected again, and that all others arrived.
func TestTheBrokerRetriesWhileDloIsDown(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	for _, waiter := range []string{"wait-queue", "message-ttl"} {
		t.Run(waiter, func(t *testing.T) {
			t.Parallel()
			_, url := testenv.VHost(t)
			a := newAudit(t, url, "work", nil)
			var worker seen
			a.refuse = func(d *amqp.Delivery) bool {
				worker.refuse(d)
				return d.Headers[deadletter.HeaderAttempt] == nil || strings.HasPrefix(string(d.Body), "bad")
			}
			p := newChild(
				t, url, "default: {retry: {delays: [3s], waiter: "+waiter+"}}\nrequeue: {rate: 0, watch: 1s}\n",
			)
			p.Start("")
			p.Draining()
			p.Waiting()
			a.work()
			a.publish(20, func(i int) (string, string) {
				if i%2 == 0 {
					return fmt.Sprintf("bad letter %d", i), ""
				}
				return fmt.Sprintf("good letter %d", i), ""
			})
			eventually(
				t, "all letters wait in the broker",
				func() bool { return p.count("letters", `waits_in IS NOT NULL`) == 20 },
			)
			id := p.ids(`SELECT id, random FROM letters LIMIT 1`)[0]
			p.post("/api/v1/operations", requeueAtOnce([]deadletter.ID{id}))
			eventually(t, "a requeue of what waits there is turned down", func() bool {
				return p.count("operation_letters", `result = 'skipped' AND reason = $1`, deadletter.WhyInBroker) == 1
			})
			if code, page := p.get("/letters/" + string(id)); code != http.StatusOK ||
				!strings.Contains(page, "This letter waits in the broker") {
				t.Errorf("its page: %d %s", code, page)
			}
			p.Kill9()
			eventually(t, "all letters arrive without dlo", func() bool {
				return len(worker.withBody("good letter 19")) == 2 && len(worker.withBody("bad letter 18")) == 2
			})
			p.Start("")
			eventually(
				t, "the rejected ones are dead",
				func() bool { return p.count("letters", `state = 'dead' AND attempts = 1`) == 10 },
			)
			eventually(t, "the others are settled", func() bool {
				return p.count("letters", `state = 'settled' AND unverified = 1`) == 10
			})
			if n := p.letters(); n != 20 {
				t.Errorf("%d rows of 20 letters", n)
			}
			if n := a.copies(); n != 10 {
				t.Errorf("%d copies of 10 letters", n)
			}
		})
	}
}

// TestAnOriginThatIsGoneWhenTheWaitIsOver deletes the origin queue while a letter waits in the
// broker. The broker drops the letter silently. If the management API shows that the queue is gone,
// dlo must hold the letter. Without the management API, dlo cannot know this, and the letter must
// become unverified.
func TestAnOriginThatIsGoneWhenTheWaitIsOver(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	for _, c := range []struct{ management, end string }{
		{fmt.Sprintf(", management: %q", node.ManagementURLOf("guest:guest")), `state = 'held'
			AND why LIKE 'no target: queue work does not exist%' AND attempts = 0`},
		{"", `state = 'settled' AND unverified = 1`},
	} {
		t.Run("management"+c.management, func(t *testing.T) {
			t.Parallel()
			_, url := testenv.VHost(t)
			a := newAudit(t, url, "work", nil)
			a.refuse = func(*amqp.Delivery) bool { return true }
			p := newChild(
				t, url,
				"brokers: [{url: %AMQP%"+c.management+
					"}]\ndefault: {retry: {delays: [2s], waiter: wait-queue}}\nrequeue: {watch: 1s}\n",
			)
			p.Start("")
			p.Draining()
			p.Waiting()
			a.work()
			a.publish(3, func(i int) (string, string) { return fmt.Sprintf("letter %d", i), "" })
			eventually(
				t, "all letters wait in the broker",
				func() bool { return p.count("letters", `waits_in = 'dlo.wait.2000'`) == 3 },
			)
			if _, err := a.channel().QueueDelete("work", false, false, false); err != nil {
				t.Fatal(err)
			}
			eventually(
				t, "the letters say so", func() bool { return p.ask(`SELECT count(*) FROM letters WHERE `+c.end) == 3 },
			)
		})
	}
}

// TestWhatTheBrokerMayHaveDropped uses two cases in which the broker drops waiting letters. In the
// first case, the letters are forwarded to a full queue with a length limit. In the second case, a
// wait queue is deleted with its letters. dlo must not report these letters as arrived.
func TestWhatTheBrokerMayHaveDropped(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	management := fmt.Sprintf(", management: %q", node.ManagementURLOf("guest:guest"))
	for _, c := range []struct {
		name   string
		args   amqp.Table
		happen func(ch *amqp.Channel) error
		end    string
	}{
		{"nothing happened", nil, func(*amqp.Channel) error { return nil }, `state = 'settled' AND unverified = 0`},
		{
			"a queue with a limit",
			amqp.Table{"x-max-length": 3, "x-overflow": "reject-publish"},
			func(*amqp.Channel) error { return nil },
			`state = 'settled' AND unverified = 1 OR state = 'held' AND why LIKE 'in doubt: queue work is full%'`,
		},
		{"the wait queue is deleted", nil, func(ch *amqp.Channel) error {
			_, err := ch.QueueDelete("dlo.wait.4000", false, false, false)
			return err
		}, `state = 'held' AND why LIKE 'in doubt: dlo.wait.4000, in which it waited, is gone%'`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			vhost, url := testenv.VHost(t)
			a := newAudit(t, url, "work", c.args)
			eventually(t, "the API shows whether a policy limits the queue", func() bool {
				var queue struct {
					Effective *json.RawMessage `json:"effective_policy_definition"`
					Ready     *int             `json:"messages_ready"`
				}
				err := node.API(http.MethodGet, "/api/queues/"+neturl.PathEscape(vhost)+"/work", nil, &queue)
				return err == nil && queue.Effective != nil && queue.Ready != nil
			})
			p := newChild(
				t, url,
				"brokers: [{url: %AMQP%"+management+
					"}]\ndefault: {retry: {delays: [4s], waiter: wait-queue}}\nrequeue: {watch: 1s}\n",
			)
			p.Start("")
			p.Draining()
			p.Waiting()
			a.work()
			a.publish(3, func(i int) (string, string) { return fmt.Sprintf("letter %d", i), "" })
			eventually(
				t, "all letters wait in the broker",
				func() bool { return p.count("letters", `waits_in = 'dlo.wait.4000'`) == 3 },
			)
			if err := c.happen(a.channel()); err != nil {
				t.Fatal(err)
			}
			eventually(t, c.end, func() bool { return p.ask(`SELECT count(*) FROM letters WHERE `+c.end) == 3 })
		})
	}
}

// TestWaitQueuesThatVanish deletes the wait queue and then its exchange. No letter may be lost,
// because dlo still has the letters that were in the queue. The next letters must wait in the
// store. Once the queue and the exchange are declared again, letters may wait in the broker.
func TestWaitQueuesThatVanish(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	a := newAudit(t, url, "work", nil)
	p := newChild(t, url, "default: {retry: {delays: [1s], waiter: wait-queue}}\nrequeue: {rate: 0, watch: 1s}\n")
	p.Start("")
	p.Draining()
	a.work()
	sent := 0
	eventually(t, "letters wait in the broker, once it has a queue for that", func() bool {
		a.publish(1, func(int) (string, string) { return fmt.Sprintf("letter %d", sent), "" })
		sent++
		return p.count("attempts", `waits_in <> ''`) > 0
	})
	for _, vanish := range []func(ch *amqp.Channel) error{
		func(*amqp.Channel) error { return nil },
		func(ch *amqp.Channel) error {
			_, err := ch.QueueDelete("dlo.wait.1000", false, false, false)
			return err
		},
		func(ch *amqp.Channel) error { return ch.ExchangeDelete("dlo.wait.1000", false, false) },
	} {
		if err := vanish(a.channel()); err != nil {
			t.Fatal(err)
		}
		a.publish(20, func(i int) (string, string) { return fmt.Sprintf("letter %d", sent+i), "" })
		sent += 20
		eventually(t, "all letters back", func() bool { return a.acceptedLetters() == sent })
	}
	eventually(t, "all letters settled", func() bool { return p.letters("settled") == sent })
	if surplus, _ := a.checkAll(p); surplus != 0 {
		t.Errorf("%d rows more than letters", surplus)
	}
	if n := p.count("attempts", `waits_in <> ''`); n < 20 || n > sent {
		t.Errorf("%d attempts waited in the broker", n)
	}
}

// TestKillsWhileLettersAreHandedOver kills dlo repeatedly while it hands letters over to the
// broker. No letter may be lost. If a letter arrives twice, both copies must carry the token of an
// attempt whose outcome dlo does not know.
func TestKillsWhileLettersAreHandedOver(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, url := testenv.VHost(t)
	a := newAudit(t, url, "work", nil)
	p := newChild(
		t, url, "default: {retry: {delays: [1s], waiter: message-ttl}}\nrequeue: {rate: 0, in_flight: 64, watch: 1s}\n",
	)
	if node.AtLeast("4.3") { // the inbox and the queues in which letters wait hold back what the kills give back
		delayRetries(t, node, vhost, "policies", `^dlo\.`, "all", 1000)
		p.env = []string{"DLO_MANAGEMENT_URL=" + node.ManagementURLOf("guest:guest")}
	}
	p.Start("")
	p.Draining()
	a.work()
	const letters = 600
	go a.publish(letters, func(i int) (string, string) { return fmt.Sprintf("letter %d", i), fmt.Sprint(i) })
	for _, crash := range []string{
		"requeue: claimed=2", "requeue: publishing=2", "requeue: confirmed=2", "requeue: marked=2", "",
	} {
		p.Kill9()
		p.Start(crash)
		if crash != "" {
			select {
			case <-p.ended:
			case <-time.After(time.Second + rand.N(time.Second)): // too few letters are left to reach the crash point
			}
		}
	}
	eventually(t, "all letters settled", func() bool { return p.letters("settled") == letters })
	surplus, duplicates := a.checkAll(p)
	if doubted := p.ask(`SELECT coalesce(sum(sends - 1), 0) FROM attempts`); surplus != 0 || duplicates > doubted {
		t.Errorf("%d rows more than letters, %d duplicate copies, %d sends in doubt", surplus, duplicates, doubted)
	}
}

// TestABrokerWithoutTheDelayedExchange uses a broker without the plugin for the delayed exchange.
// dlo must report this in the log and on the pages, and letters must wait in the store.
func TestABrokerWithoutTheDelayedExchange(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	a := newAudit(t, url, "work", nil)
	p := newChild(t, url, "default: {retry: {delays: [300ms], waiter: delayed-exchange}}\nrequeue: {watch: 1s}\n")
	p.Start("")
	p.Draining()
	eventually(
		t, "it is said at the start",
		func() bool { return strings.Contains(p.Log(), "the broker has no exchange of type x-delayed-message") },
	)
	if _, page := p.get("/"); !strings.Contains(page, "rabbitmq_delayed_message_exchange") {
		t.Error("the Overview page does not say it")
	}
	a.work()
	a.publish(5, func(i int) (string, string) { return fmt.Sprintf("letter %d", i), "" })
	eventually(t, "all letters back", func() bool { return a.acceptedLetters() == 5 })
	if n := p.count("attempts", ""); n != 5 {
		t.Errorf("%d attempts of 5 letters", n)
	}
	if n := strings.Count(p.Log(), "letters wait in the store instead"); n != 1 {
		t.Errorf("said %d times", n)
	}
}

// TestAWorkerThatReadsXDeath uses a worker that counts its tries in x-death. On every RabbitMQ
// version, the worker must get one entry with the number of attempts. dlo itself must not rely on
// that entry.
func TestAWorkerThatReadsXDeath(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	a := newAudit(t, url, "work", nil)
	var worker seen
	a.refuse = worker.refuse
	p := newChild(t, url, "default: {retry: {delays: [0s, 0s, 0s]}, mirror_x_death: true}\nrequeue: {watch: 1m}\n")
	p.Start("")
	p.Draining()
	a.work()
	a.publish(1, func(int) (string, string) { return "letter", "" })
	eventually(t, "it is dead", func() bool { return p.count("letters", `state = 'dead' AND attempts = 3`) == 1 })
	for n, d := range worker.withBody("letter") {
		if n == 0 {
			continue
		}
		deaths, _ := d.Headers["x-death"].([]any)
		if len(deaths) != 1 {
			t.Fatalf("retry %d has x-death %v", n, d.Headers["x-death"])
		}
		death, _ := deaths[0].(amqp.Table)
		if death["queue"] != "work" || death["reason"] != "rejected" || death["count"] != int64(n) ||
			fmt.Sprint(death["routing-keys"]) != "[work]" || death["time"] == nil || death["exchange"] != "" {
			t.Errorf("retry %d has x-death %v", n, death)
		}
	}
	if n := p.count("attempts", `outcome = 'came back' AND back_queue = 'work'`); n != 3 {
		t.Errorf("%d attempts came back", n)
	}
}
