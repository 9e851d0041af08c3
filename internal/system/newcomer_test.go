package system

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

var (
	tags   = regexp.MustCompile(`<[^>]*>`)
	spaces = regexp.MustCompile(`\s+`)
)

// text returns the text of a page, without its tags.
func (p *child) text(path string) string {
	_, page := p.get(path)
	page = tags.ReplaceAllString(strings.ReplaceAll(page, "</", " </"), "")
	return strings.NewReplacer(" ;", ";", " .", ".").Replace(spaces.ReplaceAllString(page, " "))
}

// TestANewcomersFirstMinutes follows somebody who tries dlo with a broker of their own. They set
// only the URL of AMQP. Their consumer rejects five messages and ends. At each step, Overview,
// Triage and Letters must say how many letters are on their way, and what comes next. dlo must find
// the management API of the broker, and say so.
func TestANewcomersFirstMinutes(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, direct := node.VHost(t)
	host := fmt.Sprintf("127.%d.%d.%d", 1+rand.N(250), rand.N(250), 1+rand.N(250))
	via := testenv.RelayAt(t, host+":0", node.AMQPAddr())
	testenv.RelayAt(t, host+":15672", strings.TrimPrefix(node.ManagementURL(), "http://"))
	config := fmt.Sprintf("brokers: [{url: %q}]\n", node.AMQPURLVia(via.Addr(), vhost)) +
		"default: {retry: {delays: [10s, 10s]}}\n"
	p := newChild(t, direct, config)
	p.Start("")
	p.Draining()

	conn, ch := testenv.Channel(t, direct)
	defer conn.Close()
	if _, err := ch.QueueDeclare("orders", true, false, false, false, amqp.Table{
		"x-dead-letter-exchange": "dlo.dlx",
	}); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := ch.Publish("", "orders", false, false, amqp.Publishing{Body: []byte(`{"total":-1}`)}); err != nil {
			t.Fatal(err)
		}
	}
	reject := func() { // the consumer of the newcomer rejects five messages, and ends
		t.Helper()
		left := 5
		eventually(t, "five messages are there", func() bool {
			d, ok, err := ch.Get("orders", false)
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				left--
				if err := d.Reject(false); err != nil {
					t.Fatal(err)
				}
			}
			return left == 0
		})
	}
	step := func(name string, want map[string][]string) {
		t.Helper()
		shown := map[string]string{}
		defer func() {
			if t.Failed() {
				t.Log(shown)
			}
		}()
		eventually(t, name, func() bool {
			for path, texts := range want {
				shown[path] = p.text(path)
				for _, text := range texts {
					if !regexp.MustCompile(text).MatchString(shown[path]) {
						return false
					}
				}
			}
			return true
		})
	}
	const waiting = `5 letters are being retried; the first can die at \d\d:\d\d`
	const sent = `5 letters are being retried; the first can count as quiet at \d\d:\d\d; nobody consumes orders\.`
	for _, name := range []string{"the first", "the second"} {
		reject()
		step(name+" retry is ahead", map[string][]string{
			"/":                    {waiting, `In retry 5 `, `Nothing needs a person yet\.`},
			"/triage":              {waiting, `Inbox zero`, `Show 1 group`},
			"/triage?tab=retrying": {`next retry \d\d:\d\d`, ` 5 `},
			"/letters":             {waiting, `5 match`, `No letter is dead or held`},
		})
		step(name+" retry was sent", map[string][]string{
			"/":                    {sent, `In retry 5 `, `Nothing needs a person yet\.`},
			"/triage":              {sent, `Inbox zero`, `Show 1 group`},
			"/triage?tab=retrying": {`quiet from \d\d:\d\d`, ` 5 `},
			"/letters":             {sent, `5 match`, `No letter is dead or held`},
		})
	}
	reject()
	step("the retries are used up", map[string][]string{
		"/":        {`orders is failing\.`, `In retry: 0 `},
		"/triage":  {`1 group, 5 letters need a person`},
		"/letters": {`5 match`, `Dead and held letters\.`},
	})

	address := "http://" + host + ":15672"
	step("the API was found", map[string][]string{
		"/connection": {regexp.QuoteMeta("The API was found at " + address + ", and is not configured.")},
	})
	if log := p.Log(); !strings.Contains(log, "the management API was found") || !strings.Contains(log, address) {
		t.Error("the log does not say that the management API was found")
	}
	if out := doctor(t, 0, config); !strings.Contains(
		out, "the management API was found at "+address+", and is not configured",
	) || strings.Contains(out, "no management API") {
		t.Errorf("the doctor says %s", out)
	}
	none := strings.Replace(config, "brokers: [{", "brokers: [{management: none, ", 1)
	if out := doctor(t, 1, none); !strings.Contains(out, "no management API: none is configured; ") ||
		strings.Contains(out, address) {
		t.Errorf("the doctor says %s", out)
	}
}

// TestTheStartDoesNotWaitForTheManagementAPI checks a host at whose usual port for the management
// API something listens and never answers. dlo must still start and take letters in.
func TestTheStartDoesNotWaitForTheManagementAPI(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, direct := node.VHost(t)
	host := fmt.Sprintf("127.%d.%d.%d", 1+rand.N(250), rand.N(250), 1+rand.N(250))
	via := testenv.RelayAt(t, host+":0", node.AMQPAddr())
	silent := testenv.RelayAt(t, host+":15672", strings.TrimPrefix(node.ManagementURL(), "http://"))
	silent.Swallow(testenv.ToClient, true)
	p := newChild(t, direct, fmt.Sprintf("brokers: [{url: %q}]\n", node.AMQPURLVia(via.Addr(), vhost)))
	p.Start("")
	p.Draining()
	_, ch := testenv.Channel(t, direct)
	if err := ch.Publish("dlo.dlx", "orders", false, false, amqp.Publishing{Body: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the letter is stored", func() bool { return p.ask(`SELECT count(*) FROM letters`) == 1 })
	eventually(t, "dlo gives up", func() bool {
		return strings.Contains(p.Log(), "no management API was found at http://"+host)
	})
}
