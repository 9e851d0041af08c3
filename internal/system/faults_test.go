package system

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/cli"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestConfirmsWithheld blocks all responses of the broker. Until the broker responds again, dlo may
// send at most requeue.in_flight letters. No letter may be lost.
func TestConfirmsWithheld(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	vhost, url := testenv.VHost(t)
	relay := testenv.Relay(t, node.AMQPAddr())
	a := newAudit(t, url, "work", nil)
	p := newChild(
		t, node.AMQPURLVia(relay.Addr(), vhost),
		"default: {retry: {delays: [2s]}}\nrequeue: {rate: 200, in_flight: 32, watch: 1s, confirm_timeout: 5s}\n",
	)
	p.Start("")
	p.Draining()
	a.work()
	a.publish(1, func(int) (string, string) { return "the first, so that the publishing channels are open", "" })
	eventually(t, "the first letter back", func() bool { return a.acceptedLetters() == 1 })
	retries := func(do string) { // pauses or resumes retries, so that no letter is sent before all letters have arrived
		t.Helper()
		if code, body := p.post("/api/v1/queues/"+do, map[string]any{"queue": "work"}); code != http.StatusOK {
			t.Fatal(code, body)
		}
	}
	retries("pause")
	const letters = 600
	a.publish(letters, func(i int) (string, string) { return fmt.Sprintf("letter %d", i), fmt.Sprint(i) })
	eventually(t, "all letters waiting", func() bool { return p.letters("scheduled") == letters })
	retries("resume")
	eventually(t, "more letters sent", func() bool { return a.acceptedLetters() > 1 })
	relay.Swallow(testenv.ToClient, true)
	time.Sleep(4 * time.Second) // longer than any send takes, and shorter than the confirm timeout
	if n := a.copies() - p.ask(`SELECT count(*) FROM attempts WHERE outcome = 'confirmed'`); n > 32 {
		t.Errorf("%d letters went out without a confirm, more than in_flight", n)
	}
	relay.Swallow(testenv.ToClient, false)
	relay.Cut()
	eventually(t, "all letters back", func() bool { return a.acceptedLetters() == 1+letters })
	eventually(t, "all letters settled", func() bool { return p.letters("settled") == 1+letters })
	surplus, duplicates := a.checkAll(p)
	if surplus != 0 || duplicates > 32 {
		t.Errorf("%d rows more than letters, %d duplicates", surplus, duplicates)
	}
}

// TestCleanStops stops dlo under load. dlo must end with exit code 0, must leave no letter in the
// state "publishing", and must send no letter twice.
func TestCleanStops(t *testing.T) {
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	a := newAudit(t, url, "work", nil)
	p := newChild(t, url, fast)
	p.Start("")
	p.Draining()
	a.work()
	stops, letters := 3, 600
	if soak() {
		stops, letters = 50, 10_000
	}
	for i := range stops {
		a.publish(letters, func(k int) (string, string) {
			return fmt.Sprintf("letter %d of round %d", k, i), fmt.Sprintf("%d-%d", i, k)
		})
		if code := p.Stop(); code != 0 {
			t.Fatalf("exit code %d\n%s", code, p.Log())
		}
		if n := p.letters("publishing"); n != 0 {
			t.Errorf("%d letters publishing after a clean stop", n)
		}
		p.Start("")
	}
	eventually(t, "all letters back", func() bool { return a.acceptedLetters() == stops*letters })
	eventually(t, "all letters settled", func() bool { return p.letters("settled") == stops*letters })
	if surplus, duplicates := a.checkAll(p); surplus != 0 || duplicates != 0 {
		t.Errorf("%d rows more than letters, %d duplicates after clean stops", surplus, duplicates)
	}
}

// TestAStopDoesNotWaitForALine stops dlo while it sends large letters over a very slow connection.
// A broker under a memory or disk alarm causes such a connection. Letters that were not sent must
// not be lost.
func TestAStopDoesNotWaitForALine(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, url := testenv.VHost(t)
	relay := testenv.Relay(t, node.AMQPAddr())
	a := newAudit(t, url, "work", nil)
	p := newChild(
		t, node.AMQPURLVia(relay.Addr(), vhost), "default: {retry: {delays: [1h]}}\nrequeue: {rate: 0, watch: 1s}\n",
	)
	p.Start("")
	p.Draining()
	a.work()
	const letters = 40
	body := strings.Repeat("x", 1<<20)
	a.publish(letters, func(i int) (string, string) { return fmt.Sprint(i, " ", body), fmt.Sprint(i) })
	eventually(t, "all letters stored", func() bool { return p.letters("scheduled") == letters })
	relay.Refuse(true)
	relay.Cut()
	if code, answer := p.post(
		"/api/v1/operations", requeueAtOnce(p.ids(`SELECT id, random FROM letters`)),
	); code >= 300 {
		t.Fatal(code, answer)
	}
	eventually(
		t, "all letters due",
		func() bool { return p.count("letters", `state = 'scheduled' AND operation IS NOT NULL`) == letters },
	)
	relay.Slice(64 << 10)
	relay.Delay(100 * time.Millisecond)
	relay.Refuse(false)
	eventually(t, "letters on their way", func() bool { return p.letters("publishing") > letters/2 })
	relay.Slice(1 << 10)
	relay.Delay(time.Second)
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.Log())
	}
	relay.Slice(0)
	relay.Delay(0)
	relay.Cut()
	p.Start("")
	eventually(t, "all letters settled", func() bool { return p.letters("settled") == letters })
	if surplus, _ := a.checkAll(p); surplus != 0 {
		t.Errorf("%d rows more than letters", surplus)
	}
}

// TestNoTarget deletes the origin queue of some letters. The broker returns these letters, and dlo
// must hold them. Letters of other queues must still be sent.
func TestNoTarget(t *testing.T) {
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	gone, stays := newAudit(t, url, "gone", nil), newAudit(t, url, "stays", nil)
	p := newChild(t, url, "default: {retry: {delays: [10s]}}\nrequeue: {rate: 0, watch: 1s}\n")
	p.Start("")
	p.Draining()
	gone.work()
	stays.work()
	gone.publish(20, func(i int) (string, string) { return fmt.Sprintf("gone %d", i), "" })
	stays.publish(20, func(i int) (string, string) { return fmt.Sprintf("stays %d", i), "" })
	eventually(t, "all letters stored", func() bool { return p.letters("scheduled") == 40 })
	if _, err := gone.channel().QueueDelete("gone", false, false, false); err != nil {
		t.Fatal(err)
	}
	eventually(t, "20 held, 20 settled", func() bool {
		return p.count("letters", `state = 'held' AND why LIKE 'no target: queue gone does not exist%'
			AND attempts = 0`) == 20 &&
			p.count("letters", `state = 'settled' AND attempts = 1`) == 20
	})
}

// TestStartsWithoutABroker starts dlo while its broker is unreachable. The server must run and
// report this, and must later connect automatically.
func TestStartsWithoutABroker(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	vhost, _ := testenv.VHost(t)
	relay := testenv.Relay(t, node.AMQPAddr())
	relay.Refuse(true)
	p := newChild(t, node.AMQPURLVia(relay.Addr(), vhost), fast)
	p.Start("")
	if code, body := p.get("/readyz"); code != 503 || !strings.Contains(body, `"connected":false`) {
		t.Errorf("/readyz without a broker: %d %s", code, body)
	}
	if code, body := p.get("/letters?q="); code != 200 || !strings.Contains(body, "connect") {
		t.Errorf("/letters without a broker: %d, and it does not say so", code)
	}
	if code, _ := p.get("/healthz"); code != 200 {
		t.Errorf("/healthz: %d", code)
	}
	relay.Refuse(false)
	eventually(t, "ready", func() bool { code, _ := p.get("/readyz"); return code == 200 })
}

// TestASecondInstanceIsTurnedAway starts a second dlo on the same store. It must end with exit code
// 4, even if it names the store by a symbolic or a hard link. The first dlo must continue.
func TestASecondInstanceIsTurnedAway(t *testing.T) {
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	p := newChild(t, url, fast)
	p.Start("")
	soft, hard := filepath.Join(t.TempDir(), "soft.db"), filepath.Join(t.TempDir(), "hard.db")
	if err := errors.Join(os.Symlink(p.store, soft), os.Link(p.store, hard)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{p.store, soft, hard} {
		second := newChild(t, url, fast)
		if err := os.WriteFile(
			second.config, []byte(fmt.Sprintf("listen: 127.0.0.1:0\nstore: %s\n", name)), 0o600,
		); err != nil {
			t.Fatal(err)
		}
		second.start("")
		<-second.ended
		if second.code != 4 || !strings.Contains(second.Log(), "another dlo holds the store") {
			t.Errorf("%s: exit code %d: %s", name, second.code, second.Log())
		}
	}
	if code, _ := p.get("/healthz"); code != 200 {
		t.Errorf("the first instance answers %d", code)
	}
}

// TestAStoreThatIsReplacedEndsDlo checks that dlo ends if somebody replaces the file of its store.
// If dlo did not end, it would write to a file that nobody can find again.
func TestAStoreThatIsReplacedEndsDlo(t *testing.T) {
	t.Parallel()
	testenv.Broker(t)
	_, url := testenv.VHost(t)
	p := newChild(t, url, fast)
	p.Start("")
	if err := errors.Join(os.WriteFile(p.store+".new", nil, 0o600), os.Rename(p.store+".new", p.store)); err != nil {
		t.Fatal(err)
	}
	<-p.ended
	if p.code != cli.ExitFailed || !strings.Contains(p.Log(), "the file of the store was replaced or moved away") {
		t.Errorf("exit code %d: %s", p.code, p.Log())
	}
}

// TestRefusesToStart checks the exit codes with which dlo refuses to start, because scripts rely on
// them. dlo must write nothing.
func TestRefusesToStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	damaged := filepath.Join(dir, "damaged.db")
	if err := os.WriteFile(damaged, []byte("this is no database at all, but somebody's notes"), 0o600); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, c := range []struct {
		name, config string
		code         int
		says         []string
	}{
		{
			"bad configuration",
			"listn: x\nrequeue: {rate: fast}\nsearch: {substring: true}\n",
			cli.ExitUsage,
			[]string{":1:1: there is no key \"listn\"", ":2:17:", ":3:10: substring: not in this version"},
		},
		{
			"an address that others can reach",
			"listen: 0.0.0.0:8672\nstore: " + filepath.Join(dir, "a.db"),
			cli.ExitUsage,
			[]string{"an address other than loopback needs auth"},
		},
		{
			"a damaged store",
			"store: " + damaged,
			cli.ExitFailed,
			[]string{"not an SQLite database", "Letters wait in the broker", "Restore"},
		},
		{
			"an address that is taken",
			"listen: " + taken.Addr().String() + "\nstore: " + filepath.Join(dir, "b.db"),
			cli.ExitFailed,
			[]string{"address already in use", "DLO_LISTEN"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newChild(t, "", "")
			if err := os.WriteFile(p.config, []byte(c.config), 0o600); err != nil {
				t.Fatal(err)
			}
			p.start("")
			<-p.ended
			if p.code != c.code {
				t.Errorf("exit code %d, want %d", p.code, c.code)
			}
			for _, s := range c.says {
				if !strings.Contains(p.Log(), s) {
					t.Errorf("it does not say %q:\n%s", s, p.Log())
				}
			}
		})
	}
	if b, err := os.ReadFile(damaged); err != nil || string(b) != "this is no database at all, but somebody's notes" {
		t.Errorf("the damaged store was changed: %q %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a.db")); err == nil {
		t.Error("a store was made although the configuration is bad")
	}
}
