package system

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestAnInboxThatMayDeleteLettersIsLeftAlone uses a quorum queue as an inbox. In RabbitMQ 4.0 and
// later, such a queue has a delivery limit by default, and lost connections use it up. dlo must not
// drain the queue until the configuration accepts the limit. dlo must give the reason and both
// remedies, and must still drain its own inbox. RabbitMQ 3.x has no such limit.
func TestAnInboxThatMayDeleteLettersIsLeftAlone(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	_, url := testenv.VHost(t)
	conn, ch := testenv.Channel(t, url)
	if _, err := ch.QueueDeclare(
		"old-dlq", true, false, false, false, amqp.Table{"x-queue-type": "quorum"},
	); err != nil {
		t.Fatal(err)
	}
	if err := ch.PublishWithContext(context.Background(), "", "old-dlq", true, false, amqp.Publishing{
		Body: []byte("x"), DeliveryMode: 2,
	}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, more string
		management bool
		refused    bool
	}{
		{"nobody can say", "", false, true},
		{"the management API says", "", true, node.AtLeast("4.0")},
		{"accepted", ", accept_limited: [old-dlq]", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			broker := fmt.Sprintf("{url: %q, inboxes: [dlo.letters, old-dlq]%s}", url, c.more)
			p := newChild(t, url, "brokers: ["+broker+"]\n")
			if c.management {
				p.env = []string{"DLO_MANAGEMENT_URL=" + node.ManagementURLOf("guest:guest")}
			}
			p.Start("")
			drained := []string{"dlo.letters"}
			if !c.refused {
				drained = append(drained, "old-dlq")
			}
			for _, inbox := range drained {
				eventually(
					t, inbox+" is drained",
					func() bool { return strings.Contains(p.Log(), `msg="inbox connected" broker=main inbox=`+inbox) },
				)
			}
			if !c.refused {
				return
			}
			eventually(t, "the reason", func() bool {
				_, body := p.get("/readyz")
				cure := "set_policy"
				if !c.management {
					cure = "Set management of the broker" // dlo could not see a policy
				}
				return strings.Contains(body, "delivery limit") && strings.Contains(body, cure) &&
					strings.Contains(body, "accept_limited")
			})
			if n := ready(t, conn, "old-dlq"); n != 1 {
				t.Errorf("%d messages in old-dlq, which dlo must leave alone", n)
			}
		})
	}
}

// TestDlosOwnInboxWithADeliveryLimitIsLeftAlone sets a policy or an operator policy that gives
// dlo's own inbox a delivery limit. The policy has priority over the queue's argument of -1. With
// the limit, lost connections would delete letters from the inbox (RabbitMQ 3.10.8, 4.0.5 and
// 4.3.6). dlo must take no letters from the inbox and must give the reason. It must continue once
// somebody has applied the remedy that it prints.
func TestDlosOwnInboxWithADeliveryLimitIsLeftAlone(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	for kind, cured := range map[string]bool{"policies": true, "operator-policies": false} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			vhost, address := node.VHost(t)
			p := newChild(t, address, fast)
			p.env = []string{"DLO_MANAGEMENT_URL=" + node.ManagementURLOf("guest:guest")}
			p.Start("")
			p.Draining()
			p.Stop()
			limit := "/api/" + kind + "/" + url.PathEscape(vhost) + "/of-the-site"
			if err := node.API(http.MethodPut, limit, map[string]any{
				"pattern":    "^dlo",
				"apply-to":   "queues",
				"definition": map[string]any{"delivery-limit": 1},
			}, nil); err != nil {
				t.Fatal(err)
			}
			var queue struct {
				Effective map[string]any `json:"effective_policy_definition"`
			}
			eventually(t, "the API shows the policy", func() bool {
				err := node.API(http.MethodGet, "/api/queues/"+url.PathEscape(vhost)+"/dlo.letters", nil, &queue)
				return err == nil && queue.Effective["delivery-limit"] != nil
			})
			const letters = 5
			conn, ch := testenv.Channel(t, address)
			for range letters {
				if err := ch.PublishWithContext(t.Context(), "", "dlo.letters", true, false, amqp.Publishing{
					Body: []byte("x"), DeliveryMode: 2,
				}); err != nil {
					t.Fatal(err)
				}
			}
			says := ""
			for range 3 { // kills dlo more often than the limit allows
				p.Start("")
				eventually(t, "the reason", func() bool {
					_, says = p.get("/readyz")
					return strings.Contains(says, "delivery limit")
				})
				p.Kill9()
			}
			if n := ready(t, conn, "dlo.letters"); n != letters || p.letters() != 0 {
				t.Errorf("%d of %d letters are in the inbox, %d in the store", n, letters, p.letters())
			}
			p.Start("")
			if cured {
				command := regexp.MustCompile(
					`rabbitmqctl set_policy -p \S+ (--priority \d+) --apply-to queues (\S+) '(\S+)' '(.*?)'\)`,
				).FindStringSubmatch(strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(says))
				if command == nil {
					t.Fatalf("no cure in %s", says)
				}
				priority := strings.Fields(command[1])
				if out, err := node.Ctl(
					"set_policy", "-p", vhost, priority[0], priority[1], "--apply-to", "queues", command[2], command[3],
					command[4],
				); err != nil {
					t.Fatal(err, out)
				}
			} else {
				if !strings.Contains(says, "operator policy of-the-site") {
					t.Errorf("the operator policy is not named: %s", says)
				}
				if err := node.API(http.MethodDelete, limit, nil, nil); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "all letters stored", func() bool { return p.letters() == letters })
		})
	}
}

// TestWhatALimitDeletesIsSaid uses an inbox that has a delivery limit. The configuration accepts
// this limit. The test kills dlo again and again until the broker deletes letters. Before that, dlo
// must report that few deliveries are left. After that, it must report how many letters are
// missing.
func TestWhatALimitDeletesIsSaid(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	_, address := testenv.VHost(t)
	_, ch := testenv.Channel(t, address)
	if _, err := ch.QueueDeclare("old-dlq", true, false, false, false, amqp.Table{
		"x-queue-type": "quorum", "x-delivery-limit": int64(3),
	}); err != nil {
		t.Fatal(err)
	}
	const letters = 5
	for range letters {
		if err := ch.PublishWithContext(t.Context(), "", "old-dlq", true, false, amqp.Publishing{
			Body: []byte("x"), DeliveryMode: 2,
		}); err != nil {
			t.Fatal(err)
		}
	}
	p := newChild(
		t, address,
		fmt.Sprintf("brokers: [{url: %q, inboxes: [dlo.letters, old-dlq], accept_limited: [old-dlq]}]\n", address),
	)
	p.env = []string{"DLO_MANAGEMENT_URL=" + node.ManagementURLOf("guest:guest")}
	problem := func(kind deadletter.ProblemKind) (text string) {
		for _, one := range p.problems(kind) {
			text = one.Text
		}
		return text
	}
	for range 2 {
		p.Start("ingest: fetched=1")
		p.Crashed("the first window")
	}
	p.Start("ingest: fetched=" + filepath.Join(t.TempDir(), "never"))
	eventually(t, "deliveries run out", func() bool {
		return strings.Contains(
			problem(deadletter.ProblemNearLimit), "x-delivery-count 2, and the broker deletes it after 3",
		)
	})
	p.Kill9()
	p.Start("ingest: at stake=1")
	p.Crashed("the last delivery")
	p.Start("")
	missing := 0
	eventually(t, "what is missing", func() bool {
		_, err := fmt.Sscanf(
			problem(deadletter.ProblemMissing), "The last delivery of at least %d letters was lost", &missing,
		)
		return err == nil
	})
	eventually(t, "each letter is stored or missing", func() bool { return p.letters()+missing == letters })
}
