package system

import (
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// copyOf returns a dlo on a copy of the store of a running dlo, and does not start it.
func copyOf(r *restoring, config string) *restoring {
	r.t.Helper()
	two := &restoring{newChild(r.t, r.amqp, config), r.a}
	r.copied, two.copied = true, true
	db, err := sql.Open("sqlite", "file:"+r.store+"?_pragma=busy_timeout(10000)")
	if err != nil {
		r.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("VACUUM INTO '" + two.store + "'"); err != nil {
		r.t.Fatal(err)
	}
	return two
}

// TestTwoDLOOnTwoCopiesOfAStore copies the store of a running dlo while letters wait in it, and
// starts a second dlo on the copy. Only the first one may send letters, and only it may send
// notices and accept decisions. When the first one ends, the second one must notice that its store
// is behind, and must hold what the first one has sent.
func TestTwoDLOOnTwoCopiesOfAStore(t *testing.T) {
	t.Parallel()
	testenv.Broker(t)
	const letters = 200
	_, address := testenv.VHost(t)
	pager := newReceiver(t)
	config := pager.configFor(t, "page")
	config = `rules: [{name: others, match: {queue: others}, retry: {delays: []}, dead: {severity: page, notify: [hook]}}]
default: {retry: {delays: [6s]}}
requeue: {rate: 0, watch: 1h}
` + config[strings.Index(config, "channels:"):]
	pager.setStatus(http.StatusServiceUnavailable)
	r := &restoring{newChild(t, address, config), newAudit(t, address, "orders", nil)}
	r.Start("")
	r.Draining()
	others := newAudit(t, address, "others", nil)
	others.work()
	others.publish(1, func(int) (string, string) { return "a letter that people are told about", "" })
	r.a.work()
	r.publish(0, letters)
	eventually(t, "one is dead", func() bool { return r.finds("state:dead") == 1 })
	eventually(t, "they wait", func() bool { return r.finds("state:scheduled") == letters })
	two := copyOf(r, config)
	two.Start("")
	p := two.problem(deadletter.ProblemStoreTwice)
	if p.Severity != "page" || !strings.Contains(p.Text, "The broker does not say where the other dlo runs") {
		t.Errorf("%+v", p)
	}
	if _, page := two.get("/"); !strings.Contains(page, p.Title) {
		t.Error("Overview does not say it")
	}
	if code, body := two.post("/api/v1/operations", map[string]any{
		"action": "discard", "q": "state:scheduled", "reason": "not needed",
	}); code != http.StatusForbidden || !strings.Contains(body, "store_twice") {
		t.Errorf("a decision: %d %s", code, body)
	}
	pager.setStatus(0)
	eventually(t, "they arrive", func() bool { return r.a.copies() == letters && pager.count() > 0 })
	two.expectNothingSent(letters)
	eventually(t, "they are recorded", func() bool { return r.finds("state:requeued") == letters })
	if n := pager.count(); n != 1 {
		t.Errorf("%d notices", n)
	}
	r.Stop()
	two.problem(deadletter.ProblemStoreRestored)
	if n := two.finds("state:held doubt:restored"); n != letters {
		t.Errorf("%d letters are held", n)
	}
	two.expectNothingSent(letters)
}

// TestACopyWithARenamedBroker starts a second dlo on a copy of a store in which the broker has
// another name. Only one of the two may send letters.
func TestACopyWithARenamedBroker(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	const letters = 20
	_, address := testenv.VHost(t)
	config := "brokers: [{name: %s, url: \"%%AMQP%%\"}]\ndefault: {retry: {delays: [6s]}}\nrequeue: {rate: 0, watch: 1h}\n"
	r := &restoring{newChild(t, address, fmt.Sprintf(config, "main")), newAudit(t, address, "orders", nil)}
	r.Start("")
	r.Draining()
	r.a.work()
	r.publish(0, letters)
	eventually(t, "they wait", func() bool { return r.finds("state:scheduled") == letters })
	two := copyOf(r, fmt.Sprintf(config, "prod"))
	two.dlo(t.Context(), 0, "", "brokers", "rename", "main", "prod", two.config)
	two.Start("")
	two.problem(deadletter.ProblemStoreTwice)
	eventually(t, "they arrive", func() bool { return r.a.copies() == letters })
	two.expectNothingSent(letters)
}

// TestTheDLOThatSendsIsStopped freezes a dlo for so long that the broker ends its connection or
// does not, while a second dlo runs on a copy of its store. The broker may also be restarted in
// between. No letter may arrive twice, except those for which the first dlo had no confirm yet when
// it was frozen. These must keep their token.
func TestTheDLOThatSendsIsStopped(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	const letters, inFlight = 600, 32
	for _, c := range []struct {
		late    time.Duration // how long the second dlo waits until it starts
		frozen  time.Duration
		restart bool
		early   bool // the first dlo is frozen before it sends letters, and the second one ends when the first goes on
	}{
		{late: 10 * time.Second},
		{restart: true},
		{frozen: 6 * time.Second},
		{frozen: 12 * time.Second},
		{frozen: 25 * time.Second},
		{frozen: 90 * time.Second},
		{frozen: 90 * time.Second, early: true},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			t.Parallel()
			node := testenv.Broker(t)
			if c.restart {
				node = testenv.PrivateBroker(t)
			}
			_, address := node.VHost(t)
			config := fmt.Sprintf(
				"default: {retry: {delays: [10s]}}\nrequeue: {rate: 20, in_flight: %d, watch: 1h}\n", inFlight,
			)
			a := newAudit(t, address, "orders", nil)
			r := &restoring{newChild(t, address, config), a}
			r.Start("")
			r.Draining()
			a.work()
			r.publish(0, letters)
			eventually(t, "they wait", func() bool { return r.finds("state:scheduled") == letters })
			two := copyOf(r, config)
			time.Sleep(c.late)
			two.Start("")
			two.problem(deadletter.ProblemStoreTwice)
			if !c.early {
				eventually(t, "some arrive", func() bool { return a.copies() > letters/10 })
			}
			if c.restart {
				node.Terminate()
				restart(t, node)
				a.reconnect(address)
				a.work()
			}
			r.cmd.Process.Signal(syscall.SIGSTOP)
			time.Sleep(c.frozen)
			r.cmd.Process.Signal(syscall.SIGCONT)
			if c.early {
				if n := a.copies(); n == 0 {
					t.Error("the second dlo has sent nothing")
				}
				two.Stop()
				r.problem(deadletter.ProblemStoreRestored)
			}
			quiet, last := 0, -1
			eventually(t, "all have arrived or are held, and nothing more is sent", func() bool {
				quiet++
				if n := a.copies(); n != last {
					quiet, last = 0, n
				}
				time.Sleep(time.Second)
				return quiet == 10
			})
			a.mu.Lock()
			defer a.mu.Unlock()
			again := 0
			for body, tokens := range a.accepted {
				if len(tokens) > 1 {
					t.Errorf("letter %s arrived under %d tokens", body, len(tokens))
				}
				for _, copies := range tokens {
					again += copies - 1
				}
			}
			if again > inFlight || c.frozen < 10*time.Second && !c.restart && again > 0 {
				t.Errorf("%d letters arrived again", again)
			}
			t.Logf("%d of %d letters arrived, %d again", len(a.accepted), letters, again)
		})
	}
}
