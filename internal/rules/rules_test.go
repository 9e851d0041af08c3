package rules

import (
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

func TestTheDefaultRule(t *testing.T) {
	t.Parallel()
	set := Set{
		Default: Rule{
			Name: DefaultName, Retry: &Retry{Delays: []time.Duration{10 * time.Second, 100 * time.Second}},
			Severity: deadletter.SeverityDigest,
		},
	}
	for _, c := range []struct {
		name  string
		facts Facts
		retry bool
		delay time.Duration
		why   string
	}{
		{"first death", Facts{Reason: "rejected", Attempts: 0}, true, 10 * time.Second, "retry 1 of 2"},
		{"second death", Facts{Reason: "rejected", Attempts: 1}, true, 100 * time.Second, "retry 2 of 2"},
		{"retries used up", Facts{Reason: "rejected", Attempts: 2}, false, 0, "used up: 2 of 2"},
		{
			"came back after a person's requeue",
			Facts{Reason: "rejected", Attempts: 3},
			false,
			0,
			"used up: 2 of 2, sent 3 times",
		},
		{
			"a delivery limit is a rejection",
			Facts{Reason: "delivery_limit", Attempts: 0},
			true,
			10 * time.Second,
			"retry 1",
		},
		{"an unknown reason is retried", Facts{Reason: "eaten", Attempts: 0}, true, 10 * time.Second, "retry 1"},
		{"expired waits for a person", Facts{Reason: "expired", Attempts: 0}, false, 0, "expired"},
		{"maxlen waits for a person", Facts{Reason: "maxlen", Attempts: 0}, false, 0, "maxlen"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := set.Decide(c.facts)
			if (d.Outcome == deadletter.RuleRetry) != c.retry || d.Delay != c.delay ||
				!strings.Contains(d.Why, c.why) || d.Severity != deadletter.SeverityDigest {
				t.Errorf("%+v", d)
			}
		})
	}
	if d := (&Set{Default: Rule{Retry: &Retry{}}}).Decide(Facts{Reason: "rejected", Attempts: 0}); d.Outcome != deadletter.RuleDead || d.Why != "no retries" {
		t.Errorf("%+v", d)
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	var targets Targets
	targets.Add("main", "/", []string{"email-*", "sms"}, []string{"dlo.letters", "old-dlq"})
	for _, c := range []struct {
		origin deadletter.Origin
		refuse string
	}{
		{deadletter.Origin{Broker: "main", VHost: "/", Queue: "email-queue"}, ""},
		{deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms"}, ""},
		{deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms2"}, "not in requeue_to"},
		{deadletter.Origin{Broker: "main", VHost: "/", Queue: "amq.gen-x"}, "belongs to the broker"},
		{deadletter.Origin{Broker: "main", VHost: "/", Queue: "dlo.wait.10s"}, "dead-letter queue of dlo"},
		{deadletter.Origin{Broker: "main", VHost: "/", Queue: "old-dlq"}, "dead-letter queue of dlo"},
		{deadletter.Origin{Broker: "main", VHost: "other", Queue: "sms"}, "vhost"},
		{deadletter.Origin{Broker: "gone", VHost: "/", Queue: "sms"}, "no broker"},
		{deadletter.Origin{Broker: "main", VHost: "/"}, "nothing says"},
	} {
		err := targets.Allow(c.origin)
		if (err == nil) != (c.refuse == "") || err != nil && !strings.Contains(err.Error(), c.refuse) {
			t.Errorf("%+v: %v, want %q", c.origin, err, c.refuse)
		}
	}
}
