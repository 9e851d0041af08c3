package system

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestAMissingRightIsSaid uses a RabbitMQ user whose rights are ^dlo\., so that dlo may not publish
// to other queues. Letters for these queues must wait, and must not be held. /readyz, the page and
// the pager must name the missing right and the command that grants it. After the grant, dlo must
// continue automatically.
func TestAMissingRightIsSaid(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, owner := testenv.VHost(t)
	const letters = 5
	conn := publishParked(t, owner, "orders_error", letters, nil)
	publishParked(t, owner, "orders", 0, nil)
	user, address := node.User(t, vhost, "management")
	node.Grant(t, vhost, user, `^dlo\.`, `^dlo\.`, `^(dlo\..*|orders_error)$`)
	pager := newReceiver(t)
	p := newChild(
		t, address,
		"brokers: [{amqp: "+amqpOf(t, address)+
			", inboxes: [dlo.letters, orders_error], origins: {orders_error: orders}}]\n"+
			strings.Replace(pager.configFor(t, "page"), "delays: []", "delays: [1s]", 1),
	)
	p.env = []string{"DLO_MANAGEMENT_URL=" + node.ManagementURLOf(user+":secret")}
	p.Start("")
	found := p.problem(deadletter.ProblemRights)
	if found.Severity != deadletter.SeverityPage || !strings.Contains(found.Title, user) ||
		!strings.Contains(found.Text, "It may not write amq.default") {
		t.Errorf("%+v", found)
	}
	eventually(t, "the letters wait", func() bool { return p.letters("scheduled") == letters })
	pager.waitForNotice(t, "has too few rights")
	if _, page := p.get("/queues"); !strings.Contains(page, "has too few rights") ||
		!strings.Contains(page, "set_permissions") {
		t.Error("the page does not say it")
	}
	if n := p.letters("scheduled"); n != letters {
		t.Errorf("%d of %d letters are still scheduled", n, letters)
	}
	node.Cure(t, found.Cure)
	eventually(t, "all letters are back", func() bool { return ready(t, conn, "orders") == letters })
	eventually(t, "and none is held", func() bool { return p.letters("requeued", "settled") == letters })
	if n := p.ask(`SELECT count(*) FROM attempts`); n != letters {
		t.Errorf("%d attempts of %d letters", n, letters)
	}
}

// amqpOf converts an AMQP URL that contains a user and a password to the form that the
// configuration uses. It writes the password to a file.
func amqpOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	secret, _ := u.User.Password()
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(
		"{host: %s, port: %s, vhost: %q, user: %q, password_file: %q}", u.Hostname(), u.Port(),
		strings.TrimPrefix(u.Path, "/"), u.User.Username(), file,
	)
}
