package system

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
	"github.com/deadletteroffice/dlo/web/view"
	amqp "github.com/rabbitmq/amqp091-go"
)

// The tests in this file are the product's scenarios about operations, with a real broker, but with
// fewer letters. TestOperationOnAQuery is the scenario with a whole flood, a broken worker and five
// kills.

// rejecting is a configuration without retries, so that letters are dead immediately.
const rejecting = "default: {retry: {delays: []}}\nrequeue: {watch: 2s}\n"

// awaitOver waits until an operation is over, and returns it.
func (p *child) awaitOver(id string) answered {
	p.t.Helper()
	eventually(p.t, id+" is over", func() bool { return p.operation(id).Phase == "over" })
	return p.operation(id)
}

// startOperation starts an operation through the API and returns its id.
func (p *child) startOperation(request map[string]any) string {
	p.t.Helper()
	code, body := p.post("/api/v1/operations", request)
	var op answered
	if err := json.Unmarshal([]byte(body), &op); err != nil || code != http.StatusAccepted {
		p.t.Fatalf("%d %s (%v)", code, body, err)
	}
	return op.ID
}

// TestAFloodIsOneGroup is scenario 1. The letters of one bad deploy must become one group and one
// page. dlo must need only a limited amount of memory, and pages must still respond.
func TestAFloodIsOneGroup(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	letters := 20_000
	if soak() {
		letters = 500_000
	}
	_, amqpURL := testenv.VHost(t)
	a := newAudit(t, amqpURL, "orders", nil)
	a.header = amqp.Table{"x-error-message": "template welcome_v3 not found"}
	r := newReceiver(t)
	p := newChild(t, amqpURL, r.configFor(t, "page"))
	p.Start("")
	p.Draining()
	a.work()
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.publish(letters, func(i int) (string, string) { return fmt.Sprintf(`{"number": %d}`, i), fmt.Sprint(i) })
	}()
	paths := []string{"/triage?tab=digest", "/letters?q=state:dead", "/letters?q=timeout"}
	for _, place := range view.Places {
		paths = append(paths, place.Path)
	}
	for _, path := range paths {
		if code, _ := p.get(path); code != 200 {
			t.Errorf("%s: %d during the flood", path, code)
		}
	}
	<-done
	stored := 0
	for stored < letters { // waits without a time limit while the number of stored letters grows
		before := stored
		eventually(t, "more letters are dead", func() bool { stored = p.letters("dead"); return stored > before })
	}
	if n := p.count("groups", ""); n != 1 {
		t.Errorf("%d groups", n)
	}
	eventually(
		t, "somebody is paged", func() bool { return p.count("deliveries", `state = 'due'`) == 0 && r.count() > 0 },
	)
	if opened := r.notices("notice.opened"); len(opened) != 1 || r.count() > 3 {
		t.Errorf("%d pages, %d messages", len(opened), r.count())
	}
	_, page := p.get("/")
	if !strings.Contains(page, "template welcome_v3 not found") ||
		!strings.Contains(page, fmt.Sprintf("%d,%03d", letters/1000, letters%1000)) {
		t.Error("the overview does not say it")
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var peak int
	for line := range strings.Lines(string(status)) {
		fmt.Sscanf(line, "VmHWM: %d kB", &peak)
	}
	if peak == 0 || peak > 400<<10 {
		t.Errorf("%d kB of memory at the most", peak)
	}
}

// TestAFanOutThatDiedInTwoQueues is scenario 4. An event dies in two of three queues. Its two
// letters must refer to each other, and a requeue must affect only the selected queue.
func TestAFanOutThatDiedInTwoQueues(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	_, amqpURL := testenv.VHost(t)
	email, sms, billing := newAudit(t, amqpURL, "email", nil), newAudit(t, amqpURL, "sms", nil), newAudit(
		t, amqpURL, "billing", nil,
	)
	billing.refuse = func(*amqp.Delivery) bool { return false }
	p := newChild(t, amqpURL, rejecting)
	p.Start("")
	p.Draining()
	ch := email.channel()
	if err := ch.ExchangeDeclare("events", "fanout", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	for _, a := range []*audit{email, sms, billing} {
		if err := ch.QueueBind(a.queue, "", "events", false, nil); err != nil {
			t.Fatal(err)
		}
		a.work()
	}
	for i := range 3 {
		if err := ch.Publish("events", "user.created", false, false, amqp.Publishing{
			Body: fmt.Appendf(nil, "event %d", i), DeliveryMode: 2,
		}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "six letters", func() bool {
		return p.letters("dead") == 6 && p.count("unindexed", "") == 0
	})
	id := p.ids(`SELECT l.id, l.random FROM letters l JOIN origins o ON o.id = l.origin WHERE o.queue = $1 ORDER BY l.id
		LIMIT 1`, "email")[0]
	_, body := p.get("/api/v1/letters/" + string(id))
	var detail struct{ Siblings []deadletter.ID }
	if err := json.Unmarshal([]byte(body), &detail); err != nil || len(detail.Siblings) != 1 {
		t.Fatalf("%v: %s", err, body)
	}
	if _, page := p.get("/letters/" + string(id)); !strings.Contains(page, detail.Siblings[0].Short()) ||
		!strings.Contains(page, "the same message, in other queues") {
		t.Error("the page of the letter does not show its sibling")
	}
	op := p.startOperation(map[string]any{"action": "requeue", "q": "queue:email", "hold": "0s", "canary": 0})
	if got := p.awaitOver(op); got.Total != 3 || got.Counts["quiet"]+got.Counts["unverified"] != 3 {
		t.Errorf("%+v", got)
	}
	if e, s, b := email.acceptedLetters(), sms.acceptedLetters(), billing.copies(); e != 3 || s != 0 || b != 3 {
		t.Errorf("email got %d, sms %d, billing %d (of the first publish)", e, s, b)
	}
}

// TestTwoPeopleAndTheScheduler is scenario 9. Two people and the scheduler act on the same letters
// at the same time. Each letter must be sent once, and whoever is later must learn who was first.
func TestTwoPeopleAndTheScheduler(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	_, amqpURL := testenv.VHost(t)
	a := newAudit(t, amqpURL, "work", nil)
	p := newChild(t, amqpURL, "default: {retry: {delays: [3s]}}\nrequeue: {watch: 2s, rate: 0}\n")
	p.Start("")
	p.Draining()
	a.work()
	const letters = 300
	a.publish(letters, func(i int) (string, string) { return fmt.Sprintf("letter %d", i), fmt.Sprint(i) })
	eventually(t, "letters wait for their retry", func() bool {
		return p.letters() == letters && p.letters("received") == 0
	})
	ids := p.ids(`SELECT id, random FROM letters ORDER BY id`)
	var people sync.WaitGroup
	answers := make([]answered, 2)
	for i := range answers {
		people.Go(func() {
			request := requeueAtOnce(ids[i*50 : 200+i*50])
			request["reason"] = fmt.Sprintf("person %d", i)
			body, _ := json.Marshal(request)
			answer, err := http.Post(p.url+"/api/v1/operations", "application/json", strings.NewReader(string(body)))
			if err != nil {
				t.Error(err)
				return
			}
			defer answer.Body.Close()
			json.NewDecoder(answer.Body).Decode(&answers[i])
		})
	}
	people.Wait()
	eventually(t, "every letter arrived", func() bool { return a.acceptedLetters() == letters })
	for _, op := range answers {
		p.awaitOver(op.ID)
	}
	eventually(t, "all quiet", func() bool { return p.letters("settled") == letters })
	time.Sleep(time.Second)
	if n := a.copies(); n != letters {
		t.Errorf("%d copies of %d letters arrived", n, letters)
	}
	skipped := 0
	for _, op := range answers {
		got := p.operation(op.ID)
		skipped += got.Counts["skipped"]
		_, body := p.get("/api/v1/operations/" + op.ID + "?result=skipped&limit=500")
		var list struct {
			Letters []struct{ Reason string }
		}
		if err := json.Unmarshal([]byte(body), &list); err != nil || len(list.Letters) != got.Counts["skipped"] {
			t.Errorf("%v: %d listed of %d", err, len(list.Letters), got.Counts["skipped"])
		}
		for _, l := range list.Letters {
			if !strings.HasPrefix(l.Reason, "operation O-") && !strings.HasPrefix(l.Reason, "it is ") {
				t.Errorf("skipped because %q", l.Reason)
			}
		}
	}
	if skipped < 150 {
		t.Errorf("%d letters were skipped by who came second, of 150 that both chose", skipped)
	}
	_, body := p.get("/api/v1/letters/count?exact=1&q=" + url.QueryEscape("state:settled"))
	if !strings.Contains(body, fmt.Sprint(letters)) {
		t.Error(body)
	}
}
