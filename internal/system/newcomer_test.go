package system

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// What pages say of the five letters while they wait for a retry, and while they are watched. A
// time of another day has the name of the day before it.
const (
	soon    = `(?:[A-Z][a-z]{2} )?\d\d:\d\d`
	waiting = `5 letters are being retried; the first can die at ` + soon
	sent    = `5 letters are being retried; the first can count as quiet at ` + soon + `; nobody consumes orders\.`
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

// fiveOrders declares the queue orders, and publishes five messages to it.
func fiveOrders(t *testing.T, ch *amqp.Channel) {
	t.Helper()
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
}

// shows waits until the text of each page matches all expressions that are wanted of it.
func (p *child) shows(name string, want map[string][]string) {
	p.t.Helper()
	shown := map[string]string{}
	defer func() {
		if p.t.Failed() {
			p.t.Log(shown)
		}
	}()
	eventually(p.t, name, func() bool {
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
	fiveOrders(t, ch)
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
	for _, name := range []string{"the first", "the second"} {
		reject()
		p.shows(name+" retry is ahead", map[string][]string{
			"/":                    {waiting, `In retry 5 `, `Nothing needs a person yet\.`},
			"/triage":              {waiting, `Inbox zero`, `Show 1 group`},
			"/triage?tab=retrying": {`next retry ` + soon, ` 5 `},
			"/letters":             {waiting, `5 match`, `No letter is dead or held`},
		})
		p.shows(name+" retry was sent", map[string][]string{
			"/":                    {sent, `In retry 5 `, `Nothing needs a person yet\.`},
			"/triage":              {sent, `Inbox zero`, `Show 1 group`},
			"/triage?tab=retrying": {`quiet from ` + soon, ` 5 `},
			"/letters":             {sent, `5 match`, `No letter is dead or held`},
		})
	}
	reject()
	p.shows("the retries are used up", map[string][]string{
		"/":        {`orders is failing\.`, `In retry: 0 `},
		"/triage":  {`1 group, 5 letters need a person`},
		"/letters": {`5 match`, `Dead and held letters\.`},
	})

	address := "http://" + host + ":15672"
	p.shows("the API was found", map[string][]string{
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

// TestANewcomersTwentyMinutes looks at Overview, Triage and Letters once a minute, with the default
// delays. A consumer rejects five messages. It goes on to reject them, or it ends. At each minute,
// the pages must say how many letters are on their way, and the time at which the next thing can
// happen. This time must not have passed.
func TestANewcomersTwentyMinutes(t *testing.T) {
	testenv.Soak(t)
	node := testenv.Broker(t)
	for _, name := range []string{"the consumer goes on", "the consumer ends"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, direct := node.VHost(t)
			api := node.ManagementURLOf("guest:guest")
			p := newChild(t, direct, fmt.Sprintf("brokers: [{url: %q, management: %q}]\n", direct, api))
			p.Start("")
			p.Draining()
			conn, ch := testenv.Channel(t, direct)
			defer conn.Close()
			fiveOrders(t, ch)
			orders, err := ch.Consume("orders", "newcomer", false, false, false, false, nil)
			if err != nil {
				t.Fatal(err)
			}
			var rejected atomic.Int32
			go func() {
				for d := range orders {
					_ = d.Reject(false)
					rejected.Add(1)
				}
			}()
			eventually(t, "five messages were rejected", func() bool { return rejected.Load() >= 5 })
			goesOn := name == "the consumer goes on"
			if !goesOn {
				if err := ch.Cancel("newcomer", false); err != nil {
					t.Fatal(err)
				}
			}
			start := time.Now()
			for minute := range 21 {
				time.Sleep(time.Until(start.Add(time.Duration(minute)*time.Minute + 5*time.Second)))
				want := map[string][]string{
					"/":           {`Nothing needs a person yet\.`, `In retry 5 `},
					"/triage":     {`Inbox zero`, `Retrying 1 `},
					"/letters?q=": {`5 match`, `No letter is dead or held`},
				}
				if goesOn && minute >= 19 { // the last retry was sent after 1,110 s
					want = map[string][]string{
						"/": {`orders is failing\.`}, "/triage": {`1 group, 5 letters need a person`}, "/letters?q=": {`Dead 5 `},
					}
				} else {
					next := p.nextRetry(goesOn)
					for path := range want {
						want[path] = append(want[path], next)
					}
				}
				p.shows(fmt.Sprintf("minute %d, %s", minute, name), want)
			}
		})
	}
}

// nextRetry returns the expression of what pages say of the five letters now. The time in it must
// be at most 19 minutes ahead. If the consumer has ended, the letters wait in its queue.
func (p *child) nextRetry(goesOn bool) string {
	p.t.Helper()
	text, ahead := waiting, 0
	if !goesOn {
		text = `5 letters are being retried; the first can (?:die|count as quiet) at ` + soon + `; nobody consumes orders\.`
	}
	eventually(p.t, "Overview says what comes next", func() bool {
		m := regexp.MustCompile(text).FindString(p.text("/"))
		at, err := time.Parse("15:04", regexp.MustCompile(`\d\d:\d\d`).FindString(m))
		now := time.Now().UTC()
		ahead = (at.Hour()*60 + at.Minute() - now.Hour()*60 - now.Minute() + 24*60) % (24 * 60)
		return err == nil && ahead <= 19
	})
	return text
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
