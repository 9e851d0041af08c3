package payload

import (
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/google/go-cmp/cmp"
)

const laravelBody = `{"uuid":"6c2a","displayName":"App\\Jobs\\PlaceOrder","job":"Illuminate\\Queue\\CallQueuedHandler@call","maxTries":3,"data":{"commandName":"App\\Jobs\\PlaceOrder","command":"O:19:..."},"id":"x"}`

func TestEnvelopesSayWhyAMessageWasGivenUp(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body string
		h          Hints
		want       deadletter.Failure
	}{
		{"EasyNetQ", easyNetQBody, Hints{Type: easyNetQType}, deadletter.Failure{
			By: "EasyNetQ", Queue: "Acme.Orders.Placed, Acme.Contracts_billing",
			Exchange: "Acme.Orders.Placed, Acme.Contracts", MessageType: "Acme.Orders.Placed",
			FailedAt: time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC),
			Stack:    "System.AggregateException: One or more errors occurred. (no price)\r\n ---> System.Exception: no price\r\n   at Billing.Price()",
		}},
		{
			"an error of an error: the outer one",
			string(easyNetQOf(easyNetQBody, "application/json", easyNetQType)),
			Hints{Type: easyNetQType},
			deadletter.Failure{
				By: "EasyNetQ", Exchange: "e", RoutingKey: "k", MessageType: "EasyNetQ.SystemMessages.Error",
				FailedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Stack: "x",
			},
		},
		{
			"a time without zone, and names that are none",
			strings.NewReplacer(
				`"2026-01-02T03:04:05.678Z"`, `"2026-01-02T03:04:05"`, `"Queue":"`,
				`"Queue":"`+strings.Repeat("q", 256), `"Exchange":"`, `"Exchange":"`+strings.Repeat("e", 5000),
			).Replace(easyNetQBody),
			Hints{Type: easyNetQType},
			deadletter.Failure{
				By: "EasyNetQ", MessageType: "Acme.Orders.Placed",
				FailedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
				Stack:    "System.AggregateException: One or more errors occurred. (no price)\r\n ---> System.Exception: no price\r\n   at Billing.Price()",
			},
		},
		{
			"MassTransit",
			massTransitBody,
			Hints{ContentType: mt},
			deadletter.Failure{MessageType: "Company.Project.CreateUser"},
		},
		{
			"CloudEvents",
			string(cloudEvent("application/json", `"data": {"a": 1}`)),
			Hints{ContentType: ce},
			deadletter.Failure{MessageType: "com.example.someevent"},
		},
		{"Laravel", laravelBody, Hints{}, deadletter.Failure{MessageType: `App\Jobs\PlaceOrder`}},
		{
			"Laravel without a name to show",
			strings.Replace(laravelBody, `"displayName":"App\\Jobs\\PlaceOrder"`, `"displayName":null`, 1),
			Hints{},
			deadletter.Failure{MessageType: `App\Jobs\PlaceOrder`},
		},
		{"a job of somebody else", `{"displayName":"a","job":"b"}`, Hints{}, deadletter.Failure{}},
		{"no envelope", `{"OrderId":7}`, Hints{Type: "Acme.Orders.Placed"}, deadletter.Failure{}},
	} {
		if diff := cmp.Diff(c.want, decode([]byte(c.body), c.h).Failure); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestWhatIsMaskedIsMaskedInFailures(t *testing.T) {
	t.Parallel()
	hidden := &Decoder{Mask: &Mask{JSON: []deadletter.FieldPath{{"Exception"}, {"Queue"}, {"displayName"}, {"data"}}}}
	got := hidden.Decode([]byte(easyNetQBody), Hints{Type: easyNetQType}, nil).Failure
	if got.Stack != Masked || got.Queue != "" || got.RoutingKey != "" || got.Exchange == "" {
		t.Errorf("%+v", got)
	}
	if got := hidden.Decode([]byte(laravelBody), Hints{}, nil).Failure; got != (deadletter.Failure{}) {
		t.Errorf("%+v", got)
	}
}

func TestOutlines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, body, want string }{
		{"keys, sorted", `{"b":1,"a":{"c":2},"d":null}`, "a,b,d"},
		{"a list", `[{"a":1}]`, ""},
		{"nothing in it", `{}`, ""},
		{
			"fields of an unknown message", "\x0a\x06abcdef\x10\x05\x1a\x04\x0a\x02hi\x10\x07\x3a\x03\x00\xff\xfe",
			"1:length-delimited,2:varint,3:length-delimited,7:length-delimited",
		},
		{
			"the same with other values", "\x0a\x00\x10\x05\x1a\x02\xff\xff\x3a\x01a",
			"1:length-delimited,2:varint,3:length-delimited,7:length-delimited",
		},
		{"text", "hello there, this is text", ""},
		{"no protobuf", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", ""},
		{"empty", "", ""},
	} {
		if got := decode([]byte(c.body), Hints{}).Outline(); got != c.want {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
	}
	if got := decode(sample(t), Hints{Type: email}); got.Type == "" || got.Outline() != "" {
		t.Errorf("of type %q: %q", got.Type, got.Outline())
	}
	large := "{"
	for i := range 100 {
		large += `"` + strings.Repeat("k", i+1) + `":1,`
	}
	if got := decode([]byte(large+`"z":1}`), Hints{}).Outline(); strings.Count(got, ",") != 63 {
		t.Errorf("%d commas", strings.Count(got, ","))
	}
}
