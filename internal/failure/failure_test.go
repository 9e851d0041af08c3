package failure_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/failure"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type table = deadletter.Table

// none maps no headers.
var none deadletter.FailureHeaders

// headerNames lists all headers that the conventions read. The property test uses it.
var headerNames = []string{
	"x-exception-message", "x-exception-stacktrace", "x-original-exchange", "x-original-routingKey", "__TypeId__",
	"__ContentTypeId__", "retry-count", "MT-Reason", "MT-Fault-ExceptionType", "MT-Fault-Message",
	"MT-Fault-StackTrace",
	"MT-Fault-Timestamp", "MT-Fault-InputAddress", "MT-Fault-MessageType", "MT-MessageType", "MT-Fault-RetryCount",
	"MT-Host-ProcessName", "NServiceBus.FailedQ", "NServiceBus.ExceptionInfo.ExceptionType",
	"NServiceBus.ExceptionInfo.Message",
	"NServiceBus.ExceptionInfo.StackTrace", "NServiceBus.TimeOfFailure", "NServiceBus.EnclosedMessageTypes",
	"NServiceBus.Retries", "NServiceBus.ProcessingEndpoint", "rbs2-error-details", "rbs2-source-queue", "rbs2-msg-type",
	"rbs2-delivery-count",
	"exception-type", "exception-message", "exception-stack", "failed-at", "original-destination", "attempts",
	"message-type", "task", "lang", "retries", "type",
	`X-Message-Stamp-Symfony\Component\Messenger\Stamp\ErrorDetailsStamp`,
	`X-Message-Stamp-Symfony\Component\Messenger\Stamp\RedeliveryStamp`,
	`X-Message-Stamp-Symfony\Component\Messenger\Stamp\SentToFailureTransportStamp`,
	"NServiceBus.DelayedRetries", "NServiceBus.FLRetries", "MT-Fault-RedeliveryCount", "MT-Host-AssemblyVersion",
	"rbs2-defer-count", `X-Message-Stamp-Symfony\Component\Messenger\Stamp\BusNameStamp`,
	"x-error-message", "error-message", "x-error-type", "x-exception-type", "x-exception-class", "error-type",
	"laravel", "retry_info", "reason_poisoned", "topic_poisoned", "handler_poisoned", "nameko.call_id_stack",
	"x-shovelled", "cloudEvents_type", "cloudEvents:type", "x-error", "x-error-class", "error",
	"rascal", "knativeerrordata", "ce-knativeerrorcode", "X-Exception-Stacktrace", "errorMessage", "x-opt-error-reason",
	"traceback", "failure", "x-retry-count",
	"id", "name", "NServiceBus.MessageId", "rbs2-msg-id", "_watermill_message_uuid",
}

// headerValues lists values that any header may have.
var headerValues = []any{
	nil,
	true,
	int8(-1),
	uint8(255),
	int16(-1),
	int32(3),
	uint32(1 << 31),
	int64(-1 << 63),
	float32(1),
	float64(1e300),
	deadletter.Decimal{Scale: 255, Value: -1},
	[]byte("\xff\x00"),
	[]byte("bytes"),
	time.Unix(1<<40, 0),
	[]any{},
	[]any{nil, "x.y.z"},
	[]any{table{"src-queue": int64(1)}},
	[]any{table{"src-queue": "sms"}},
	table{},
	table{"attempts": "x"},
	table{"error": table{"message": "boom", "code": "E1"}, "originalQueue": "sms", "recovery": table{"sms": table{"republished": 3}}},
	table{"message": "boom", "type": []byte("X"), "stack": 7},
	`{"message": "boom", "type": {"a": 1}}`,
	table{"attempts": int64(1 << 40)},
	"",
	" ",
	"x",
	"\x00\n\x1b[31m\u202e",
	"System.X: boom\n   at A.B.C()",
	"a.B: c\n\tat d.E.f(G.java:1)\nCaused by: h.I: j",
	"99999999999999999999",
	"2026-11-20 07:11:12:123456 Z",
	"2026-11-20 07:11:12:",
	"rabbitmq://h/v/q?x=%zz",
	"rabbitmq://h/%2F/a%2Fb",
	"queue:",
	"://",
	strings.Repeat("x", 100_000),
	strings.Repeat("\n\tat a.B.c(D.java:1)", 5000),
	strings.Repeat("[", 100_000),
	strings.Repeat(`{"a":`, 1000),
	strings.Repeat("a: ", 30_000),
	strings.Repeat("---> ", 20_000),
	`[]`,
	`[1]`,
	`{}`,
	`null`,
	`[null]`,
	`[{"exceptionClass":1,"exceptionMessage":[],"flattenException":2}]`,
	`[{"error":{},"error_class":"X","backtrace":[1,"a.rb:1:in 'x'"]}]`,
	`{"error":"x","num_attempts":-5,"failed_at":"9999999","backtrace":"/a.rb:1:in 'x', /b.rb:2:in 'y'"}`,
	"@",
	"@m",
	"a@",
	"x, y; z",
	"a]b,c",
}

func anyRead(t *rapid.T) deadletter.Failure {
	headers := table{}
	for _, name := range rapid.SliceOfN(rapid.SampledFrom(headerNames), 0, 12).Draw(t, "names") {
		headers[name] = rapid.SampledFrom(headerValues).Draw(t, name)
	}
	p := deadletter.Properties{Headers: headers, Type: "acme.X"}
	return failure.Read(p, rapid.SampledFrom([]string{
		"", "a_error", "_error", "b-error", "c.failed",
	}).Draw(t, "inbox"), deadletter.Route{
		RoutingKey: rapid.SampledFrom([]string{"", ".failed", "q.failed", "k"}).Draw(t, "key"),
	}, none, nil)
}

func TestTheManualHasTheConventions(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../../docs/grouping.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(manual), "\n| framework |")
	rows, _, _ := strings.Cut(rest, "\n\n")
	rows = strings.Replace(rows, "| any |", "| "+failure.Plain+" |", 1)
	var got []string
	for _, row := range strings.Split(rows, "\n| ")[1:] {
		name, _, _ := strings.Cut(row, " |")
		if !slices.Contains([]string{"EasyNetQ", "Dramatiq", "NestJS"}, name) { // all that they say is in the body
			got = append(got, row)
		}
	}
	names := failure.Conventions()
	if len(got) != len(names) {
		t.Fatalf("docs/grouping.md has %d conventions, and the code has %d: %v", len(got), len(names), names)
	}
	for i, name := range names {
		if !strings.HasPrefix(got[i], name) {
			t.Errorf("row %d of docs/grouping.md is %.30q, and the convention is %s", i+1, got[i], name)
		}
	}
}

// TestEveryConventionReadsHeaderNames checks that headerNames contains every header that a
// convention reads.
func TestEveryConventionReadsHeaderNames(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, value := range headerValues {
		headers := table{}
		for _, name := range headerNames {
			headers[name] = value
		}
		for _, name := range failure.Found(headers) {
			found[name] = true
		}
	}
	for _, name := range failure.Conventions() {
		if !found[name] {
			t.Errorf("%s finds nothing in headerNames: its headers are missing there", name)
		}
	}
}

// brokenLimit checks a failure against the limits that apply to failures from every source. For
// example, the texts of a failure must not be too long. It returns a description of the first limit
// that the failure exceeds, or "" if it exceeds none.
func brokenLimit(f deadletter.Failure) string {
	switch {
	case len(f.Type) > 300 || len(f.Message) > 8<<10 || len(f.Stack) > 64<<10 || len(f.MessageType) > 300 ||
		len(f.Service) > 300 || len(f.ID) > 300 || len(f.Version) > 300:
		return "it is too long"
	case len(f.Queue) > 255 || len(f.Exchange) > 255 || len(f.RoutingKey) > 255:
		return "it names a place that cannot be"
	case f.Attempts < 0 || f.Attempts > 1_000_001:
		return "it counts attempts that cannot be"
	case !f.FailedAt.IsZero() && (f.FailedAt.Year() < 1970 || f.FailedAt.Year() > 9999):
		return "it failed at a time that cannot be stored"
	case f.Said() && f.By == "":
		return "nobody says it"
	}
	return ""
}

func TestReadOfWhateverIsGiven(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := anyRead(t)
		joined := failure.Join(f, deadletter.Failure{})
		for _, f := range []deadletter.Failure{f, joined} {
			if wrong := brokenLimit(f); wrong != "" {
				t.Fatalf("%s: %.2000v", wrong, f)
			}
		}
		failure.Frames(joined.Stack)
	})
}

func TestReadOfNothing(t *testing.T) {
	t.Parallel()
	if f := failure.Read(
		deadletter.Properties{Type: "acme.X"}, "q", deadletter.Route{RoutingKey: "q.failed"}, none, nil,
	); f != (deadletter.Failure{}) {
		t.Errorf("%+v", f)
	}
	if f := failure.Read(deadletter.Properties{
		Headers: table{"traceparent": "00-1-2-01", "x-death": []any{}},
	}, "q", deadletter.Route{}, none, nil); f != (deadletter.Failure{}) {
		t.Errorf("%+v", f)
	}
}

// TestSeveralConventions covers headers of several conventions. The whole error must come from the
// most specific convention that reports one. The others must only fill in the fields that it omits.
func TestSeveralConventions(t *testing.T) {
	t.Parallel()
	read := func(headers table) deadletter.Failure {
		return failure.Read(deadletter.Properties{Headers: headers}, "sms_error", deadletter.Route{}, none, nil)
	}
	for _, c := range []struct {
		name    string
		headers table
		want    deadletter.Failure
	}{
		{
			"the specific one before plain headers",
			table{"x-error": "plain", "x-error-class": "Plain", "reason_poisoned": "specific"},
			deadletter.Failure{By: "Watermill", Message: "specific"},
		},
		{
			"who reports an error before who is more specific and does not",
			table{"MT-Fault-InputAddress": "rabbitmq://h/sms", "x-error": "plain"},
			deadletter.Failure{By: failure.Plain, Message: "plain", Queue: "sms"},
		},
		{
			"an error stays in one piece",
			table{
				"reason_poisoned": "specific", "x-exception-message": "other", "x-exception-stacktrace": "a.B: other",
			},
			deadletter.Failure{By: "Spring AMQP", Type: "a.B", Message: "other", Stack: "a.B: other"},
		},
		{
			"and so does a place",
			table{
				"x-shovelled":           []any{table{"src-queue": "orders.parked"}},
				"x-original-exchange":   "shop",
				"x-original-routingKey": "placed",
			},
			deadletter.Failure{By: "Spring AMQP", Exchange: "shop", RoutingKey: "placed"},
		},
		{
			"what the message is",
			table{"reason_poisoned": "x", "cloudEvents_type": "com.acme.placed"},
			deadletter.Failure{By: "Watermill", Message: "x", MessageType: "com.acme.placed"},
		},
		{
			"names of Wolverine that others use as well",
			table{"exception-type": "X", "exception-message": "boom", "attempts": "3"},
			deadletter.Failure{By: failure.Plain, Type: "X", Message: "boom"},
		},
		{
			"types of MassTransit in an address of another kind",
			table{"MT-Fault-InputAddress": "queue:sms", "MT-MessageType": "urn:message:A:B"},
			deadletter.Failure{By: "MassTransit", MessageType: "urn:message:A:B", Queue: "sms"},
		},
		{
			"NServiceBus knows the type only",
			table{"NServiceBus.EnclosedMessageTypes": "Acme.List`1[[Acme.X, Acme]], Acme, Version=1"},
			deadletter.Failure{By: "NServiceBus", MessageType: "Acme.List`1[[Acme.X, Acme]]"},
		},
		{
			"text that a client wrote as bytes",
			table{"reason_poisoned": []byte("boom"), "topic_poisoned": []byte("\xff")},
			deadletter.Failure{By: "Watermill", Message: "boom"},
		},
	} {
		if diff := cmp.Diff(c.want, read(c.headers)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	body := deadletter.Failure{
		By: "EasyNetQ", Stack: "A.X: boom\n   at B.C()", Queue: "q", Exchange: "e", MessageType: "T",
	}
	whole := body
	whole.Type, whole.Message = "A.X", "boom"
	for _, c := range []struct {
		name               string
		header, body, want deadletter.Failure
	}{
		{"nothing", deadletter.Failure{}, deadletter.Failure{}, deadletter.Failure{}},
		{"the body alone: its stack says type and message", deadletter.Failure{}, body, whole},
		{"an envelope before plain headers", deadletter.Failure{By: failure.Plain, Message: "plain"}, body, whole},
		{
			"a framework before an envelope",
			deadletter.Failure{By: "Rebus", Message: "m"},
			body,
			deadletter.Failure{By: "Rebus", Message: "m", Queue: "q", Exchange: "e", MessageType: "T"},
		},
		{
			"only what the message is",
			deadletter.Failure{By: failure.Plain, Message: "plain"},
			deadletter.Failure{MessageType: "T"},
			deadletter.Failure{By: failure.Plain, Message: "plain", MessageType: "T"},
		},
		{
			"only where, and only what",
			deadletter.Failure{By: "Shovel", Queue: "s"},
			deadletter.Failure{MessageType: "T"},
			deadletter.Failure{By: "Shovel", Queue: "s", MessageType: "T"},
		},
	} {
		if diff := cmp.Diff(c.want, failure.Join(c.header, c.body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestHeadsOfStacks checks how the type and the message of an error are read from a stack trace,
// for each language.
func TestHeadsOfStacks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, stack, typ, message string }{
		{
			"Java", javaStack, "org.springframework.amqp.rabbit.support.ListenerExecutionFailedException",
			"Listener method 'public void com.acme.orders.PlaceListener.on(com.acme.orders.Place)' threw exception",
		},
		{
			"Java, of a thread", "Exception in thread \"main\" java.lang.IllegalStateException\n\tat a.B.c(D.java:1)",
			"java.lang.IllegalStateException", "",
		},
		{".NET, what is inside", dotnetStack, "System.InvalidOperationException", "stock of 17"},
		{".NET, nothing inside", "System.AggregateException: none\n   at A.B()", "System.AggregateException", "none"},
		{"Python, the last", pythonStack, "shop.errors.OutOfStock", "sku-17"},
		{"Node", "TypeError: x is not a function\n    at a (/b.js:1:1)", "TypeError", "x is not a function"},
		{
			"Ruby", "/app/stock.rb:42:in `take': stock of 17 (Shop::OutOfStock)\n\tfrom /app/x.rb:1:in `y'",
			"Shop::OutOfStock", "stock of 17",
		},
		{
			"PHP",
			"PHP Fatal error:  Uncaught App\\OutOfStock: stock in the shop in /app/src/Stock.php:42\nStack trace:\n#0 {main}",
			`App\OutOfStock`, "stock in the shop",
		},
		{
			"Go", "panic: runtime error: index out of range [5]\n\ngoroutine 1 [running]:", "",
			"runtime error: index out of range [5]",
		},
		{"Elixir", "** (KeyError) key :sku not found", "KeyError", "key :sku not found"},
		{"a sentence", "failed: no stock\nat all", "", "failed: no stock"},
		{"frames only", "   at A.B.C()\n   at D.E()", "", ""},
		{"a time is no type", "10:11:12: late", "", "10:11:12: late"},
	} {
		f := failure.Join(deadletter.Failure{By: "x", Stack: c.stack}, deadletter.Failure{})
		if f.Type != c.typ || f.Message != c.message {
			t.Errorf("%s: %q, %q", c.name, f.Type, f.Message)
		}
	}
}

// TestAStackBesideWhatIsMasked covers a stack whose message is masked. Only the frames of the stack
// may be kept, without their arguments.
func TestAStackBesideWhatIsMasked(t *testing.T) {
	t.Parallel()
	mask := func(name, text string) (string, bool) {
		if name == "MT-Fault-Message" {
			return "••••", true
		}
		return text, false
	}
	f := failure.Read(deadletter.Properties{Headers: table{
		"MT-Fault-ExceptionType": "X", "MT-Fault-Message": "4711 of Anna\nat home",
		"MT-Fault-StackTrace": "X: 4711 of Anna\nat home\n#0 /app/Stock.php(42): App\\Stock->take('4711 of A...', 1)\n#1 {main}\n   at Acme.Stock.Take(4711 of Anna\nat home)\n   at Acme.Stock.Put(Int32 n)\nfor Anna",
	}}, "q", deadletter.Route{}, none, mask)
	want := deadletter.Failure{
		By: "MassTransit", Type: "X", Message: "••••",
		Stack: "#0 /app/Stock.php(42): App\\Stock->take()\n#1 {main}\n   at Acme.Stock.Put(Int32 n)\n",
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzRead(f *testing.F) {
	for _, headers := range []table{
		{"x-exception-message": "m", "x-exception-stacktrace": "a.B: c", "x-original-exchange": ""},
		{"MT-Fault-InputAddress": "rabbitmq://h/q", "MT-Reason": "fault"},
		{"NServiceBus.FailedQ": "q@m", "NServiceBus.TimeOfFailure": "2026-11-20 07:11:12:123456 Z"},
		{"rbs2-error-details": "1 unhandled exceptions: x: A.B: c"},
		{"retry_info": `[{"error":"x","backtrace":["y"]}]`},
		{"laravel": table{"attempts": int32(1)}},
		{"x-shovelled": []any{table{"src-queue": "q"}}, "nameko.call_id_stack": []any{"a.b.c"}},
	} {
		b, err := deadletter.Properties{Headers: headers}.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, "sms_error", "q.failed")
	}
	f.Fuzz(func(t *testing.T, properties []byte, inbox, key string) {
		p, err := deadletter.DecodeProperties(properties)
		if err != nil {
			return
		}
		got := failure.Read(deadletter.Properties{Headers: p.Headers}, inbox, deadletter.Route{RoutingKey: key}, none, nil)
		if len(inbox) <= 255 && len(key) <= 255 {
			if wrong := brokenLimit(got); wrong != "" {
				t.Fatalf("%s: %+v", wrong, got)
			}
		}
	})
}
