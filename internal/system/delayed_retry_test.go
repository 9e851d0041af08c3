package system

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// delayRetries sets a policy that lets the quorum queues with the given names hold back letters
// that a lost connection gives back.
func delayRetries(t *testing.T, node *testenv.Node, vhost, policies, pattern, kind string, ms int) {
	t.Helper()
	body := map[string]any{
		"pattern":    pattern,
		"apply-to":   "queues",
		"definition": map[string]any{"delayed-retry-type": kind, "delayed-retry-min": ms},
	}
	if err := node.API(http.MethodPut, "/api/"+policies+"/"+url.PathEscape(vhost)+"/retries", body, nil); err != nil {
		t.Fatal(err)
	}
}

// delayingBroker returns a broker that has delayed retry.
func delayingBroker(t *testing.T) *testenv.Node {
	t.Helper()
	node := testenv.Broker(t)
	if !node.AtLeast("4.3") {
		t.Skip("quorum queues of 3.x and 4.0 have no delayed retry")
	}
	return node
}

// TestDelayedRetryOfAnInbox kills dlo, or cuts its connections, again and again, on an inbox whose
// policy holds back what a lost connection gives back. Each letter must have one row and one token,
// and nothing may be merged. Of letters that nothing tells apart, dlo may hold some.
//
// From 4.3 on, RabbitMQ has this setting.
func TestDelayedRetryOfAnInbox(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := delayingBroker(t)
	for _, c := range []struct {
		policies, kind string
		ms             int
		identical      bool
		cuts           int // how often the connections are cut; 0 = dlo is killed instead
	}{
		{"policies", "failed", 1000, false, 0},
		{"operator-policies", "all", 1000, false, 0},
		{"policies", "all", 1000, true, 0},
		{"policies", "returned", 1000, false, 0},
		{"policies", "failed", 0, false, 0},
		{"policies", "failed", 60_000, false, 0},
		{"policies", "all", 1000, false, 50},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			t.Parallel()
			crashes := 20
			switch {
			case c.cuts > 0:
				crashes = c.cuts
			case c.ms > 10_000:
				testenv.Soak(t) // each crash takes more than a minute
				crashes = 3
			case soak():
				crashes = 200
			}
			vhost, address := node.VHost(t)
			a := newAudit(t, address, "work", nil)
			if c.ms > 0 {
				delayRetries(t, node, vhost, c.policies, `^dlo\.letters$`, c.kind, c.ms)
			} else { // a policy cannot say 0
				args := amqp.Table{
					"x-queue-type": "quorum", "x-delivery-limit": -1, "x-delayed-retry-type": c.kind,
					"x-delayed-retry-min": 0,
				}
				if _, err := a.channel().QueueDeclare("dlo.letters", true, false, false, false, args); err != nil {
					t.Fatal(err)
				}
			}
			relay := testenv.Relay(t, node.AMQPAddr())
			p := newChild(t, node.AMQPURLVia(relay.Addr(), vhost), fast)
			p.env = []string{"DLO_MANAGEMENT_URL=" + node.ManagementURLOf("guest:guest")}
			p.Start("")
			p.Draining()
			eventually(t, "the problem is told", func() bool {
				_, body := p.get("/readyz")
				told := strings.Contains(body, `"delayed_retry"`) && strings.Contains(body, "retries")
				return told || c.kind == "returned" || c.ms == 0
			})
			a.work()
			const each = 100
			published := 0
			for n := range crashes {
				if c.cuts == 0 {
					p.Kill9()
				}
				a.publish(each, func(i int) (string, string) {
					if published++; c.identical {
						return fmt.Sprintf("one of three bodies: %d", published%3), ""
					}
					return fmt.Sprintf("letter %d", published), fmt.Sprint(published)
				})
				if c.cuts > 0 {
					time.Sleep(rand.N(500 * time.Millisecond))
					relay.Cut()
					continue
				}
				p.Start(points[n%5] + "=1")
				p.Crashed("the crash")
				p.Start("")
			}
			eventually(
				t, "all letters at their end",
				func() bool {
					return p.letters() >= published &&
						p.letters("settled")+p.letters("held") == p.letters()
				},
			)
			surplus, _ := a.checkStore(p)
			held := p.letters("held")
			if surplus != 0 && (!c.identical || surplus > held) || held != 0 && !c.identical {
				t.Errorf("%d letters, %d rows more, %d held", published, surplus, held)
			}
			if !c.identical {
				a.checkAll(p)
			}
			t.Logf("%d crashes, %d letters, %d rows more, %d held", crashes, published, surplus, held)
		})
	}
}

// TestDelayedRetryThatTheBrokerDoesNotTell kills dlo on an inbox whose policy holds back what a
// lost connection gives back. No management API says so, or the policy is gone when dlo starts
// again. A letter with a message id must have one row and one token. Other letters may be stored
// twice, but then the second row is held.
func TestDelayedRetryThatTheBrokerDoesNotTell(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := delayingBroker(t)
	for _, c := range []struct {
		name string
		gone bool
		of   func(n int) (body, messageID string)
	}{
		{"message ids", false, func(n int) (string, string) { return fmt.Sprintf("letter %d", n), fmt.Sprint(n) }},
		{"a policy that is gone", true, func(n int) (string, string) { return fmt.Sprintf("letter %d", n), fmt.Sprint(n) }},
		{"unique bodies", false, func(n int) (string, string) { return fmt.Sprintf("letter %d", n), "" }},
		{"three bodies", false, func(n int) (string, string) { return fmt.Sprintf("one of three bodies: %d", n%3), "" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			vhost, address := node.VHost(t)
			a := newAudit(t, address, "work", nil)
			delay := func() { delayRetries(t, node, vhost, "policies", `^dlo\.letters$`, "all", 1000) }
			delay()
			p := newChild(t, node.AMQPURL(vhost), fast)
			if c.gone {
				p.env = []string{"DLO_MANAGEMENT_URL=" + node.ManagementURLOf("guest:guest")}
			}
			p.Start("")
			p.Draining()
			a.work()
			const each = 100
			published := 0
			for n := range 10 {
				p.Kill9()
				publish := func(letters int) {
					a.publish(letters, func(int) (string, string) {
						published++
						return c.of(published)
					})
				}
				publish(each - 20)
				p.Start(points[n%5] + "=1")
				p.Crashed("the crash")
				if c.gone {
					policy := "/api/policies/" + url.PathEscape(vhost) + "/retries"
					if err := node.API(http.MethodDelete, policy, nil, nil); err != nil {
						t.Fatal(err)
					}
				}
				publish(20)
				p.Start("")
				if c.gone {
					eventually(t, "the letters", func() bool { return p.letters() >= published })
					delay()
				}
			}
			eventually(t, "all letters at their end", func() bool {
				return p.letters() >= published && p.letters("settled")+p.letters("held") == p.letters()
			})
			surplus, _ := a.checkStore(p)
			held := p.letters("held")
			_, id := c.of(1)
			named := id != ""
			if surplus > held || named && held+surplus > 0 {
				t.Errorf("%d letters, %d rows more, %d held", published, surplus, held)
			}
			if named {
				a.checkAll(p)
			}
			t.Logf("%d letters, %d rows more, %d held", published, surplus, held)
		})
	}
}

// TestTheBrokerRetriesFirst checks a queue whose broker tries messages again before it gives them
// up. The Queues page must say how many messages the broker holds back, and the page of a letter
// how often the broker had tried it.
func TestTheBrokerRetriesFirst(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := delayingBroker(t)
	vhost, address := node.VHost(t)
	p := newChild(t, address, later)
	p.env = []string{"DLO_MANAGEMENT_URL=" + node.ManagementURLOf("guest:guest")}
	p.Start("")
	p.Draining()
	p.Stop()
	conn, ch := testenv.Channel(t, address)
	defer conn.Close()
	if _, err := ch.QueueDeclare("orders", true, false, false, false, amqp.Table{
		"x-queue-type": "quorum", "x-dead-letter-exchange": "dlo.dlx", "x-delivery-limit": 20,
		"x-delayed-retry-type": "failed", "x-delayed-retry-min": 12_000, "x-delayed-retry-max": 12_000,
	}); err != nil {
		t.Fatal(err)
	}
	if err := ch.Publish("", "orders", false, false, amqp.Publishing{Body: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	reject := func(again bool) {
		t.Helper()
		within(t, 30*time.Second, "the message comes", func() bool {
			d, ok, err := ch.Get("orders", false)
			if err != nil {
				t.Fatal(err)
			}
			return ok && d.Reject(again) == nil
		})
	}
	reject(true)
	within(t, 30*time.Second, "the broker counts it", func() bool {
		var q struct {
			Delayed int `json:"messages_delayed"`
		}
		return node.API(http.MethodGet, "/api/queues/"+url.PathEscape(vhost)+"/orders", nil, &q) == nil && q.Delayed == 1
	})
	p.Start("") // and reads the queues
	eventually(t, "the page says that the broker holds it back", func() bool {
		return strings.Contains(p.text("/queues"), "1 held back")
	})
	reject(true)
	reject(false)
	eventually(t, "the letter is stored", func() bool { return p.letters() == 1 })
	id := p.ids(`SELECT id, random FROM letters`)[0]
	eventually(t, "the letter says how often the broker had tried it", func() bool {
		return strings.Contains(p.text("/letters/"+string(id)), "Tried by the broker 3 times before it came")
	})
}
