package system

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

var (
	benchLetters = flag.Int("letters", 60_000, "letters per measurement of TestBench")
	benchRounds  = flag.Int("rounds", 5, "rounds of TestBench; each measures every line once")
	benchRows    = flag.Int("rows", 1_000_000, "rows of the large store of TestBench")
	benchOnly    = flag.String("only", "", "measure only lines whose name contains this")
)

// bench contains a broker and the results that were measured with it.
type bench struct {
	t     *testing.T
	node  *testenv.Node
	vhost string
	url   string
	conn  *amqp.Connection
	n     int
	lines map[string][]measure
	order []string
}

// measure is the result of one measurement in one round.
type measure struct {
	perSecond float64
	cpu       float64 // microseconds of processor time per letter, of client and broker together
}

const (
	bodyBytes  = 500
	operations = "requeue: dlo, by operations of 10,000"
)

// TestBench measures the goals P1 to P5 of docs/performance.md. It alternates the two runs that it
// compares (A, B, A, B ...) and reports the median of the ratios, with minimum and maximum. `make
// bench` runs the test, and docs/performance.md contains the results.
func TestBench(t *testing.T) {
	testenv.Bench(t)
	b := &bench{t: t, node: testenv.PrivateBroker(t), n: *benchLetters, lines: map[string][]measure{}}
	b.vhost, b.url = b.node.VHost(t)
	var err error
	if b.conn, err = amqp.Dial(b.url); err != nil {
		t.Fatal(err)
	}
	defer b.conn.Close()
	t.Logf("RabbitMQ %s, %d letters of %d B, quorum queues, %d rounds", b.node.Version(), b.n, bodyBytes, *benchRounds)
	for range *benchRounds {
		b.line("drain: raw consumer", b.rawConsumer)
		b.line("drain: dlo", b.drain)
		b.line("drain: shovel", b.shovel)
		b.line("requeue: raw publisher, window 128", func() measure { return b.rawPublisher(128, b.n) })
		b.line("requeue: dlo", b.retry)
		b.line(operations, b.operate)
		b.line("requeue: confirm each", func() measure { return b.rawPublisher(1, b.n/20) })
	}
	for _, name := range b.order {
		t.Logf("%-36s %s", name, summary(b.lines[name]))
	}
	b.ratio("P1 drain against raw", "drain: dlo", "drain: raw consumer", ">= 0.60", rate)
	b.ratio("P1 the same, first window to last", steadyDrain, "drain: raw consumer", ">= 0.60", rate)
	b.ratio("P2 drain against shovel", "drain: dlo", "drain: shovel", ">= 5", rate)
	b.ratio("P3 CPU of draining against raw", "drain: dlo", "drain: raw consumer", "<= 1.8", load)
	b.ratio("P4 requeue against raw", "requeue: dlo", "requeue: raw publisher, window 128", ">= 0.60", rate)
	b.ratio("P4 operations against raw", operations, "requeue: raw publisher, window 128", ">= 0.50", rate)
	b.ratio("P5 requeue against shovel", "requeue: dlo", "drain: shovel", ">= 1.6", rate)
	b.ratio("P5 requeue against confirm each", "requeue: dlo", "requeue: confirm each", ">= 8", rate)
}

func rate(m measure) float64 { return m.perSecond }
func load(m measure) float64 { return m.cpu }

func (b *bench) line(name string, run func() measure) {
	if !strings.Contains(name, *benchOnly) {
		return
	}
	if _, ok := b.lines[name]; !ok {
		b.order = append(b.order, name)
	}
	b.lines[name] = append(b.lines[name], run())
}

func summary(ms []measure) string {
	rates, loads := column(ms, rate), column(ms, load)
	return fmt.Sprintf(
		"%8.0f /s (%.0f to %.0f), %5.0f us CPU per letter", median(rates), slices.Min(rates), slices.Max(rates),
		median(loads),
	)
}

func column(ms []measure, of func(measure) float64) []float64 {
	var values []float64
	for _, m := range ms {
		values = append(values, of(m))
	}
	return values
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// ratio divides the results of two runs, round by round, and logs the median of these ratios.
func (b *bench) ratio(name, numerator, denominator, goal string, value func(measure) float64) {
	var ratios []float64
	for i := range min(len(b.lines[numerator]), len(b.lines[denominator])) {
		ratios = append(ratios, value(b.lines[numerator][i])/value(b.lines[denominator][i]))
	}
	if len(ratios) > 0 {
		b.t.Logf(
			"%-36s %.2f (%.2f to %.2f), %s", name, median(ratios), slices.Min(ratios), slices.Max(ratios),
			against(median(ratios), goal),
		)
	}
}

// against compares a result with a goal, for example "<= 1.8".
func against(result float64, goal string) string {
	var than string
	var limit float64
	if _, err := fmt.Sscan(goal, &than, &limit); err != nil {
		panic(err)
	}
	if than == "<=" && result > limit || than == ">=" && result < limit {
		return "goal " + goal + " missed"
	}
	return "goal " + goal + " met"
}

// timed runs fn, which handles n letters. It returns the letters per second and the processor time
// per letter. The processor time is that of this process, of the broker and of a child process. The
// function "extra" returns the time that the child process has used.
func (b *bench) timed(n int, extra func() time.Duration, fn func()) measure {
	b.t.Helper()
	before := b.cpu() + extra()
	began := time.Now()
	fn()
	took := time.Since(began)
	used := b.cpu() + extra() - before
	return measure{perSecond: float64(n) / took.Seconds(), cpu: float64(used.Microseconds()) / float64(n)}
}

func (b *bench) cpu() time.Duration {
	b.t.Helper()
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		b.t.Fatal(err)
	}
	broker, err := b.node.CPU()
	if err != nil {
		b.t.Fatal(err)
	}
	return time.Duration(own.Utime.Nano()+own.Stime.Nano()) + broker
}

func noCPU() time.Duration { return 0 }

// queue declares an empty quorum queue. It first deletes an existing queue with that name.
func (b *bench) queue(name string, args amqp.Table) {
	b.t.Helper()
	ch, err := b.conn.Channel()
	if err != nil {
		b.t.Fatal(err)
	}
	defer ch.Close()
	if _, err := ch.QueueDelete(name, false, false, false); err != nil {
		b.t.Fatal(err)
	}
	declared := amqp.Table{"x-queue-type": "quorum"}
	for k, v := range args {
		declared[k] = v
	}
	if b.node.AtLeast("4.0") {
		declared["x-delivery-limit"] = int64(-1)
	}
	if _, err := ch.QueueDeclare(name, true, false, false, false, declared); err != nil {
		b.t.Fatal(err)
	}
}

// fill publishes n letters to a queue, with headers as if they had died in the queue "work".
func (b *bench) fill(queue string, n int) { b.publish(queue, n, 1000) }

// publish publishes n letters to a queue. The parameter "window" is the maximum number of
// unconfirmed letters at any time.
func (b *bench) publish(queue string, n, window int) {
	b.t.Helper()
	ch, err := b.conn.Channel()
	if err != nil {
		b.t.Fatal(err)
	}
	defer ch.Close()
	if err := ch.Confirm(false); err != nil {
		b.t.Fatal(err)
	}
	confirms := ch.NotifyPublish(make(chan amqp.Confirmation, window))
	headers := amqp.Table{
		"x-death":                rejectedIn("work", "events", "key", time.Unix(1763625600, 0)),
		"x-first-death-queue":    "work",
		"x-first-death-reason":   "rejected",
		"x-first-death-exchange": "events",
		"traceparent":            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	}
	flying := 0
	for i := range n {
		body := make([]byte, bodyBytes)
		copy(body, fmt.Sprintf("letter %d", i))
		if err := ch.PublishWithContext(context.Background(), "", queue, true, false, amqp.Publishing{
			Headers: headers, Body: body, DeliveryMode: 2, MessageId: fmt.Sprint(i),
			ContentType: "application/octet-stream",
		}); err != nil {
			b.t.Fatal(err)
		}
		if flying++; flying == window {
			<-confirms
			flying--
		}
	}
	for range flying {
		<-confirms
	}
}

func (b *bench) rawConsumer() measure {
	b.queue("raw", nil)
	b.fill("raw", b.n)
	ch, err := b.conn.Channel()
	if err != nil {
		b.t.Fatal(err)
	}
	defer ch.Close()
	if err := ch.Qos(1000, 0, false); err != nil {
		b.t.Fatal(err)
	}
	return b.timed(b.n, noCPU, func() {
		deliveries, err := ch.Consume("raw", "", false, false, false, false, nil)
		if err != nil {
			b.t.Fatal(err)
		}
		for i := 1; i <= b.n; i++ {
			d := <-deliveries
			if i%500 == 0 || i == b.n {
				d.Ack(true)
			}
		}
	})
}

// later is a configuration without retries: letters are dead immediately, and dlo publishes
// nothing.
const later = "default: {retry: {delays: []}}\nrequeue: {watch: 1h}\n"

func (b *bench) drain() measure {
	b.queue("dlo.letters", nil)
	b.fill("dlo.letters", b.n)
	p := newChild(b.t, b.url, later)
	m := b.timed(b.n, p.cpu, func() {
		p.Start("")
		for p.ask(`SELECT coalesce(sum(letters), 0) FROM windows WHERE settled_at IS NOT NULL`) < b.n {
			time.Sleep(20 * time.Millisecond)
		}
	})
	steady := p.ask(`SELECT (sum(letters) - (SELECT letters FROM windows ORDER BY id LIMIT 1)) * 1000
		/ max(1, max(settled_at) - min(settled_at)) FROM windows`)
	b.line(steadyDrain, func() measure { return measure{perSecond: float64(steady)} })
	p.Kill9()
	return m
}

// steadyDrain is the line for the rate of dlo from the end of its first window to the end of its
// last one: without its start, and almost without small windows.
const steadyDrain = "drain: dlo, first window to last"

// drainedStore drains n letters with the given configuration and waits until they are classified.
// Then it stops dlo.
func (b *bench) drainedStore(config string) *child {
	b.queue("dlo.letters", nil)
	b.queue("work", nil)
	b.fill("dlo.letters", b.n)
	p := newChild(b.t, b.url, config)
	p.Start("")
	for p.ask(`SELECT coalesce(sum(n), 0) FROM counters WHERE state IN ('dead', 'scheduled')`) < b.n {
		time.Sleep(100 * time.Millisecond)
	}
	if code := p.Stop(); code != 0 {
		b.t.Fatalf("exit code %d", code)
	}
	return p
}

// waitUntilRequeued waits until the store has marked every letter as requeued.
func (b *bench) waitUntilRequeued(p *child) {
	for p.ask(`SELECT coalesce(sum(n), 0) FROM counters WHERE state = 'requeued'`) < b.n {
		time.Sleep(20 * time.Millisecond)
	}
}

// retry measures n retries that become due at the same time. The time begins with the start of dlo.
// It ends when every letter has passed the four steps: intent, publish, confirm and mark.
func (b *bench) retry() measure {
	p := b.drainedStore("default: {retry: {delays: [1h]}}\nrequeue: {watch: 1h, rate: 0}\n")
	db, err := sql.Open("sqlite", "file:"+p.store)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := db.Exec(`UPDATE letters SET due_at = 0 WHERE state = 'scheduled'`); err != nil {
		b.t.Fatal(err)
	}
	db.Close()
	p.cmd = nil
	m := b.timed(b.n, p.cpu, func() {
		p.Start("")
		b.waitUntilRequeued(p)
	})
	p.Kill9()
	return m
}

// operate measures operations that requeue n dead letters. The time begins with the first request,
// so it includes freezing the selection and recording the results.
func (b *bench) operate() measure {
	p := b.drainedStore(later)
	p.Start("")
	ids := p.ids(`SELECT id, random FROM letters ORDER BY id`)
	m := b.timed(b.n, p.cpu, func() {
		for chunk := range slices.Chunk(ids, 10_000) {
			p.post("/api/v1/operations", requeueAtOnce(chunk))
		}
		b.waitUntilRequeued(p)
	})
	p.Kill9()
	return m
}

func (b *bench) rawPublisher(window, n int) measure {
	b.queue("target", nil)
	return b.timed(n, noCPU, func() { b.publish("target", n, window) })
}

// shovel measures a shovel that moves n letters from one quorum queue to another. The shovel
// acknowledges a letter after its confirm.
func (b *bench) shovel() measure {
	b.queue("from", nil)
	b.queue("to", nil)
	b.fill("from", b.n)
	uri := strings.TrimSuffix(b.node.AMQPURL(""), "/") + "/" + url.PathEscape(b.vhost)
	path := "/api/parameters/shovel/" + url.PathEscape(b.vhost) + "/bench"
	m := b.timed(b.n, noCPU, func() {
		value := map[string]any{
			"src-protocol": "amqp091", "src-uri": uri, "src-queue": "from", "dest-protocol": "amqp091", "dest-uri": uri,
			"dest-queue": "to", "ack-mode": "on-confirm", "src-delete-after": "queue-length",
		}
		if err := b.node.API("PUT", path, map[string]any{"value": value}, nil); err != nil {
			b.t.Fatal(err)
		}
		for ready(b.t, b.conn, "to") < b.n {
			time.Sleep(20 * time.Millisecond)
		}
	})
	// removes the shovel if it is still there; RabbitMQ deletes it once the queue is empty
	b.node.API("DELETE", path, nil, nil)
	return m
}
