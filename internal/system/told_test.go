package system

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestAFailureThatLastsIsTold uses a worker that rejects all letters of two rules. One of these
// rules pages, and the other one goes to the digest. The worker accepts the other letters of the
// same queue. The settings under the key "requeue" are the defaults.
//
// The breaker of each failing group must trip, and the tripping itself must notify nobody. dlo must
// report the failure of the paging rule once, and not later than the planned end of its retries.
func TestAFailureThatLastsIsTold(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	_, amqpURL := testenv.VHost(t)
	pager := newReceiver(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newChild(t, amqpURL, fmt.Sprintf(`rules:
  - {name: pay, match: {header: {kind: pay}}, retry: {delays: [1s, 2s]}, dead: {severity: page, notify: [pager]}}
  - {name: news, match: {header: {kind: news}}, retry: {delays: [1s, 2s]}, dead: {severity: digest, notify: [pager]}}
default: {retry: {delays: [1s]}}
channels: {pager: {webhook: {url: %q, secret_file: %s}, allow_private: true}}
`, pager.URL, secret))
	p.env = []string{"DLO_MANAGEMENT_URL=" + node.ManagementURLOf("guest:guest")}
	p.Start("")
	p.Draining()
	a := newAudit(t, amqpURL, "work", nil)
	a.refuse = func(d *amqp.Delivery) bool {
		_, ours := d.Headers[deadletter.HeaderAttempt]
		return !ours || d.Headers["kind"] != "well"
	}
	a.work()
	const failing, well = 600, 50
	publish := func(kind string, n int) {
		a.header = amqp.Table{"kind": kind, "x-error-message": kind + " is broken"}
		a.publish(n, func(i int) (string, string) { return fmt.Sprint(kind, " ", i), fmt.Sprint(kind, i) })
	}
	publish("pay", failing)
	publish("news", failing)
	tripped := func() int { return p.count("breakers", "grp > 0 AND state <> 'ramping'") }
	eventually(t, "the breakers of both groups trip", func() bool { return tripped() == 2 })
	if n := pager.count(); n != 0 {
		t.Errorf("the pager rang %d times as the breakers tripped", n)
	}
	publish("well", well)
	eventually(t, "the letters that are well go out", func() bool { return a.acceptedLetters() == well })
	eventually(t, "the pager rings", func() bool {
		if _, page := p.get("/"); strings.Contains(page, "Nothing needs a person") {
			t.Error("the overview says that nothing needs a person")
			return true
		}
		return pager.count() > 0
	})
	if late := p.ask(`SELECT count(*) FROM notices WHERE kind = 'opened' AND at > (SELECT min(told_by) FROM letters
		WHERE rule = 'pay')`); late > 0 {
		t.Error("people were told after the time by which they should have known")
	}
	eventually(t, "all that wait are overdue", func() bool {
		return p.ask(`SELECT coalesce(sum(n), 0) FROM overdue`) > 0 &&
			p.ask(`SELECT coalesce(sum(n), 0) FROM overdue`) == p.letters("scheduled")
	})
	if _, body := p.get("/metrics"); !strings.Contains(body, `dlo_letters_overdue{queue="work",severity="page"}`) ||
		!strings.Contains(body, `dlo_letters_overdue{queue="work",severity="digest"}`) {
		t.Error("the metric of overdue letters is not there")
	}
	if _, body := p.get("/api/v1/digest"); !strings.Contains(body, `"groups":2`) {
		t.Errorf("the digest has %s", body)
	}
	if told := pager.notices("notice.opened"); len(told) != 1 {
		t.Errorf("the pager was told %v", told)
	}
}
