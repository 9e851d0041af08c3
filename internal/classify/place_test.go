package classify_test

import (
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/google/go-cmp/cmp"
)

// TestWhereALetterDied covers letters whose x-death and framework headers disagree.
func TestWhereALetterDied(t *testing.T) {
	t.Parallel()
	death := func(queue, reason string, at time.Time) table {
		return table{
			"queue":        queue,
			"exchange":     "events",
			"reason":       reason,
			"routing-keys": []any{"k"},
			"time":         at,
			"count":        int64(1),
		}
	}
	told := func(at string, deaths ...any) table {
		h := table{
			"NServiceBus.FailedQ": "sms", "NServiceBus.ExceptionInfo.Message": "boom", "NServiceBus.TimeOfFailure": at,
		}
		if len(deaths) > 0 {
			h["x-death"] = deaths
		}
		return h
	}
	ten := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	const before, after = "2026-11-20 09:00:00:000000 Z", "2026-11-20 10:00:30:000000 Z"
	sms := deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms"}
	of := func(queue string) deadletter.Origin {
		return deadletter.Origin{Broker: "main", VHost: "/", Queue: queue, Exchange: "events", RoutingKey: "k"}
	}
	for _, c := range []struct {
		name    string
		headers table
		change  func(l *deadletter.Letter)
		origin  deadletter.Origin
		reason  string
		diedAt  time.Time
	}{
		{
			"x-death counts before the framework", told(after, death("email-1", "rejected", ten)), nil, of("email-1"),
			"rejected", ten,
		},
		{
			"but not the delay queue of a retry recipe",
			told(after, death("sms.delay", "expired", ten), death("email-1", "rejected", ten)), nil, sms, "rejected",
			ten.Add(30 * time.Second),
		},
		{"nor without times", told("", death("sms.delay", "expired", time.Time{})), nil, sms, "rejected", time.Time{}},
		{
			"clocks a little apart", told("2026-11-20 09:59:30:000000 Z", death("sms.delay", "expired", ten)), nil, sms,
			"rejected", ten.Add(-30 * time.Second),
		},
		{
			"what expired later was moved on after the failure", told(before, death("email-2", "expired", ten)), nil,
			of("email-2"), "expired", ten,
		},
		{
			"expired in the queue of the framework", told(after, death("sms", "expired", ten)), nil, of("sms"),
			"expired", ten,
		},
		{
			"expired, and the framework knows of no error",
			table{"x-shovelled": []any{table{"src-queue": "sms"}}, "x-death": []any{death("email-1", "expired", ten)}},
			nil,
			of("email-1"),
			"expired",
			ten,
		},
		{
			"the framework names the inbox",
			table{"NServiceBus.FailedQ": "dlo.letters", "NServiceBus.ExceptionInfo.Message": "boom"},
			nil,
			deadletter.Origin{Broker: "main", VHost: "/"},
			"",
			time.Time{},
		},
		{
			"the inbox has an origin",
			told(after),
			func(l *deadletter.Letter) { l.Queue = "email-1" },
			deadletter.Origin{Broker: "main", VHost: "/", Queue: "email-1"},
			"",
			time.Time{},
		},
		{
			"the inbox has the same origin", told(after), func(l *deadletter.Letter) { l.Queue = "sms" }, sms,
			"rejected", ten.Add(30 * time.Second),
		},
		{
			"the inbox has an origin, the framework names exchange and key only",
			table{"x-exception-message": "boom", "x-original-exchange": "shop", "x-original-routingKey": "placed"},
			func(l *deadletter.Letter) { l.Queue = "sms" },
			deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms", Exchange: "shop", RoutingKey: "placed"},
			"rejected",
			time.Time{},
		},
		{
			"it came back: as it was first published",
			told(after),
			func(l *deadletter.Letter) {
				l.Attempts, l.Queue, l.Exchange, l.RoutingKey = 1, "sms", "shop", "placed"
			},
			deadletter.Origin{Broker: "main", VHost: "/", Queue: "sms", Exchange: "shop", RoutingKey: "placed"},
			"rejected",
			ten.Add(30 * time.Second),
		},
		{
			"a queue that is not allowed",
			table{"NServiceBus.FailedQ": "payments", "NServiceBus.ExceptionInfo.Message": "boom"},
			nil,
			deadletter.Origin{Broker: "main", VHost: "/", Queue: "payments"},
			"rejected",
			time.Time{},
		},
		{
			"a queue with the suffix of Dramatiq, and another framework",
			table{"rascal": table{"originalQueue": "pay"}, "x-death": []any{death("pay.XQ", "rejected", ten)}},
			nil, of("pay.XQ"), "rejected", ten,
		},
		{
			"a mapped header does not override x-death",
			table{"x-came-from": "sms", "x-why": "boom", "x-death": []any{death("email-1", "expired", ten)}},
			nil, of("email-1"), "expired", ten,
		},
		{"a mapped header, without x-death", table{"x-came-from": "sms"}, nil, sms, "", time.Time{}},
	} {
		l := deadLetter("", "", c.headers)
		if c.change != nil {
			c.change(&l)
		}
		o := options()
		o.FailureHeaders = deadletter.FailureHeaders{Origin: []string{"x-came-from"}, Message: []string{"x-why"}}
		v := verdicts(t, o, l)[0]
		want := deadletter.Classified{Origin: c.origin, Reason: c.reason, DiedAt: c.diedAt}
		if diff := cmp.Diff(want, deadletter.Classified{
			Origin: v.Origin, Reason: v.Reason, DiedAt: v.DiedAt,
		}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if c.origin.Queue == "payments" &&
			(v.To != deadletter.ClassifiedHold ||
				v.Why != "no target: queue payments is not in requeue_to of broker main") {
			t.Errorf("%s: %s %s", c.name, v.To, v.Why)
		}
	}
}

// TestABindingOfAQueueThatOnlyTheBodyNames covers an EasyNetQ error. Only the body of such a letter
// names the queue in which the message failed. If a type is bound to this queue, the message must
// be decoded as this type.
func TestABindingOfAQueueThatOnlyTheBodyNames(t *testing.T) {
	t.Parallel()
	o := options()
	decoder := &payload.Decoder{Types: twins(t), Bindings: []deadletter.Binding{{Queue: "sms", Type: "acme.Left"}}}
	o.Decoder = func() *payload.Decoder { return decoder }
	body := `{"RoutingKey":"k","Exchange":"e","Queue":"sms","Exception":"boom","Message":"CgxhYmNkZWZnaGlqa2wQhaYDGhFoZWxsbyBnb29kIGZyaWVuZA==","DateTime":"2026-11-20T07:11:12Z","BasicProperties":{}}`
	v := verdicts(t, o, deliveredLetter("errors", deadletter.Properties{
		ContentType: "application/json", Type: "EasyNetQ.SystemMessages.Error, EasyNetQ",
	}, body))[0]
	if v.Type != "acme.Left" || v.Reading != deadletter.ReadByBinding || v.Origin.Queue != "sms" {
		t.Errorf("%+v", v)
	}
}
