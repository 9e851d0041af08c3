package rabbitmq

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
)

// linkVia returns a link to a node through another loopback address. It also returns the address at
// which dlo looks for the management API.
func linkVia(t *testing.T, node *testenv.Node, user string) (*Link, string) {
	t.Helper()
	host := fmt.Sprintf("127.%d.%d.%d", 1+rand.N(250), rand.N(250), 1+rand.N(250))
	via := testenv.RelayAt(t, host+":0", node.AMQPAddr())
	address := strings.Replace(node.AMQPURLVia(via.Addr(), "/"), "guest:guest", user, 1)
	link, err := Connect(Broker{Name: "main", URL: address}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := link.dial(t.Context(), "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return link, net.JoinHostPort(host, usualPort)
}

// TestTheManagementAPIIsFound checks that a management API that is not configured is found at the
// host of AMQP and then used. It must be used only if it belongs to the same broker, and if it
// admits the user. The password must not be sent to anything but RabbitMQ.
func TestTheManagementAPIIsFound(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	management := strings.TrimPrefix(node.ManagementURL(), "http://")
	fails := func(link *Link, want string) {
		t.Helper()
		address, err := link.FindManagement(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q, %v, want %q", address, err, want)
		}
		if s := link.Status(); link.Managed() || s.Managed || s.ManagementFound != "" {
			t.Errorf("it is used: %+v", s)
		}
	}
	link, at := linkVia(t, node, "guest:guest")
	fails(link, "no management API was found at http://"+at+": ")
	testenv.RelayAt(t, at, management)
	cluster := link.cluster
	link.cluster = "another"
	fails(link, "it belongs to another broker")
	link.cluster = cluster
	address, err := link.FindManagement(t.Context())
	if err != nil || address != "http://"+at || link.Status().ManagementFound != address || !link.Status().Managed {
		t.Fatalf("%q, %v, %+v", address, err, link.Status())
	}
	if f := link.Facts(t.Context(), "no such queue"); !f.Known || f.Exists {
		t.Errorf("it is not used: %+v", f)
	}
	if _, err := link.Snapshot(t.Context()); err != nil {
		t.Error(err)
	}

	name := strings.ToLower(t.Name())
	if err := node.API(http.MethodPut, "/api/users/"+name, map[string]any{"password": "p", "tags": ""}, nil); err != nil {
		t.Fatal(err)
	}
	if err := node.API(http.MethodPut, "/api/permissions/"+url.PathEscape("/")+"/"+name, map[string]any{
		"configure": "", "write": "", "read": "",
	}, nil); err != nil {
		t.Fatal(err)
	}
	link, at = linkVia(t, node, name+":p")
	testenv.RelayAt(t, at, management)
	fails(link, "the API refuses the user")

	var passwords atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			passwords.Add(1)
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="printer"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(other.Close)
	link, at = linkVia(t, node, "guest:guest")
	testenv.RelayAt(t, at, other.Listener.Addr().String())
	fails(link, "something else answers there")
	if n := passwords.Load(); n != 0 {
		t.Errorf("the password was sent %d times", n)
	}
}

// TestWhereTheManagementAPIIsLookedFor checks the URL at which dlo looks for a management API. With
// TLS at AMQP, it must have TLS too.
func TestWhereTheManagementAPIIsLookedFor(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"amqp://u:p%2Fw@broker:5673/shop":          "http://u:p%2Fw@broker:15672",
		"amqp://broker":                            "http://guest:guest@broker:15672",
		"amqp://u:p@[::1]:5672/":                   "http://u:p@[::1]:15672",
		"amqps://u:p@broker/%2F?heartbeat=5":       "https://u:p@broker:15671",
		"amqps://u:p@broker?cacertfile=%2Fca.pem":  "https://u:p@broker:15671?cacertfile=%2Fca.pem",
		"amqps://broker?auth_mechanism=EXTERNAL":   "",
		"amqp://u:p@broker?cacertfile=%2Fca.pem#x": "http://u:p@broker:15672",
	} {
		got, err := usualManagement(raw)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s, %v, want %s", raw, got, err, want)
		}
	}
}
