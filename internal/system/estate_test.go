package system

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// estate is the vhost of a site that was not built for dlo. It has 31 queues with traffic.
type estate struct {
	*adopting
	conn   *amqp.Connection
	queues map[string]amqp.Table // queue -> arguments with which its service declares it
	p      *child
	config string // configuration of dlo

	failing  atomic.Bool // if true, consumers reject each tenth message when they see it for the first time
	mended   atomic.Bool // if true, the consumer of the queue naive no longer requeues each tenth message for ever
	stopping atomic.Bool // if true, the method publish returns

	mu       sync.Mutex
	sent     map[string]bool // ids of the published messages, without those that the site drops by design
	accepted map[string]int
	rejected map[string]bool
}

// openEstate declares the queues, exchanges and policies of the site, and starts its consumers.
func openEstate(t *testing.T, node *testenv.Node, vhost, address string) *estate {
	t.Helper()
	conn, err := amqp.Dial(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	s := &estate{
		adopting: &adopting{t: t, node: node, vhost: vhost},
		conn:     conn,
		queues:   map[string]amqp.Table{},
		sent:     map[string]bool{},
		accepted: map[string]int{},
		rejected: map[string]bool{},
	}
	if s.ch, err = conn.Channel(); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		s.queues[fmt.Sprintf("work.%d", i)] = nil
	}
	for i := range 6 {
		s.queues[fmt.Sprintf("jobs.%d", i)] = amqp.Table{"x-queue-type": "quorum"}
	}
	for i := range 5 {
		s.queues[fmt.Sprintf("events.%d", i)] = nil
	}
	for i := range 3 {
		s.queues[fmt.Sprintf("metrics.%d", i)] = amqp.Table{"x-message-ttl": int32(500)}
	}
	for i := range 2 {
		s.queues[fmt.Sprintf("latest.%d", i)] = amqp.Table{"x-max-length": int32(10)}
	}
	s.queues["legacy"], s.queues["legacy.dlq"] = amqp.Table{
		"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "legacy.dlq",
	}, nil
	s.queues["recipe"], s.queues["recipe.wait"] = amqp.Table{
		"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "recipe.wait",
	}, amqp.Table{
		"x-message-ttl": int32(500), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "recipe",
	}
	s.queues["naive"] = nil
	s.queues["work.1"] = amqp.Table{"x-max-priority": int32(5)}
	s.queues["work.2"] = amqp.Table{"x-queue-mode": "lazy"}
	s.queues["work.3"] = amqp.Table{"x-single-active-consumer": true}
	s.queues["work.4"] = amqp.Table{"x-expires": int32(3_600_000)}
	s.declare()
	if err := s.ch.ExchangeDeclare("events", "topic", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if err := s.ch.QueueBind(fmt.Sprintf("events.%d", i), "shop.#", "events", false, nil); err != nil {
			t.Fatal(err)
		}
	}
	s.api(http.MethodPut, "policies", "everything", map[string]any{
		"pattern":    ".*",
		"definition": map[string]any{"max-length": 100000},
		"priority":   0,
		"apply-to":   "queues",
	})
	s.api(http.MethodPut, "operator-policies", "caps", map[string]any{
		"pattern":    "^jobs",
		"definition": map[string]any{"max-length": 50000},
		"apply-to":   "queues",
	})
	for name := range s.queues {
		if !strings.HasPrefix(name, "metrics") && !strings.HasPrefix(name, "latest") && name != "recipe.wait" &&
			name != "legacy.dlq" {
			s.consume(name)
		}
	}
	return s
}

// declare declares each queue with the arguments of its service, as the service does when it
// starts.
func (s *estate) declare() {
	s.t.Helper()
	for name, arguments := range s.queues {
		if _, err := s.ch.QueueDeclare(name, true, false, false, false, arguments); err != nil {
			s.t.Fatalf("declare %s: %v", name, err)
		}
	}
}

// consume runs the consumer of a queue. If the queue is one of the naive ones, its consumer has a
// fault: it requeues each tenth message again and again, so these messages stay at the head of the
// queue. It stops this when the field "mended" is true.
func (s *estate) consume(queue string) {
	s.t.Helper()
	ch, err := s.conn.Channel()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := ch.Qos(20, 0, false); err != nil {
		s.t.Fatal(err)
	}
	deliveries, err := ch.Consume(queue, "", false, false, false, false, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	go func() {
		for d := range deliveries {
			id := queue + " " + string(d.Body)
			tenth := strings.HasSuffix(id, "0")
			if tenth && queue == "naive" && !s.mended.Load() {
				time.Sleep(5 * time.Millisecond)
				_ = d.Nack(false, true)
				continue
			}
			s.mu.Lock()
			bad := tenth && s.failing.Load() && !s.rejected[id]
			if bad {
				s.rejected[id] = true
			} else {
				s.accepted[id]++
			}
			s.mu.Unlock()
			if bad {
				_ = d.Nack(false, false)
				continue
			}
			_ = d.Ack(false)
		}
	}()
}

// publish publishes about 200 messages per second to the queues of the site, until the field
// "stopping" is true.
func (s *estate) publish() {
	ch, err := s.conn.Channel()
	if err != nil {
		s.t.Error(err)
		return
	}
	var names []string
	for name := range s.queues {
		if name != "recipe.wait" && name != "legacy.dlq" && !strings.HasPrefix(name, "events") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	published := map[string]int{}
	for n := 0; !s.stopping.Load(); n++ {
		exchange, key := "", names[n%len(names)]
		if n%40 == 0 {
			exchange, key = "events", "shop.order"
		}
		body := fmt.Sprint(published[key])
		published[key]++
		s.mu.Lock()
		switch {
		case exchange != "":
			for i := range 5 {
				s.sent[fmt.Sprintf("events.%d %s", i, body)] = true
			}
		case !strings.HasPrefix(key, "metrics") && !strings.HasPrefix(key, "latest"):
			s.sent[key+" "+body] = true
		}
		s.mu.Unlock()
		if err := ch.PublishWithContext(context.Background(), exchange, key, true, false, amqp.Publishing{
			DeliveryMode: amqp.Persistent, MessageId: body, Body: []byte(body),
		}); err != nil {
			s.t.Error(err)
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// checkMessages checks the fate of each message in the field "sent". Either one consumer accepted
// the message exactly once, or the message is in legacy.dlq, the site's own dead-letter queue.
func (s *estate) checkMessages() {
	s.t.Helper()
	eventually(s.t, "every message is accepted or in legacy.dlq", func() bool { return len(s.missingMessages()) == 0 })
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, n := range s.accepted {
		if n > 1 {
			s.t.Errorf("%q was accepted %d times", id, n)
		}
	}
	s.t.Logf("%d messages, of which %d were rejected", len(s.sent), len(s.rejected))
}

// missingMessages returns the ids of the messages that no consumer accepted and that are not in
// legacy.dlq.
func (s *estate) missingMessages() (list []string) {
	s.t.Helper()
	parked := s.read("legacy.dlq")
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.sent {
		body, legacy := strings.CutPrefix(id, "legacy ")
		if s.accepted[id] == 0 && !(legacy && parked[body]) {
			list = append(list, id)
		}
	}
	return list
}

// read returns the bodies of the messages in a queue. The messages stay in the queue. No consumer
// may read the queue at the same time.
func (s *estate) read(queue string) map[string]bool {
	s.t.Helper()
	ch, err := s.conn.Channel()
	if err != nil {
		s.t.Fatal(err)
	}
	defer ch.Close() // returns the messages to the queue
	bodies := map[string]bool{}
	for {
		d, ok, err := ch.Get(queue, false)
		if err != nil {
			s.t.Fatal(err)
		}
		if !ok {
			return bodies
		}
		bodies[string(d.Body)] = true
	}
}

// definitions returns the sorted definitions of the vhost, as the management API exports them.
func (s *estate) definitions() string {
	s.t.Helper()
	var all map[string]json.RawMessage
	if err := s.node.API(http.MethodGet, "/api/definitions/"+url.PathEscape(s.vhost), nil, &all); err != nil {
		s.t.Fatal(err)
	}
	var list []string
	for kind, text := range all {
		var things []json.RawMessage
		if json.Unmarshal(text, &things) != nil {
			continue // this definition is not a list, for example the version
		}
		for _, one := range things {
			list = append(list, kind+" "+string(one))
		}
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// TestASiteAdoptsDloAndLeavesIt runs the commands of docs/adopting.md and docs/leaving.md on a site
// with 31 queues and traffic. Consumers reject messages while dlo only observes, and also after
// that.
//
// dlo must find the consumer that requeues messages for ever, and must stop reporting it after its
// repair. Nobody may be paged. Messages that are dropped by design must not cause a flood of
// notices. No service may fail to declare its queue, and no message may be lost. Everything that
// belongs to the site must be as before, beside dlo and after the site has left dlo.
func TestASiteAdoptsDloAndLeavesIt(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	s := openEstate(t, node, vhost, address)
	if len(s.queues) != 31 {
		t.Fatalf("%d queues", len(s.queues))
	}
	before := s.definitions()
	var publishing sync.WaitGroup
	publishing.Go(s.publish)
	t.Cleanup(func() { s.stopping.Store(true) })
	// the management API shows its first figures after some seconds
	eventually(t, "the broker shows what the site did", func() bool {
		var stats json.RawMessage
		err := node.API(
			http.MethodGet, "/api/queues/"+url.PathEscape(vhost)+"/naive?columns=message_stats.redeliver", nil, &stats,
		)
		return err == nil && strings.Contains(string(stats), `"redeliver"`)
	})
	people, guide := newReceiver(t), readGuide(t, "adopting.md")
	s.config = guide.block("yaml", 1,
		"amqp: {host: rabbit, user: dlo, password_file: /etc/dlo/password}", fmt.Sprintf("url: %q", address),
		`management: {url: "http://rabbit:15672", user: dlo, password_file: /etc/dlo/password}`,
		fmt.Sprintf("management: %q", node.ManagementURLOf("guest:guest")))
	s.config += strings.Replace(people.configFor(t, "page"), "delays: []", "delays: [1s]", 1)
	s.p = newChild(t, address, s.config)

	s.adopt(guide)
	s.mendNaive(guide)
	s.endObserving(guide)
	guide.checkAllRun()
	ofDLO := regexp.MustCompile(`"(name|source|destination)":"dlo[.-]`)
	if beside := slices.DeleteFunc(strings.Split(s.definitions(), "\n"), ofDLO.MatchString); !slices.Equal(
		beside, strings.Split(before, "\n"),
	) {
		t.Errorf("before:\n%s\nbeside dlo:\n%s", before, strings.Join(beside, "\n"))
	}
	s.declare() // declares the queues as if every service started again
	s.failing.Store(false)
	eventually(t, "no rejected letter waits", func() bool {
		return s.p.count("letters", "reason = 'rejected' AND state IN ('received', 'scheduled', 'publishing')") == 0
	})
	if n := s.p.letters("dead") + s.p.letters("held"); n > 0 {
		t.Errorf("%d letters need people", n)
	}
	s.leave()
	s.stopping.Store(true)
	publishing.Wait()
	s.checkMessages()
	s.declare()
	if after := s.definitions(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	s.checkNotices(people)
}

// checkNotices checks the notices that people received. Nobody may have been paged. Each fault that
// the site had before dlo must have been reported exactly once. Notices about a queue without a
// dead-letter exchange are ignored, because they appear only on a busy machine.
func (s *estate) checkNotices(people *receiver) {
	s.t.Helper()
	faults := []string{"Dead-letter queue legacy.dlq deletes letters", "naive delivers the same messages again"}
	told := map[string]int{}
	people.mu.Lock()
	defer people.mu.Unlock()
	for _, n := range people.told {
		if n.Data.Severity == "page" {
			s.t.Errorf("people were paged: %+v", n)
		}
		if n.Type != "notice.problem" || strings.Contains(n.Data.Title, " has no dead-letter exchange") {
			continue
		}
		i := slices.IndexFunc(faults, func(fault string) bool { return strings.HasPrefix(n.Data.Title, fault) })
		if i < 0 || told[faults[i]] > 0 {
			s.t.Errorf("people were told: %+v", n)
			continue
		}
		told[faults[i]]++
	}
	if len(told) != len(faults) {
		s.t.Errorf("people were told %v", told)
	}
}

// runCommand runs a command of a document, with further arguments, and returns what it prints. The
// test fails unless the exit code is the expected one.
func (s *estate) runCommand(code int, command string, more ...string) string {
	s.t.Helper()
	out, _ := s.p.dlo(s.t.Context(), code, "", append(words(command)[1:], more...)...)
	return out
}

// adopt checks the site and starts dlo, which only observes. It then applies the plan that sends
// the rejected messages of the queues to dlo. After that, consumers begin to reject messages.
func (s *estate) adopt(guide *guide) {
	s.t.Helper()
	at := "http://user:password@host:15672"
	out := s.runCommand(
		5, guide.command("dlo topology check --broker "+at, at, s.node.ManagementURLOf("guest:guest")), "--vhost",
		s.vhost,
	)
	if !strings.HasPrefix(out, "27 of 31 queues will drop what their consumers reject") {
		s.t.Errorf("%s", out)
	}
	rabbitmqctl(
		s.t, s.node, s.vhost,
		guide.command(
			`rabbitmqctl set_policy --priority 1000 --apply-to queues dlo-own '^dlo\.' '{"overflow":"drop-head"}'`,
		),
	)
	s.p.Start("")
	s.p.Draining()
	eventually(s.t, "dlo has looked", func() bool {
		_, body := s.p.get("/api/v1/topology/findings")
		return strings.Contains(body, `"read_at"`)
	})
	var plans struct{ Plans []struct{ Rule string } }
	plan := guide.command("dlo topology plan orders", "orders", "*")
	// Some queues keep only the latest messages, but dlo sees this only when such a queue is at
	// least half full. The test therefore repeats the plan until it names all these queues.
	eventually(s.t, "the plan names every queue that drops by design", func() bool {
		out, _ = s.p.dlo(s.t.Context(), 3, "", append(words(plan)[1:], "-o", "json")...)
		if err := json.Unmarshal([]byte(out), &plans); err != nil || len(plans.Plans) != 1 {
			s.t.Fatalf("%v\n%s", err, out)
		}
		return strings.Contains(
			plans.Plans[0].Rule, `queue: ["latest.0", "latest.1", "metrics.0", "metrics.1", "metrics.2"]`,
		)
	})
	out = s.runCommand(3, plan)
	for _, queue := range []string{"legacy", "recipe", "recipe.wait"} {
		alone := regexp.MustCompile(
			`left alone: ` + queue + ` in vhost \S+ of broker main: it was declared with the argument x-dead-letter-exchange`,
		)
		if !alone.MatchString(out) {
			s.t.Errorf("the plan does not leave %s alone:\n%s", queue, out)
		}
	}
	s.config += plans.Plans[0].Rule
	s.p.Configure(s.config)
	s.p.Hangup()
	eventually(s.t, "dlo has the rule of the plan", func() bool {
		return strings.Contains(s.runCommand(0, "dlo rules list"), "dropped by design")
	})
	out = s.runCommand(
		0, guide.command("dlo topology apply orders", "orders", "work.* jobs.* events.* metrics.* latest.* naive"),
		"--yes",
	)
	if !strings.Contains(out, "instead of policy everything, whose other keys it repeats") ||
		strings.Contains(out, "not proved") {
		s.t.Errorf("%s", out)
	}
	s.failing.Store(true)
}

// mendNaive waits until dlo finds the consumer that requeues messages for ever. It then makes the
// consumer reject these messages, and waits until dlo no longer reports it.
func (s *estate) mendNaive(guide *guide) {
	s.t.Helper()
	storm := func() (found []string) {
		_, body := s.p.get("/api/v1/topology/findings")
		var all struct {
			Findings []struct{ Kind, Queue, Title, Why, Cure string }
		}
		if err := json.Unmarshal([]byte(body), &all); err != nil {
			s.t.Fatal(err)
		}
		for _, f := range all.Findings {
			if f.Kind == "redelivery_storm" {
				found = append(found, f.Queue+": "+f.Title+". "+f.Why+" "+f.Cure)
			}
		}
		return found
	}
	eventually(s.t, "the storm is found", func() bool { return len(storm()) > 0 })
	told := regexp.MustCompile(
		`^naive: naive delivers the same messages again, (\d+) times a second\. .*\((\d+) redeliveries and \d+ acknowledgements a second\).* reject failed messages without requeue`,
	)
	found := storm()
	if len(found) != 1 || !told.MatchString(found[0]) {
		s.t.Errorf("%q", found)
	}
	s.mended.Store(true)
	eventually(s.t, "the storm is gone", func() bool { return len(storm()) == 0 })
	if out := s.runCommand(
		5, guide.command("dlo topology check"),
	); strings.Contains(out, "redelivery_storm") || strings.Contains(out, "no_exchange") {
		s.t.Errorf("%s", out)
	}
}

// endObserving restarts dlo without `observe: true` and requeues or discards the observed letters.
// It then waits until the rule has retried 200 letters.
func (s *estate) endObserving(guide *guide) {
	s.t.Helper()
	if n := s.p.count("attempts", ""); n > 0 {
		s.t.Errorf("%d letters were retried while dlo only observes", n)
	}
	for _, queue := range []string{"naive", "work.0", "jobs.0", "events.0", "metrics.0", "latest.0"} {
		eventually(s.t, "letters of "+queue+" were observed", func() bool {
			return s.p.count(
				"letters l JOIN origins o ON o.id = l.origin", "l.state = 'dead' AND o.queue = $1", queue,
			) > 0
		})
	}
	if _, body := s.p.get("/api/v1/queues"); strings.Contains(body, deadletter.ProbePrefix) {
		s.t.Errorf("the temporary queue of a policy is listed: %s", body)
	}
	s.p.Stop()
	s.p.Configure(replaceExamples(s.t, s.config, "    observe: true\n", ""))
	s.p.Start("")
	s.p.Draining()
	s.runCommand(
		0, guide.command("dlo letters requeue -q 'rule:observed reason:rejected'"), "--yes", "--canary", "0", "--hold",
		"0s", "--rate", "1000",
	)
	s.runCommand(0, guide.command("dlo letters discard -q 'rule:observed reason:expired,maxlen'"), "--yes")
	eventually(s.t, "no observed letter is dead", func() bool { return s.p.letters("dead") == 0 })
	eventually(
		s.t, "200 letters were retried by the rule",
		func() bool { return s.p.count("attempts", "operation IS NULL") >= 200 },
	)
}

// leave takes one queue out of its policy. It then removes everything that belongs to dlo, with the
// commands of docs/leaving.md.
func (s *estate) leave() {
	s.t.Helper()
	guide := readGuide(s.t, "leaving.md")
	if out := s.runCommand(0, guide.command("dlo topology undo")); strings.Count(out, "dlo-") < 2 {
		s.t.Errorf("%s", out)
	}
	s.runCommand(0, guide.command("dlo topology leave orders", "orders", "work.0"), "--yes")
	if out := rabbitmqctl(
		s.t, s.node, s.vhost, "rabbitmqctl list_queues name policy",
	); !strings.Contains(out, "work.0\teverything\n") || strings.Contains(out, "work.1\teverything\n") {
		s.t.Errorf("%s", out)
	}
	s.runCommand(0, guide.command("dlo topology undo '*'"), "--yes")
	eventually(s.t, "no letter is on its way", func() bool {
		list, err := s.node.Ctl("list_queues", "-p", s.vhost, "name", "policy", "messages")
		return err == nil && !strings.Contains(strings.ReplaceAll(list, "dlo-own", ""), "\tdlo-") &&
			strings.Contains(list, "dlo.letters\tdlo-own\t0\n") && s.p.letters("received") == 0
	})
	rabbitmqctl(s.t, s.node, s.vhost, guide.command("rabbitmqctl clear_policy dlo-own"))
	s.p.Stop()
	s.p.leave(0, words(guide.command("dlo leave"))[2:]...)
	file := filepath.Join(s.t.TempDir(), "letters.ndjson")
	s.p.leave(0, words(guide.command("dlo leave --yes --export letters.ndjson", "letters.ndjson", file))[2:]...)
	guide.checkAllRun()
}
