package system

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/deadletteroffice/dlo/internal/topology"
	amqp "github.com/rabbitmq/amqp091-go"
)

func errorOf[T any](_ T, err error) error { return err }

// TestBenchLiveQueues measures how long dlo takes to look at a broker with 2,000 classic queues
// without a dead-letter exchange. It also measures how long the plan for all of these queues takes.
func TestBenchLiveQueues(t *testing.T) {
	testenv.Bench(t)
	const queues, looks = 2000, 5
	node := testenv.PrivateBroker(t)
	vhost, address := node.VHost(t)
	conn, err := amqp.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(
		ch.ExchangeDeclare("dlo.dlx", "fanout", true, false, false, false, nil),
		errorOf(ch.QueueDeclare("dlo.letters", true, false, false, false, nil)),
		ch.QueueBind("dlo.letters", "", "dlo.dlx", false, nil),
	); err != nil {
		t.Fatal(err)
	}
	for i := range queues {
		if _, err := ch.QueueDeclare(
			fmt.Sprintf("team-%d.queue-%d", i%40, i), true, false, false, false, nil,
		); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(6 * time.Second) // the management API shows figures of new queues only after some seconds
	var look, report, plan []time.Duration
	before, err := node.CPU()
	if err != nil {
		t.Fatal(err)
	}
	for range looks {
		began := time.Now()
		list, err := rabbitmq.Look(t.Context(), node.ManagementURLOf("guest:guest"), []string{vhost})
		if err != nil || len(list[0].Gaps) > 0 {
			t.Fatal(err, list[0].Gaps)
		}
		look = append(look, time.Since(began))
		began = time.Now()
		r := topology.ReportOn(&list[0], topology.Options{Inboxes: []string{"dlo.letters"}})
		report = append(report, time.Since(began))
		began = time.Now()
		p := topology.MakePlan(&list[0], topology.Want{
			Queues: topology.Choose(&list[0], r.Findings, nil, false), Exchange: "dlo.dlx",
		})
		plan = append(plan, time.Since(began))
		if len(r.Findings) != 1 || len(p.Queues()) != queues {
			t.Fatalf("%d findings, %d queues planned", len(r.Findings), len(p.Queues()))
		}
	}
	after, err := node.CPU()
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]time.Duration{look, report, plan} {
		slices.Sort(list)
	}
	t.Logf(
		"RabbitMQ %s, %d classic queues: look %s, findings %s, plan %s; a look costs the broker %s of processor time",
		node.Version(), queues,
		look[looks/2].Round(time.Millisecond), report[looks/2].Round(time.Millisecond),
		plan[looks/2].Round(time.Millisecond), ((after - before) / looks).Round(time.Millisecond),
	)
}
