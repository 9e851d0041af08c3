package system

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

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

const (
	smsSchema = `syntax = "proto3";
package shop.v1;
message Text { string to = 1; string text = 2; int64 tenant_id = 3; uint32 number = 4; Sender from = 5; }
message Sender { string name = 1; string country = 2; }
message Voice { string url = 1; bool loud = 2; }
`
	smsColumn = 40 // the worker stores at most this number of characters
	longSMS   = "Your parcel was left with the neighbours across the street, behind the green door"
	shortSMS  = "Your parcel is with the neighbours"
)

// smsWorker is a worker that decodes text messages. It stores texts of at most smsColumn characters
// and rejects longer ones. Its old publisher sends protobuf in base64, and nothing in the message
// says so.
type smsWorker struct {
	t  *testing.T
	md protoreflect.MessageDescriptor

	mu    sync.Mutex
	came  map[string]int    // body -> number of deliveries
	again map[string]int    // body -> number of deliveries with the header dlo-attempt
	kept  map[string]string // number of the message -> accepted text
}

func newSMSWorker(t *testing.T, dir string) *smsWorker {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "sms.proto"), []byte(smsSchema), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := protoparse.Parser{ImportPaths: []string{dir}}.ParseFiles("sms.proto")
	if err != nil {
		t.Fatal(err)
	}
	return &smsWorker{
		t:     t,
		md:    files[0].UnwrapFile().Messages().ByName("Text"),
		came:  map[string]int{},
		again: map[string]int{},
		kept:  map[string]string{},
	}
}

// body returns the body of a text message, as the publisher sends it.
func (c *smsWorker) body(number int, text string) string {
	c.t.Helper()
	m := dynamicpb.NewMessage(c.md)
	content := fmt.Sprintf(
		`{"to": "+4930555%04d", "text": %q, "tenant_id": 40100, "number": %d, "from": {"name": "shop", "country": "DE"}}`,
		number, text, number,
	)
	if err := protojson.Unmarshal([]byte(content), m); err != nil {
		c.t.Fatal(err)
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		c.t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b)
}

// refuse counts a delivery and reports whether the worker must reject it.
func (c *smsWorker) refuse(d *amqp.Delivery) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.came[string(d.Body)]++
	if _, ours := d.Headers[deadletter.HeaderAttempt]; ours {
		c.again[string(d.Body)]++
	}
	m := dynamicpb.NewMessage(c.md)
	b, err := base64.StdEncoding.DecodeString(string(d.Body))
	if err != nil || proto.Unmarshal(b, m) != nil {
		return true
	}
	field := func(name protoreflect.Name) string { return m.Get(c.md.Fields().ByName(name)).String() }
	if utf8.RuneCountInString(field("text")) > smsColumn {
		return true
	}
	c.kept[field("number")] = field("text")
	return false
}

// TestALetterIsRepaired repairs a letter in a browser, with scripts and without them. It shortens
// the text of a letter that the worker always rejects, and follows the letter to its verdict. It
// then makes the same change for all letters of the group. dlo must never send the original again.
func TestALetterIsRepaired(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	testenv.Broker(t)
	for _, script := range []bool{true, false} {
		t.Run(fmt.Sprintf("scripts %v", script), func(t *testing.T) {
			t.Parallel()
			repair(t, script)
		})
	}
}

func repair(t *testing.T, script bool) {
	node := testenv.Broker(t)
	r := &reader{t: t, tab: testenv.Browser(t), script: script, checked: map[string]bool{}}
	_, amqpURL := testenv.VHost(t)
	schemas := t.TempDir()
	worker := newSMSWorker(t, schemas)
	a := newAudit(t, amqpURL, "sms-queue", nil)
	a.refuse = worker.refuse
	management := node.ManagementURLOf("guest:guest")
	p := newChild(
		t, amqpURL,
		fmt.Sprintf(
			"brokers: [{url: %%AMQP%%, management: %q}]\ndefault: {retry: {delays: []}}\nrequeue: {watch: 3s}\nschemas: {directory: %s}\n",
			management, schemas,
		),
	)
	p.Start("")
	p.Draining()
	a.work()
	dead := func(n int) {
		t.Helper()
		eventually(t, "the letters are dead and read", func() bool {
			return p.count(
				`letters l JOIN types y ON y.id = l.type`, `l.state = 'dead' AND y.name = 'shop.v1.Text'`,
			) == n && p.count("unindexed", "") == 0
		})
	}
	letter := func(n int) (string, string) { return worker.body(n, longSMS), fmt.Sprint(n) }
	a.publish(1, letter) // publishes the message with the number 0
	dead(1)
	id := string(p.ids(`SELECT id, random FROM letters`)[0])

	r.tab.JavaScript(script)
	r.tab.Viewport(1440, 1000)
	r.tab.Open(p.url + "/letters/" + id)
	r.waitForTexts("Text", longSMS, "Edit and requeue")
	r.press(`a[data-verb="edit"]`)
	r.waitIn(`location.pathname.endsWith('/edit')`)
	r.waitForTexts(
		"An edited copy is sent. The original is kept and is not sent", "shop.v1.Text", "base64", "Not checked yet",
	)
	r.checkPage("edit")
	shorten := func() {
		t.Helper()
		text := testenv.Run(r.tab, chromedp.Evaluate[string](`document.querySelector('#edit-text').value`))
		if !strings.Contains(text, longSMS) {
			t.Fatalf("the text is %s", text)
		}
		r.fill(`#edit-text`, strings.Replace(text, longSMS, shortSMS, 1))
	}

	// The page must show a mistake at the line that contains it, and must send nothing.
	r.fill(`#edit-text`, "{\n  \"text\": 5\n}")
	r.press(`button[name="do"][value="check"]`)
	r.waitForTexts("Line 2, column", "See the error below the payload")
	r.press(`a.btn[href$="/edit"]`) // follows the link Reset
	r.waitIn(`document.querySelector('#edit-text').value.includes('` + longSMS + `')`)

	shorten()
	r.press(`button[name="do"][value="check"]`)
	r.waitIn(
		`document.querySelector('#edit-diff .del')?.innerText.includes('behind') && document.querySelector('#edit-diff .add')?.innerText.includes('` + shortSMS + `')`,
	)
	r.waitForTexts("1 field", "valid for the type")
	r.checkPage("edit, checked")
	r.picture("edit")
	r.fill(`#edit-reason`, "the text is too long for the column")
	r.press(`button[name="do"][value="send"]`)
	r.waitIn(`location.pathname == '/operations/O-1'`)
	r.waitForUpdate(`document.querySelector('#operation-head').innerText.includes('Done')`)
	r.waitForTexts("none came back")
	eventually(t, "the letter is quiet", func() bool { return p.letters("settled") == 1 })
	worker.mu.Lock()
	if worker.kept["0"] != shortSMS {
		t.Errorf("the worker accepted %q", worker.kept)
	}
	worker.mu.Unlock()

	// The history must show what was received, how it was edited, and the result.
	r.tab.Open(p.url + "/letters/" + id + "?tab=history")
	r.waitForTexts("revision 1 changes text", "the text is too long for the column")
	r.checkPage("history")
	var detail struct {
		History []struct{ Kind, Detail string }
	}
	code, body := p.get("/api/v1/letters/" + id)
	if err := json.Unmarshal([]byte(body), &detail); err != nil || code != 200 {
		t.Fatal(code, err, body)
	}
	var kinds []string
	for _, e := range detail.History {
		kinds = append(kinds, e.Kind)
	}
	if got, want := strings.Join(kinds, ", "), "received, dead, edited, requeue, requeued, quiet"; got != want ||
		!strings.Contains(detail.History[3].Detail, "as revision 1") {
		t.Errorf("the history is %s: %+v", got, detail.History)
	}
	if code, sent := p.get("/letters/" + id + "/body"); code != 200 || sent != worker.body(0, longSMS) {
		t.Errorf("the record holds %d %q", code, sent)
	}

	// The test makes the same change for the other five letters of the group.
	a.publish(5, func(n int) (string, string) { return letter(n + 1) })
	dead(5)
	r.tab.Open(p.url + "/letters/" + string(p.ids(`SELECT id, random FROM letters WHERE state = 'dead' ORDER BY id
		LIMIT 1`)[0]) + "/edit")
	shorten()
	r.fill(`#edit-reason`, "the column is not widened")
	r.press(`button[name="do"][value="group"]`)
	r.waitForTexts("Edit and requeue 5 letters", "On a sample: 5 of 5 letters can be edited this way", shortSMS)
	if n := testenv.Run(r.tab, chromedp.Evaluate[int](`document.querySelectorAll('.diff .add').length`)); n != 5 {
		t.Errorf("%d changes are shown", n)
	}
	r.checkPage("the same change for a group")
	r.fill(`#confirm-canary`, "0")
	r.press(`[data-confirm-btn]`)
	r.waitIn(`location.pathname == '/operations/O-2'`)
	r.waitForUpdate(`document.querySelector('#operation-head').innerText.includes('Done')`)
	r.waitForTexts("none came back")
	eventually(t, "all letters are quiet", func() bool { return p.letters("settled") == 6 })
	r.checkPage("operation of an edit")

	// Each original must have arrived once, from its publisher. Each edited copy must have arrived
	// once. The queues are empty, so every message that was sent has been delivered.
	for _, queue := range []string{"sms-queue", "dlo.letters"} {
		if n := ready(t, a.conn, queue); n != 0 {
			t.Errorf("%d messages are left in %s", n, queue)
		}
	}
	worker.mu.Lock()
	defer worker.mu.Unlock()
	for n := range 6 {
		original, _ := letter(n)
		if worker.came[original] != 1 || worker.again[original] != 0 {
			t.Errorf(
				"the original %d came %d times, %d of them from dlo", n, worker.came[original], worker.again[original],
			)
		}
		if times := worker.again[worker.body(n, shortSMS)]; times != 1 || worker.kept[fmt.Sprint(n)] != shortSMS {
			t.Errorf("the edited copy of %d came %d times; accepted as %q", n, times, worker.kept[fmt.Sprint(n)])
		}
	}
	if len(worker.again) != 6 {
		t.Errorf("%d different bodies came from dlo", len(worker.again))
	}
}
