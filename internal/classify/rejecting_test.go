package classify_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/classify"
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// letterWith returns a received letter with the given entries in x-death. Each entry has the form
// "queue reason". The newest entry comes first, and all are an hour old.
func letterWith(deaths ...string) deadletter.Letter {
	l := deadLetter("", "", nil)
	var entries []any
	for _, d := range deaths {
		queue, reason, _ := strings.Cut(d, " ")
		entries = append(entries, deadletter.Table{
			"queue":        queue,
			"exchange":     "x." + queue,
			"reason":       reason,
			"count":        int64(1),
			"routing-keys": []any{"k." + queue},
			"time":         now.Add(-time.Hour),
		})
	}
	l.Arrived.Headers["x-death"] = entries
	return l
}

const (
	noAnswer  = "the management API does not answer"
	undecided = "which queue rejected it? It expired in wait, and that may be a queue that only delays retries: " +
		noAnswer +
		". Give inbox dlo.letters an origin in the configuration, send it to the queue where it failed, or release it if it failed in wait"
)

// TestADelayQueueIsNoOrigin checks letters that one queue rejected and that then expired in a delay
// queue. The reason, the time and the target must be those of the queue that rejected the letter.
// x-death, the broker or the configuration can name that queue. If none of them names it, dlo must
// ask people.
func TestADelayQueueIsNoOrigin(t *testing.T) {
	t.Parallel()
	unknown, consumed, ends, leads := deadletter.Onward{Why: noAnswer}, deadletter.Onward{
		Consumed: true,
	}, deadletter.Onward{Ends: true}, deadletter.Onward{Queue: "sms"}
	back := func(l deadletter.Letter, queue string) deadletter.Letter {
		l.Attempts, l.Queue = 1, queue
		return l
	}
	released := letterWith("wait expired")
	released.Unguarded = true
	framework := letterWith("wait expired", "email-a rejected")
	framework.Arrived.Headers["NServiceBus.FailedQ"], framework.Arrived.Headers["NServiceBus.ExceptionInfo.Message"] = "wait", "boom"
	for _, c := range []struct {
		name         string
		letter       deadletter.Letter
		given        string
		on           deadletter.Onward
		queue, key   string
		reason, held string
		asks         int
	}{
		{
			"x-death proves it", letterWith("wait expired", "sms rejected"), "", unknown, "sms", "k.sms", "rejected",
			"", 1,
		},
		{
			"the path of the delay queue ends in the inbox", letterWith("wait expired", "sms rejected"), "", ends,
			"sms", "k.sms", "rejected", "", 1,
		},
		{
			"people consume the queue in which it expired", letterWith("email-a expired", "sms rejected"), "", consumed,
			"email-a", "k.email-a", "expired", "", 1,
		},
		{
			"the delivery limit of the queue", letterWith("wait expired", "sms delivery_limit"), "", unknown, "sms",
			"k.sms", "delivery_limit", "", 1,
		},
		{
			"one queue for each delay", letterWith("wait expired", "wait.1 expired", "sms rejected"), "", unknown,
			"sms", "k.sms", "rejected", "", 1,
		},
		{"the broker says where it leads", letterWith("wait expired"), "", leads, "sms", "", "rejected", "", 1},
		{
			"the broker says where it leads, against an older death", letterWith("wait expired", "sms maxlen"), "",
			leads, "sms", "", "rejected", "", 1,
		},
		{"a real end of its time to live", letterWith("sms expired"), "", consumed, "sms", "k.sms", "expired", "", 1},
		{"the same while the worker is down", letterWith("sms expired"), "", ends, "sms", "k.sms", "expired", "", 1},
		{
			"a queue that is known to reject is not asked about", letterWith("sms expired", "sms rejected"), "",
			unknown, "sms", "k.sms", "expired", "", 0,
		},
		{"nobody knows", letterWith("wait expired"), "", unknown, "wait", "k.wait", "expired", undecided, 1},
		{"nobody knows, and a person released it", released, "", unknown, "wait", "k.wait", "expired", "", 1},
		{
			"it came back from where dlo had sent it to", back(letterWith("wait expired"), "sms"), "", unknown, "sms",
			"", "rejected", "", 1,
		},
		{
			"it came back from the delay queue itself", back(letterWith("wait expired"), "wait"), "", unknown, "wait",
			"k.wait", "expired", "", 1,
		},
		{
			"the configuration wins over a delay", letterWith("wait expired"), "sms", unknown, "sms", "", "rejected",
			"", 0,
		},
		{
			"the configuration wins, and x-death knows its death", letterWith("wait expired", "sms rejected"), "sms",
			unknown, "sms", "k.sms", "rejected", "", 0,
		},
		{
			"the configuration wins over a rejection elsewhere", letterWith("email-a rejected"), "sms", unknown, "sms",
			"", "", "", 0,
		},
		{
			"the configuration of a letter that came back", back(letterWith("wait expired"), "email-a"), "sms", unknown,
			"sms", "", "rejected", "", 0,
		},
		{"a framework says that it failed in that queue", framework, "", unknown, "wait", "k.wait", "expired", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o, asks := options(), 0
			o.Targets.Add("main", "/", []string{"*"}, []string{"dlo.letters"})
			o.Given = func(broker, vhost, inbox string) string {
				if broker != "main" || vhost != "/" || inbox != "dlo.letters" {
					t.Errorf("asked for the origin of %s %s %s", broker, vhost, inbox)
				}
				return c.given
			}
			o.Onward = func(_ context.Context, origin deadletter.Origin, _ deadletter.Route) deadletter.Onward {
				asks++
				if want := c.letter.Arrived.Headers["x-death"].([]any)[0].(deadletter.Table)["queue"]; origin.Queue != want || origin.RoutingKey != "k."+origin.Queue || origin.Broker != "main" {
					t.Errorf("asked about %+v", origin)
				}
				return c.on
			}
			got := verdicts(t, o, c.letter)[0]
			if got.Origin.Queue != c.queue || got.Origin.RoutingKey != c.key || got.Origin.Broker != "main" ||
				got.Reason != c.reason {
				t.Errorf("origin %+v, reason %q", got.Origin, got.Reason)
			}
			if timed := !got.DiedAt.IsZero(); timed != (c.key != "") {
				t.Errorf("died at %s", got.DiedAt)
			}
			if held := got.To == deadletter.ClassifiedHold; held != (c.held != "") || held && got.Why != c.held {
				t.Errorf("%s: %s", got.To, got.Why)
			}
			if asks != c.asks {
				t.Errorf("asked %d times", asks)
			}
		})
	}
}

// TestAQueueIsAskedAboutOnce checks that dlo asks the broker about a queue only once in a batch. A
// flood of invented names may cause only a limited number of questions.
func TestAQueueIsAskedAboutOnce(t *testing.T) {
	t.Parallel()
	o, asks := options(), map[string]int{}
	o.Onward = func(_ context.Context, origin deadletter.Origin, _ deadletter.Route) deadletter.Onward {
		asks[origin.Queue]++
		return deadletter.Onward{Queue: "sms"}
	}
	var letters []deadletter.Letter
	for i := range 200 {
		letters = append(letters, letterWith(fmt.Sprintf("wait%d expired", max(0, i-100))))
	}
	held := 0
	for _, v := range verdicts(t, o, letters...) {
		if v.To == deadletter.ClassifiedHold {
			held++
		}
	}
	if len(asks) != 50 || asks["wait0"] != 1 || held != 50 {
		t.Errorf("asked about %d queues, %d times about the first; %d letters held", len(asks), asks["wait0"], held)
	}
}

// TestAGroupIsOneWhoeverKnowsTheQueue covers letters that failed in one queue and then expired in a
// delay queue. They must form one group. It must not matter what names the queue in which they
// failed: x-death, the broker or the configuration.
func TestAGroupIsOneWhoeverKnowsTheQueue(t *testing.T) {
	t.Parallel()
	keys := map[[32]byte]string{}
	for name, c := range map[string]struct {
		letter deadletter.Letter
		given  string
	}{
		"x-death":       {letterWith("wait expired", "sms rejected"), ""},
		"its broker":    {letterWith("wait expired"), ""},
		"configuration": {letterWith("wait expired"), "sms"},
	} {
		o := options()
		o.Given = func(string, string, string) string { return c.given }
		o.Onward = func(context.Context, deadletter.Origin, deadletter.Route) deadletter.Onward {
			return deadletter.Onward{Queue: "sms"}
		}
		c.letter.Arrived.Headers["x-error"] = "boom"
		keys[verdicts(t, o, c.letter)[0].GroupKey] = name
	}
	if len(keys) != 1 {
		t.Errorf("%d groups: %v", len(keys), keys)
	}
}

// TestAStoredLetterStaysWhereItDied checks that dlo does not ask the broker again about the queue
// of a stored letter. The rules must see the origin that is stored.
func TestAStoredLetterStaysWhereItDied(t *testing.T) {
	t.Parallel()
	o := options()
	o.Onward = func(context.Context, deadletter.Origin, deadletter.Route) deadletter.Onward {
		t.Error("the broker was asked")
		return deadletter.Onward{}
	}
	l := letterWith("wait expired")
	l.State, l.Queue, l.Reason = deadletter.StateDead, "sms", "rejected"
	if f := classify.New(&fake{}, o).Facts(&l); f.Queue != "sms" || f.Reason != "rejected" {
		t.Errorf("%s %s", f.Queue, f.Reason)
	}
	l.State = deadletter.StateReceived
	if f := classify.New(&fake{}, o).Facts(&l); f.Queue != "sms" || f.Reason != "rejected" {
		t.Errorf("received: %s %s", f.Queue, f.Reason)
	}
}
