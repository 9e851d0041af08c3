package system

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// finds returns how many letters match a query.
func (p *child) finds(query string) int {
	p.t.Helper()
	code, body := p.get("/api/v1/letters/count?exact=1&q=" + strings.ReplaceAll(query, " ", "+"))
	var out struct{ Count int }
	if err := json.Unmarshal([]byte(body), &out); err != nil || code != http.StatusOK {
		p.t.Fatalf("%d %s", code, body)
	}
	return out.Count
}

// TestABrokerIsRenamed renames a broker in the configuration while letters wait. dlo must report
// that no broker will send these letters, and no page may show a time for them. The remedy names a
// command, which must refuse to run while dlo runs, and wrong names. After the command, the letters
// must belong to the new name, and dlo must have the proof that its store is current.
//
// After that, each letter must arrive exactly once, including letters that are received under the
// new name. Letters with the same cause must be in one group.
func TestABrokerIsRenamed(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	const before, after = 100, 20
	_, address := testenv.VHost(t)
	a := newAudit(t, address, "orders", nil)
	a.header = amqp.Table{"x-error-message": "template welcome_v3 not found"}
	pager := newReceiver(t)
	channels := pager.configFor(t, "page")
	channels = channels[strings.Index(channels, "channels:"):]
	as := func(broker string) string {
		return fmt.Sprintf(
			"brokers: [{name: %s, url: \"%%AMQP%%\"}]\ndefault: {retry: {delays: [1h]}, dead: {severity: page, notify: [hook]}}\nrequeue: {rate: 0, watch: 1s}\n%s",
			broker, channels,
		)
	}
	p := newChild(t, address, as("main"))
	p.Start("")
	p.Draining()
	a.work()
	a.publish(before, func(i int) (string, string) { return fmt.Sprint("letter ", i), fmt.Sprint(i) })
	eventually(t, "they wait", func() bool { return p.letters("scheduled") == before })
	p.Stop()

	p.Configure(as("prod"))
	p.Start("")
	p.Draining()
	list := p.problems(deadletter.ProblemBrokerUnknown)
	if len(list) != 1 || list[0].Severity != "page" ||
		list[0].Title != "100 letters belong to broker main, which is not configured." || list[0].Broker != "main" ||
		!strings.Contains(list[0].Cure, "stop dlo and run: dlo brokers rename main prod.") {
		t.Fatalf("/readyz: %+v", list)
	}
	for _, page := range []string{"/", "/letters", "/queues"} {
		if _, text := p.get(page); !strings.Contains(text, list[0].Title) ||
			!strings.Contains(text, "dlo brokers rename main prod") {
			t.Errorf("%s does not say it", page)
		}
	}
	if _, text := p.get("/"); strings.Contains(text, "Nothing needs a person") {
		t.Error("Overview says that nothing needs a person")
	}
	if _, metrics := p.get("/metrics"); !strings.Contains(
		metrics, `dlo_problems{broker="main",kind="broker_unknown",severity="page"} 1`,
	) {
		t.Error("the metric does not say it")
	}
	const nobody = `there is no broker \"main\" in the configuration`
	for _, request := range []string{
		`{"action":"retry_now","q":"state:scheduled","dry_run":true}`,
		`{"action":"requeue","q":"state:scheduled","dry_run":true}`,
	} {
		if code, plan := p.post(
			"/api/v1/operations", json.RawMessage(request),
		); code != http.StatusOK || !strings.Contains(plan, `"eligible":0`) || !strings.Contains(plan, nobody) {
			t.Errorf("%s: %d %s", request, code, plan)
		}
	}
	if op := p.awaitOver(p.startOperation(map[string]any{
		"action": "retry_now", "q": "state:scheduled", "reason": "now",
	})); op.Counts["skipped"] != before || op.Counts["done"] != 0 {
		t.Errorf("%+v", op)
	}
	pager.waitForNotice(t, "belong to broker main")
	rename := func(code int, names, want string) {
		t.Helper()
		args := append([]string{"broker", "rename", "--config", p.config}, strings.Fields(names)...)
		if out, errs := p.dlo(t.Context(), code, "", args...); !strings.Contains(out+errs, want) {
			t.Errorf("dlo broker rename %s: %s%s", names, out, errs)
		}
	}
	rename(4, "main prod", "another dlo holds the store")
	p.Stop()

	rename(2, "main test", "there is no broker test in the configuration")
	rename(2, "prod prod", "broker prod is still in the configuration")
	rename(1, "mian prod", "the store has nothing of this broker; it has brokers: main, prod")
	rename(0, "main prod", "broker prod has everything of broker main")
	rename(1, "main prod", "it has brokers: prod")
	p.Start("")
	p.Draining()
	if list := p.problems(deadletter.ProblemBrokerUnknown); len(list) != 0 {
		t.Errorf("still %+v", list)
	}
	a.publish(after, func(i int) (string, string) { return fmt.Sprint("young ", i), fmt.Sprint("y", i) })
	eventually(t, "more wait", func() bool { return p.letters("scheduled") == before+after })
	for query, want := range map[string]int{
		"broker:main": 0, "broker:prod": before + after, "broker:prod queue:orders": before + after,
	} {
		if n := p.finds(query); n != want {
			t.Errorf("%s finds %d letters", query, n)
		}
	}
	eventually(t, "they are one group", func() bool {
		return p.ask(`SELECT count(DISTINCT grp) FROM letters`) == 1 && p.count("unread", "1 = 1") == 0
	})
	if op := p.awaitOver(p.startOperation(map[string]any{
		"action": "retry_now", "q": "state:scheduled", "reason": "now",
	})); op.Counts["done"] != before+after {
		t.Errorf("%+v", op)
	}
	eventually(t, "all arrive", func() bool { return a.acceptedLetters() == before+after })
	if surplus, duplicates := a.checkAll(p); surplus != 0 || duplicates != 0 {
		t.Errorf("%d rows more than letters, %d copies", surplus, duplicates)
	}
	eventually(t, "they are settled", func() bool { return p.letters("settled") == before+after })
}

// TestABrokerIsRenamedAfterAKill kills dlo after it has taken a batch of letters (a window), and
// then renames the broker. The window must still belong to this broker. No letter may be stored
// twice. Then dlo is killed while it sends letters, and the broker is renamed again.
func TestABrokerIsRenamedAfterAKill(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	const letters = 300
	_, address := testenv.VHost(t)
	a := newAudit(t, address, "orders", nil)
	as := func(broker string) string {
		return fmt.Sprintf("brokers: [{name: %s, url: \"%%AMQP%%\"}]\n%s", broker, fast)
	}
	p := newChild(t, address, as("main"))
	p.Start("")
	p.Draining() // from here on, RabbitMQ routes rejected messages to dlo
	p.Stop()
	p.Start("ingest: committed=2")
	a.work()
	a.publish(letters, func(i int) (string, string) { return fmt.Sprint("letter ", i), fmt.Sprint(i) })
	p.Crashed("the crash")
	p.Configure(as("prod"))
	p.dlo(t.Context(), 0, "", "brokers", "rename", "main", "prod", p.config)
	p.Start("requeue: publishing=2") // this crash may come before dlo has decided the window
	p.Crashed("the second crash")
	p.Configure(as("live"))
	p.dlo(t.Context(), 0, "", "brokers", "rename", "prod", "live", p.config)
	p.Start("")
	eventually(t, "all letters back", func() bool { return a.acceptedLetters() >= letters })
	eventually(t, "all letters settled", func() bool { return p.letters("settled") >= letters })
	if surplus, _ := a.checkAll(p); surplus != 0 {
		t.Errorf("%d rows more than letters", surplus)
	}
}
