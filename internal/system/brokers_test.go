package system

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/storetest"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// said is the answer of /readyz, with the state of each broker.
type said struct {
	Ready    bool                 `json:"ready"`
	Brokers  []saidOfBroker       `json:"brokers"`
	Problems []deadletter.Problem `json:"problems"`
}

type saidOfBroker struct {
	Name      string `json:"name"`
	VHost     string `json:"vhost"`
	Connected bool   `json:"connected"`
	Reason    string `json:"reason"`
	Inboxes   []struct {
		Queue    string `json:"queue"`
		Draining bool   `json:"draining"`
		Reason   string `json:"reason"`
	} `json:"inboxes"`
}

// draining reports whether the broker is connected and all its inboxes are drained.
func (b *saidOfBroker) draining() bool {
	for _, i := range b.Inboxes {
		if !i.Draining {
			return false
		}
	}
	return b.Connected
}

func (p *child) ready() (code int, s said) {
	p.t.Helper()
	code, body := p.get("/readyz")
	if err := json.Unmarshal([]byte(body), &s); err != nil {
		p.t.Fatalf("/readyz: %v: %s", err, body)
	}
	return code, s
}

// problems returns the problems of a kind that /readyz reports.
func (p *child) problems(kind deadletter.ProblemKind) []deadletter.Problem {
	p.t.Helper()
	_, s := p.ready()
	return slices.DeleteFunc(s.Problems, func(p deadletter.Problem) bool { return p.Kind != kind })
}

// problem waits until /readyz reports a problem of a kind, and returns the problem.
func (p *child) problem(kind deadletter.ProblemKind) (found deadletter.Problem) {
	p.t.Helper()
	eventually(p.t, "/readyz says "+string(kind), func() bool {
		list := p.problems(kind)
		if len(list) > 0 {
			found = list[0]
		}
		return len(list) > 0
	})
	return found
}

// waitUntilDrained waits until dlo drains all inboxes of a broker.
func (p *child) waitUntilDrained(broker string) {
	p.t.Helper()
	eventually(p.t, "the inboxes of "+broker+" are drained", func() bool {
		_, s := p.ready()
		i := slices.IndexFunc(s.Brokers, func(b saidOfBroker) bool { return b.Name == broker })
		return i >= 0 && s.Brokers[i].draining()
	})
}

// TestTwoVHosts drains two vhosts of one broker. Both vhosts have queues with the same names. Each
// letter must return to the vhost from which it came.
func TestTwoVHosts(t *testing.T) {
	t.Parallel()
	testenv.Broker(t)
	_, one := testenv.VHost(t)
	_, two := testenv.VHost(t)
	first, second := newAudit(t, one, "work", nil), newAudit(t, two, "work", nil)
	p := newChild(t, "", fmt.Sprintf("brokers: [{url: %q}, {name: second, url: %q}]\n"+fast, one, two))
	p.Start("")
	p.waitUntilDrained("main")
	p.waitUntilDrained("second")
	first.work()
	second.work()
	const letters = 40
	first.publish(letters, func(i int) (string, string) { return fmt.Sprintf("one %d", i), "" })
	second.publish(2*letters, func(i int) (string, string) { return fmt.Sprintf("two %d", i), "" })
	eventually(t, "all letters settled", func() bool { return p.letters("settled") == 3*letters })
	for _, c := range []struct {
		broker, body string
		a            *audit
		letters      int
	}{{"main", "one %", first, letters}, {"second", "two %", second, 2 * letters}} {
		if n := c.a.acceptedLetters(); n != c.letters {
			t.Errorf("%d letters went back to %s, want %d", n, c.broker, c.letters)
		}
		if n := p.count(`letters l JOIN origins o ON o.id = l.origin
			JOIN `+storetest.Bodies+` b ON b.letter = l.id`, `o.broker = $1 AND o.queue = 'work'
				AND CAST(b.body AS TEXT) LIKE $2`, c.broker, c.body); n != c.letters {
			t.Errorf("%d letters of %s have their origin there, want %d", n, c.broker, c.letters)
		}
	}
	for print := range first.accepted {
		if second.accepted[print] != nil || first.bodies[print] == 0 {
			t.Error("a letter went back to the other vhost")
		}
	}
	if n := p.count("groups", ""); n != 2 {
		t.Errorf("%d groups, want one for each vhost", n)
	}
	if _, metrics := p.get("/metrics"); !strings.Contains(metrics, `dlo_broker_up{broker="main"} 1`) ||
		!strings.Contains(metrics, `dlo_broker_up{broker="second"} 1`) {
		t.Errorf("the metrics do not tell the brokers apart:\n%s", metrics)
	}
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestOneOfTwoBrokersIsDead starts dlo while the first broker is unreachable, and later kills the
// second broker. dlo must drain the live broker and requeue letters to it. Letters of the dead
// broker must wait, and dlo must report which broker is down and why.
func TestOneOfTwoBrokersIsDead(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node, mortal := testenv.Broker(t), testenv.PrivateBroker(t)
	vhost, url := testenv.VHost(t)
	relay := testenv.Relay(t, node.AMQPAddr())
	relay.Refuse(true) // the first broker is not killed, because it must keep its queues
	_, other := mortal.VHost(t)
	first, second := newAudit(t, url, "work", nil), newAudit(t, other, "work", nil)
	// declares the inbox first, because letters that die without an inbox are lost; its type is
	// classic, because a new quorum queue does not survive a kill
	for _, a := range []*audit{first, second} {
		ch := a.channel()
		if _, err := ch.QueueDeclare("dlo.letters", true, false, false, false, nil); err != nil {
			t.Fatal(err)
		}
		if err := ch.QueueBind("dlo.letters", "", "dlo.dlx", false, nil); err != nil {
			t.Fatal(err)
		}
	}
	p := newChild(
		t, "",
		fmt.Sprintf(
			"brokers: [{url: %q}, {name: second, url: %q}]\ndefault: {retry: {delays: [5s]}}\nrequeue: {rate: 0, watch: 1s}\n",
			node.AMQPURLVia(relay.Addr(), vhost), other,
		),
	)
	p.Start("")
	p.waitUntilDrained("second")
	first.work()
	second.work()
	first.publish(10, func(i int) (string, string) { return fmt.Sprintf("first %d", i), "" })
	second.publish(10, func(i int) (string, string) { return fmt.Sprintf("second %d", i), "" })
	eventually(t, "the letters of the second broker back", func() bool { return second.acceptedLetters() == 10 })
	code, s := p.ready()
	if code != 200 || !s.Ready || s.Brokers[0].Connected || s.Brokers[0].Reason == "" ||
		s.Brokers[0].Inboxes[0].Draining || !s.Brokers[1].Connected {
		t.Errorf("with the first broker away: %d %+v", code, s)
	}
	if n := first.acceptedLetters(); n != 0 {
		t.Errorf("%d letters of a broker that dlo cannot reach", n)
	}

	relay.Refuse(false)
	p.waitUntilDrained("main")
	eventually(t, "the letters of the first broker back", func() bool { return first.acceptedLetters() == 10 })

	// The second broker dies while its letters wait for their retry. Letters of the first broker are
	// still requeued.
	second.publish(10, func(i int) (string, string) { return fmt.Sprintf("second again %d", i), "" })
	eventually(t, "ten letters stored", func() bool { return p.letters() == 30 })
	time.Sleep(2500 * time.Millisecond) // a killed broker may forget its last two seconds (docs/reliability.md)
	mortal.Kill9()
	eventually(t, "the second broker is missed", func() bool {
		code, s := p.ready()
		return code == 200 && !s.Brokers[1].Connected && s.Brokers[1].Reason != ""
	})
	first.publish(20, func(i int) (string, string) { return fmt.Sprintf("first again %d", i), "" })
	eventually(t, "the letters of the first broker back", func() bool { return first.acceptedLetters() == 30 })
	if _, metrics := p.get("/metrics"); !strings.Contains(metrics, `dlo_broker_up{broker="second"} 0`) {
		t.Error("the metrics do not say that the second broker is down")
	}
	if code, body := p.get("/letters?q="); code != 200 || !strings.Contains(body, "second") {
		t.Errorf("/letters: %d, and it does not name the broker that is down", code)
	}

	restart(t, mortal)
	second.reconnect(other)
	second.work()
	p.waitUntilDrained("second")
	eventually(t, "all letters of the second broker back", func() bool { return second.acceptedLetters() == 20 })
	eventually(t, "all letters settled", func() bool { return p.letters("settled") == 50 })
	if surplus := p.letters() - 50; surplus != 0 {
		t.Errorf("%d rows more than letters", surplus)
	}
}
