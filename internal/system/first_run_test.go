package system

import (
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestNeverConnectedIsNotLost starts dlo with a broker that is unreachable at first. Pages and
// /readyz must warn that rejected messages are lost, and must say what to check. After dlo has
// connected once, they must say where letters wait, even after a restart of dlo. They must not show
// a password.
func TestNeverConnectedIsNotLost(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, _ := node.VHost(t)
	relay := testenv.Relay(t, node.AMQPAddr())
	relay.Refuse(true)
	p := newChild(t, node.AMQPURLVia(relay.Addr(), vhost), "")
	check := "Check url of broker main in " + p.config + "."
	says := func(where string, want []string, never ...string) {
		t.Helper()
		eventually(t, where+" says "+want[0], func() bool {
			_, page := p.get(where)
			for _, text := range want {
				if !strings.Contains(page, text) {
					return false
				}
			}
			for _, text := range append(never, "guest") {
				if strings.Contains(page, text) {
					t.Errorf("%s says %q", where, text)
				}
			}
			return true
		})
	}
	p.Start("")
	dropped := "Until dlo has connected once, dead letters are dropped by the broker."
	says("/", []string{
		"Never connected to main:", check, dropped, "Connect the broker:", "not yet.",
	}, "Nothing is lost", "wait in")
	says("/letters", []string{"Never connected to main:", check, dropped}, "Nothing is lost")
	says("/readyz", []string{"Never connected to broker main.", check, dropped}, "new dead letters wait in the broker")
	out, _ := p.dlo(t.Context(), 0, "", "brokers", "connect", "main")
	if !strings.HasPrefix(out, "broker main is not connected: ") {
		t.Errorf("it says %q", out)
	}
	relay.Refuse(false)
	p.connectBroker("main")
	p.Draining()
	says("/", []string{"done: RabbitMQ"}, "Never connected")
	eventually(
		t, "the store knows that the inbox was there",
		func() bool { return p.ask(`SELECT count(*) FROM inboxes WHERE marker <> ''`) > 0 },
	)

	relay.Refuse(true)
	relay.Cut()
	says("/", []string{
		"Connection to broker main lost", "Nothing is lost: dead letters wait in", "dlo.letters",
		"Retries and requeues resume when it is back.",
	}, "Never connected", "dropped")
	relay.Refuse(false)
	p.connectBroker("main")
	relay.Refuse(true)
	p.Stop()
	p.Start("")
	says("/", []string{
		"Not connected to broker main since dlo started", "Nothing is lost: dead letters wait in",
	}, "Never connected", "dropped")
	says("/readyz", []string{"Broker main is not connected.", "new dead letters wait in the broker"}, "dropped")
}

// TestTheVariableIsNamed checks which setting dlo tells people to check. If DLO_AMQP_URL supplies
// the URL, dlo must name this variable.
func TestTheVariableIsNamed(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	p := newChild(t, "amqp://127.0.0.1:1/", "")
	p.env = []string{"DLO_AMQP_URL=amqp://dlo:hunter2@127.0.0.1:1/shop"}
	p.Start("")
	eventually(t, "the page says it", func() bool {
		_, page := p.get("/")
		if strings.Contains(page, "hunter2") || strings.Contains(p.Log(), "hunter2") {
			t.Error("it tells the password")
		}
		return strings.Contains(page, "connection refused. Check DLO_AMQP_URL. Until dlo has connected once")
	})
}

// connectBroker asks dlo to connect to a broker that is reachable again. dlo must connect
// immediately and must not wait for the end of its back-off.
func (p *child) connectBroker(broker string) {
	p.t.Helper()
	if out, _ := p.dlo(p.t.Context(), 0, "", "brokers", "connect", broker); out != "broker "+broker+" is connected\n" {
		p.t.Errorf("it says %q", out)
	}
	if out, _ := p.dlo(p.t.Context(), 0, "", "brokers", "list"); !strings.Contains(out, "yes") {
		p.t.Error(out)
	}
}
