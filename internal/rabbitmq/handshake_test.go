package rabbitmq_test

import (
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestWhatEndsAHandshake checks the error for a connection that ends during the login. dlo must
// report a wrong password only if the broker has refused the login. It must not report a wrong
// password if a network failure has ended the connection.
func TestWhatEndsAHandshake(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	vhost, _ := node.VHost(t)
	via := func(answers int) func() string {
		return func() string {
			relay := testenv.Relay(t, node.AMQPAddr())
			relay.Sever(testenv.ToClient, answers)
			return node.AMQPURLVia(relay.Addr(), vhost)
		}
	}
	const cut = "the connection was cut in the middle of the handshake"
	url := func(change ...string) func() string {
		return func() string { return strings.NewReplacer(change...).Replace(node.AMQPURL(vhost)) }
	}
	for name, c := range map[string]struct {
		url  func() string
		want string
	}{
		"a wrong password": {url("guest:guest", "guest:sesame"), "the broker refused user or password"},
		"a wrong password, as AMQPLAIN": {
			func() string { return url("guest:guest", "guest:sesame")() + "?auth_mechanism=amqplain" },
			"the broker refused user or password",
		},
		"a mechanism that nobody knows": {
			func() string { return node.AMQPURL(vhost) + "?auth_mechanism=scroll" },
			"unsupported auth_mechanism: scroll",
		},
		"a vhost that does not exist": {
			func() string { return node.AMQPURL(vhost + "-away") }, "or the vhost does not exist",
		},
		"cut before the broker answers":  {via(0), "connection reset by peer"},
		"cut while the password is read": {via(1), cut},
		"cut while the vhost is opened":  {via(2), cut},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			link := runLink(t, rabbitmq.Broker{URL: c.url(), InFlight: 1})
			for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
				got := link.Status().Reason
				if got != "not connected yet" {
					if !strings.Contains(got, c.want) || strings.Contains(got, "sesame") ||
						c.want == cut && strings.Contains(got, "password") {
						t.Errorf("%q, want %q", got, c.want)
					}
					return
				}
				if time.Now().After(deadline) {
					t.Fatal("it does not say why it is not connected")
				}
			}
		})
	}
}
