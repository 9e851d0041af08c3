package rabbitmq_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// faulty is a vhost for tests. A test changes its queues and policies, so that they have a fault
// that dlo must find.
type faulty struct {
	node  *testenv.Node
	vhost string
	ch    *amqp.Channel
}

func (b *faulty) declare(t *testing.T, queue string, arguments amqp.Table) {
	t.Helper()
	if _, err := b.ch.QueueDeclare(queue, true, false, false, false, arguments); err != nil {
		t.Fatal(err)
	}
}

func (b *faulty) delete(t *testing.T, queue string) {
	t.Helper()
	if _, err := b.ch.QueueDelete(queue, false, false, false); err != nil {
		t.Fatal(err)
	}
}

func (b *faulty) bind(t *testing.T, queue, key, exchange string) {
	t.Helper()
	if err := b.ch.QueueBind(queue, key, exchange, false, nil); err != nil {
		t.Fatal(err)
	}
}

// deletePolicy deletes a policy or an operator policy.
func (b *faulty) deletePolicy(t *testing.T, kind, name string) {
	t.Helper()
	if err := b.node.API(http.MethodDelete, "/api/"+kind+"/"+url.PathEscape(b.vhost)+"/"+name, nil, nil); err != nil {
		t.Fatal(err)
	}
}

// setPolicy replaces the policy of the queue "orders".
func (b *faulty) setPolicy(t *testing.T, pairs ...any) {
	t.Helper()
	setPolicy(t, b.node, b.vhost, "policies", "dlo", map[string]any{
		"pattern": "^orders$", "apply-to": "queues", "priority": 10, "definition": toDLO(pairs...),
	})
}

// deleteLimits deletes the policy whose name is "limits".
func deleteLimits(t *testing.T, b *faulty) {
	t.Helper()
	b.deletePolicy(t, "policies", "limits")
}

// startRejecting starts a consumer of the queue "orders" that rejects everything.
func startRejecting(t *testing.T, b *faulty) {
	t.Helper()
	deliveries, err := b.ch.Consume("orders", "", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for d := range deliveries {
			_ = d.Reject(false)
		}
	}()
}
