package system

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"

	//lint:ignore SA1019 the parser that the product uses for .proto files
	"github.com/jhump/protoreflect/desc/protoparse"
	amqp "github.com/rabbitmq/amqp091-go"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// These variables define the events of TestTheWholeWay. Event i has the type i % 5. A fan-out sends
// it to four queues, and it dies only in queue i % 4.
var (
	wayTypes  = []string{"EmailRequested", "SmsRequested", "PushRequested", "InvoiceIssued", "OrderPlaced"}
	wayQueues = []string{"email", "sms", "push", "billing"}
)

const (
	wayEvents = 1000
	waySchema = `syntax = "proto3";
package shop.v1;
message Customer { string name = 1; string city = 2; }
message EmailRequested { int32 number = 1; string subject = 2; Customer to = 3; }
message SmsRequested { int32 number = 1; string text = 2; repeated string tags = 3; }
message PushRequested { int32 number = 1; map<string, string> data = 2; }
message InvoiceIssued { int32 number = 1; int64 cents = 2; Customer customer = 3; }
message OrderPlaced { int32 number = 1; enum Kind { KIND_UNKNOWN = 0; KIND_GIFT = 1; } Kind kind = 2; }
`
)

// wayBodies returns the encoded bodies of the events.
func wayBodies(t *testing.T, dir string) [][]byte {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "shop.proto"), []byte(waySchema), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := protoparse.Parser{ImportPaths: []string{dir}}.ParseFiles("shop.proto")
	if err != nil {
		t.Fatal(err)
	}
	messages := files[0].UnwrapFile().Messages()
	content := []string{
		`{"number": %d, "subject": "welcome %[1]d", "to": {"name": "Dana %[1]d", "city": "Bonn"}}`,
		`{"number": %d, "text": "code %[1]d", "tags": ["a", "b"]}`,
		`{"number": %d, "data": {"first_name": "Ann %[1]d"}}`,
		`{"number": %d, "cents": "%[1]d00", "customer": {"name": "Ira %[1]d"}}`, `{"number": %d, "kind": "KIND_GIFT"}`,
	}
	bodies := make([][]byte, wayEvents)
	for i := range bodies {
		m := dynamicpb.NewMessage(messages.ByName(protoreflect.Name(wayTypes[i%5])))
		if err := protojson.Unmarshal([]byte(fmt.Sprintf(content[i%5], i+1)), m); err != nil {
			t.Fatal(err)
		}
		if bodies[i], err = proto.Marshal(m); err != nil {
			t.Fatal(err)
		}
	}
	return bodies
}

// wayWorker is a worker of one queue. It rejects the events that die in this queue, each of them
// once. It records everything that dlo sends.
type wayWorker struct {
	mu   sync.Mutex
	back []string // message ids of deliveries with the header dlo-attempt, in order
}

func (w *wayWorker) run(t *testing.T, url string, place int) (stop func()) {
	t.Helper()
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	deliveries, err := ch.Consume(wayQueues[place], "", false, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for d := range deliveries {
			var n int
			fmt.Sscan(d.MessageId, &n)
			if _, ours := d.Headers[deadletter.HeaderAttempt]; ours {
				w.mu.Lock()
				w.back = append(w.back, d.MessageId)
				w.mu.Unlock()
				d.Ack(false)
			} else if n%4 == place {
				d.Reject(false)
			} else {
				d.Ack(false)
			}
		}
	}()
	return func() {
		// A quorum queue forgets acknowledgements that arrive just before the connection closes
		// (measured). A round trip on the channel prevents that.
		ch.Qos(1, 0, false)
		time.Sleep(200 * time.Millisecond)
		conn.Close()
		<-done
	}
}

// TestTheWholeWay follows 1,000 letters of 5 types in 4 queues. They go from a fan-out through real
// workers, dlo and Chromium, and back. The pages must show the decoded values. The requeue of a
// selection must put exactly these letters at the tail of their queue, and the other queues of the
// fan-out must get nothing. The test also discards and restores a letter and checks its history.
func TestTheWholeWay(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	tab := testenv.Browser(t)
	_, url := testenv.VHost(t)
	p := newChild(t, url, "default: {retry: {delays: []}}\nrequeue: {watch: 1s}\n")
	schemas := filepath.Join(p.dir, "schemas")
	if err := os.MkdirAll(schemas, 0o700); err != nil {
		t.Fatal(err)
	}
	bodies := wayBodies(t, schemas)
	if err := appendFile(p.config, "schemas: {directory: "+schemas+"}\n"); err != nil {
		t.Fatal(err)
	}
	p.Start("")
	p.Draining()

	conn, ch := testenv.Channel(t, url)
	if err := ch.ExchangeDeclare("shop.events", "fanout", true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	for i, q := range wayQueues {
		args := amqp.Table{"x-dead-letter-exchange": "dlo.dlx", "x-queue-type": []string{"quorum", "classic"}[i%2]}
		if _, err := ch.QueueDeclare(q, true, false, false, false, args); err != nil {
			t.Fatal(err)
		}
		if err := ch.QueueBind(q, "", "shop.events", false, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := ch.Confirm(false); err != nil {
		t.Fatal(err)
	}
	workers := make([]wayWorker, len(wayQueues))
	stops := make([]func(), len(wayQueues))
	for i := range workers {
		stops[i] = workers[i].run(t, url, i)
	}
	for i, body := range bodies {
		c, err := ch.PublishWithDeferredConfirm("shop.events", "", false, false, amqp.Publishing{
			Body: body, MessageId: fmt.Sprint(i), DeliveryMode: 2, AppId: "shop",
			ContentType: "application/protobuf; messageType=shop.v1." + wayTypes[i%5],
		})
		if err != nil {
			t.Fatal(err)
		}
		if i%100 == 99 {
			if ok, err := c.WaitContext(context.Background()); err != nil || !ok {
				t.Fatal(ok, err)
			}
		}
	}
	eventually(t, "1,000 letters dead", func() bool { return p.letters("dead") == wayEvents })

	// The list shows 50 letters of one type in one queue, with their content.
	tab.Viewport(1440, 1000)
	tab.Open(p.url + "/letters?q=" + "state:dead+queue:email+type:shop.v1.EmailRequested")
	on := func(expression string) {
		t.Helper()
		waitUntil(t, tab, expression)
	}
	on(
		`document.querySelectorAll('[data-row]').length == 50 && document.querySelector('main').innerText.includes('of 50')`,
	)
	on(
		`document.querySelector('[data-row]').innerText.includes('EmailRequested') && document.querySelector('[data-row]').innerText.includes('welcome')`,
	)
	for _, name := range append(wayTypes, wayQueues...) { // the names that can be chosen as filters
		on(`document.querySelector('.facets').innerText.includes('` + name + `')`)
	}
	if shot := os.Getenv("DLO_TEST_SHOTS"); shot != "" {
		tab.Screenshot(filepath.Join(shot, "letters.png"))
	}

	// The page of a letter shows the decoded tree.
	tab.Act(`document.querySelector('[data-row] .rowlink').click()`)
	on(
		`document.querySelector('[data-testid=tree]') && /"welcome \d+"/.test(document.querySelector('[data-testid=tree]').innerText) && document.querySelector('[data-testid=tree]').innerText.includes('"Bonn"')`,
	)
	if shot := os.Getenv("DLO_TEST_SHOTS"); shot != "" {
		tab.Screenshot(filepath.Join(shot, "letter.png"))
	}
	tab.Back()
	on(`document.querySelectorAll('[data-row]').length == 50`)

	// The worker of the queue is stopped, and a message is put at the head of the queue. After
	// that, all letters on the page are requeued.
	stops[0]()
	if err := ch.PublishWithContext(context.Background(), "", "email", true, false, amqp.Publishing{
		MessageId: "was there before", Body: []byte("x"),
	}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the message is there", func() bool { return ready(t, conn, "email") == 1 })
	tab.Act(`document.querySelector('[data-pick-all]').click()`)
	on(`document.querySelector('[data-bulk-count]').innerText == '50 selected'`)
	chosen := strings.Fields(testenv.Run(tab, chromedp.Evaluate[string](`[...document.querySelectorAll('[data-pick]:checked')].map(x => x.value).join(' ')`)))
	tab.Act(`document.querySelector('.bulkbar [value="requeue"]').click()`)
	on(
		`document.querySelector('[data-confirm-btn]') && document.body.innerText.includes('Requeue 50 letters to the tail')`,
	)
	// If the form of the requeue offers a canary, the test turns it off.
	tab.Do(chromedp.Evaluate[chromedp.Void](`for (const [name, value] of [['canary', '0'], ['rate', '100000'], ['stop_at', '0']]) document.querySelectorAll('[name=' + name + ']').forEach(x => x.value = value)`))
	tab.Act(`document.querySelector('[data-confirm-btn]').click()`)
	on(`location.pathname.startsWith('/operations/O-') && /50/.test(document.querySelector('#progress').innerText)`)
	within(
		t, 4*time.Minute, "the operation done, after its hold",
		func() bool { return p.count("operations", `state = 'done'`) == 1 },
	)
	on(
		`location.pathname.startsWith('/operations/O-') && /50/.test(document.querySelector('#progress').innerText) && document.querySelector('main').innerText.includes('Done')`,
	)
	eventually(t, "50 letters at the tail", func() bool { return ready(t, conn, "email") == 51 })
	ids := map[string]bool{}
	for i := range 51 {
		d, ok, err := ch.Get("email", true)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if i == 0 {
			if d.MessageId != "was there before" {
				t.Errorf("letter %s stands before what was in the queue", d.MessageId)
			}
			continue
		}
		id, _ := d.Headers[deadletter.HeaderID].(string)
		ids[id] = true
		var n int
		fmt.Sscan(d.MessageId, &n)
		if n%4 != 0 || n%5 != 0 || string(d.Body) != string(bodies[n]) {
			t.Errorf("letter %s came to the queue email with other bytes, or is of another queue or type", d.MessageId)
		}
	}
	for _, id := range chosen {
		if !ids[id] {
			t.Errorf("letter %s was chosen and did not arrive", id)
		}
	}
	if len(ids) != 50 || len(chosen) != 50 {
		t.Errorf("%d letters chosen, %d arrived", len(chosen), len(ids))
	}
	for i := range workers {
		workers[i].mu.Lock()
		if n := len(workers[i].back); n != 0 {
			t.Errorf("queue %s got %d messages from dlo, though nothing was requeued to it", wayQueues[i], n)
		}
		workers[i].mu.Unlock()
	}
	eventually(t, "50 letters quiet", func() bool { return p.letters("settled") == 50 })

	// A letter of another queue is discarded and restored, and its history is checked.
	tab.Open(p.url + "/letters?q=" + "state:dead+queue:sms")
	on(`document.querySelectorAll('[data-row]').length == 50`)
	tab.Act(`document.querySelector('[data-pick]').click()`)
	one := testenv.Run(tab, chromedp.Evaluate[string](`document.querySelector('[data-pick]:checked').value`))
	tab.Act(`document.querySelector('.bulkbar [value="discard"]').click()`)
	on(`document.querySelector('[data-confirm-btn]') && document.body.innerText.includes('Discard 1 letter?')`)
	tab.Act(`document.querySelector('[data-confirm-btn]').click()`)
	eventually(t, "the letter discarded", func() bool { return p.letters("discarded") == 1 })
	// without this wait, the response and the next page would abort each other
	on(`!document.querySelector('[data-confirm-btn]')`)
	tab.Open(p.url + "/letters/" + one)
	on(`document.querySelector('.head .pill').innerText.includes('Discarded')`)
	tab.Act(`document.querySelector('[value="restore"]').click()`)
	on(`document.querySelector('[data-confirm-btn]') && document.body.innerText.includes('Restore 1 letter')`)
	tab.Act(`document.querySelector('[data-confirm-btn]').click()`)
	eventually(t, "the letter restored", func() bool { return p.letters("discarded") == 0 })
	// without this wait, the response and the next page would abort each other
	on(`!document.querySelector('[data-confirm-btn]')`)
	tab.Open(p.url + "/letters/" + one + "?tab=history")
	on(
		`['Received', 'Discarded', 'you (no sign-in)'].every(w => document.querySelector('main').innerText.toLowerCase().includes(w.toLowerCase()))`,
	)
	for _, m := range append(tab.Console(), tab.CSPReports()...) {
		t.Errorf("the pages report: %s", m)
	}
	for _, s := range stops[1:] {
		s()
	}
	t.Logf("RabbitMQ %s", node.Version())
}

// waitUntil waits until a JavaScript expression is true on the page, and fails the test after two
// minutes.
func waitUntil(t *testing.T, tab *testenv.Tab, expression string) {
	t.Helper()
	tab.Until(2*time.Minute, expression)
}

func appendFile(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	return err
}
