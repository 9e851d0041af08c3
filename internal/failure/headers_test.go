package failure_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/failure"
	"github.com/google/go-cmp/cmp"
)

// TestErrorsUnderManyNames reads errors from headers that belong to no framework, or whose names
// have another case than the framework writes.
func TestErrorsUnderManyNames(t *testing.T) {
	t.Parallel()
	phpStack := "#0 /app/src/Stock.php(31): App\\Stock->take(9)\n#1 {main}"
	for _, c := range []struct {
		name    string
		headers table
		want    deadletter.Failure
	}{
		{
			"reason and type",
			table{"x-error-reason": "no stock", "x-error-type": "Acme.Stock"},
			deadletter.Failure{Type: "Acme.Stock", Message: "no stock"},
		},
		{"words for no error", table{"error": "False", "x-exception": "null", "failure": "none", "x-last-error": "0"}, deadletter.Failure{}},
		{"short names", table{"error": "true", "x-err-msg": "no stock"}, deadletter.Failure{Message: "no stock"}},
		{"upper case", table{"X-Error-Message": "no stock"}, deadletter.Failure{Message: "no stock"}},
		{
			"in one word",
			table{"errorMessage": "no stock", "errorType": "StockError"},
			deadletter.Failure{Type: "StockError", Message: "no stock"},
		},
		{
			"exception-class and its stack", table{
				"exception-message": "no stock", "exception-class": `App\Stock\Missing`, "exception-stacktrace": phpStack,
			}, deadletter.Failure{Type: `App\Stock\Missing`, Message: "no stock", Stack: phpStack},
		},
		{
			"X-Exception-*, which is not Spring", table{
				"X-Exception-Type": "Acme.Stock", "X-Exception-Message": "no stock", "X-Exception-StackTrace": "   at A.B()",
			}, deadletter.Failure{Type: "Acme.Stock", Message: "no stock", Stack: "   at A.B()"},
		},
		{
			"underscores, and attempts",
			table{"error_message": "no stock", "x_retry_count": "4"},
			deadletter.Failure{Message: "no stock", Attempts: 4},
		},
		{
			"annotations of AMQP 1.0",
			table{"x-opt-error-type": "Acme.Stock", "x-opt-error-message": []byte("no stock")},
			deadletter.Failure{Type: "Acme.Stock", Message: "no stock"},
		},
		{
			"names of Azure Service Bus", table{"DeadLetterReason": "no stock"}, deadletter.Failure{Message: "no stock"},
		},
		{
			"a bridge from Kafka", table{
				"kafka_dlt-exception-fqcn": "a.Stock", "kafka_dlt-exception-message": "no stock",
			}, deadletter.Failure{Type: "a.Stock", Message: "no stock"},
		},
		{
			"only a traceback",
			table{"traceback": "Traceback (most recent call last):\n  File \"a.py\", line 1, in b\nStockError: none"},
			deadletter.Failure{
				Type: "StockError", Message: "none",
				Stack: "Traceback (most recent call last):\n  File \"a.py\", line 1, in b\nStockError: none",
			},
		},
		{
			"a table",
			table{"x-error": table{"Message": "no stock", "class": "Acme.Stock", "stack": phpStack}},
			deadletter.Failure{Type: "Acme.Stock", Message: "no stock", Stack: phpStack},
		},
		{
			"JSON",
			table{"error": `{"code":"E_STOCK","message":"no stock"}`},
			deadletter.Failure{Type: "E_STOCK", Message: "no stock"},
		},
		{
			"a framework in another case",
			table{"mt-fault-message": "no stock", "MT-FAULT-INPUTADDRESS": "queue:sms"},
			deadletter.Failure{By: "MassTransit", Message: "no stock", Queue: "sms"},
		},
		{
			"other pairs of words",
			table{"Fault-Type": "Acme.Stock", "x-fault-details": "no stock", "lastErrorTraceback": phpStack},
			deadletter.Failure{Type: "Acme.Stock", Message: "no stock", Stack: phpStack},
		},
		{
			"a framework with names of one word, in another case",
			table{"TASK": "shop.charge", "Lang": "py", "RETRIES": int32(2)},
			deadletter.Failure{By: "Celery", MessageType: "shop.charge", Attempts: 2},
		},
		{"a header without a name", table{"": "no stock"}, deadletter.Failure{}},
		{"headers without values", table{"NServiceBus.FailedQ": nil, "x-original-exchange": nil}, deadletter.Failure{}},
		{
			"two names that differ in their case",
			table{"X-ERROR": "first", "x-error-message": "no stock", "X-Error-Message": "other"},
			deadletter.Failure{Message: "other"},
		},
		{
			"Knative, its attributes as headers",
			table{"knative-error-code": "503", "knative-error-data": "no stock"},
			deadletter.Failure{By: "Knative", Type: "HTTP 503", Message: "no stock"},
		},
		{"what is no error", table{"x-error-count": "3", "errors": "1", "x-request-reason": "a", "attempt-count": "2", "trace": "9f"}, deadletter.Failure{}},
	} {
		if c.want != (deadletter.Failure{}) && c.want.By == "" {
			c.want.By = failure.Plain
		}
		got := failure.Read(deadletter.Properties{Headers: c.headers}, "q", deadletter.Route{}, none, nil)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestHeadersOfTheConfiguration reads the headers that the configuration names. They take
// precedence over known ones, and are masked in the same way.
func TestHeadersOfTheConfiguration(t *testing.T) {
	t.Parallel()
	own := deadletter.FailureHeaders{
		Type: []string{"x-missing", "x-problem.kind"}, Message: []string{"x-problem.text", "headers.report.why.text"},
		Stack: []string{"dotted.name.trace"}, Attempts: []string{"x-problem.tries"}, Origin: []string{"X-Came-From"},
	}
	mask := func(name, text string) (string, bool) {
		if strings.EqualFold(name, "secret") || strings.Contains(text, "4711") {
			return "••••", true
		}
		return text, false
	}
	for _, c := range []struct {
		name    string
		headers table
		want    deadletter.Failure
	}{
		{
			"a table",
			table{"X-Problem": table{"Kind": "Stock", "text": []byte("none"), "tries": int32(3)}, "x-came-from": "sms"},
			deadletter.Failure{By: "mapped headers", Type: "Stock", Message: "none", Attempts: 3, Queue: "sms"},
		},
		{
			"JSON in JSON",
			table{"report": table{"why": `{"text": "none"}`}},
			deadletter.Failure{By: "mapped headers", Message: "none"},
		},
		{
			"before a framework, whose other parts stay",
			table{
				"x-problem": table{"text": "none"}, "MT-Fault-Message": "other", "MT-Fault-InputAddress": "queue:sms",
				"MT-Fault-RetryCount": int32(2),
			},
			deadletter.Failure{By: "mapped headers", Message: "none", Queue: "sms", Attempts: 2},
		},
		{
			"the type is mapped, the message has a known name",
			table{"x-problem": `{"kind": "Stock", "tries": 2}`, "x-error-message": "sold out"},
			deadletter.Failure{By: "mapped headers", Type: "Stock", Message: "sold out", Attempts: 2},
		},
		{
			"only where it failed",
			table{"x-came-from": "sms", "reason_poisoned": "none", "topic_poisoned": "other"},
			deadletter.Failure{By: "Watermill", Message: "none", Queue: "sms"},
		},
		{
			"a name with dots",
			table{"dotted.name": table{"trace": "A.B: none\n   at C.D()"}},
			deadletter.Failure{By: "mapped headers", Type: "A.B", Message: "none", Stack: "A.B: none\n   at C.D()"},
		},
		{
			"masked, with a stack that repeats it",
			table{"x-problem": table{"text": "order 4711"}, "stacktrace": "X: order 47 of Ann\n   at A.B()"},
			deadletter.Failure{By: "mapped headers", Message: "••••", Stack: "   at A.B()"},
		},
		{"nothing of it", table{"x-problem": "a text", "report": int64(7), "x-came-from": strings.Repeat("q", 300)}, deadletter.Failure{}},
	} {
		got := failure.Read(deadletter.Properties{Headers: c.headers}, "q", deadletter.Route{}, own, mask)
		got.Stack = strings.TrimSuffix(got.Stack, "\n")
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if wrong := brokenLimit(got); wrong != "" {
			t.Errorf("%s: %s", c.name, wrong)
		}
	}
	own = deadletter.FailureHeaders{Message: []string{"secret.text"}}
	f := failure.Read(deadletter.Properties{Headers: table{"Secret": table{"text": "Ann"}}}, "q", deadletter.Route{}, own, mask)
	if f.Message != "••••" {
		t.Errorf("%+v", f)
	}
}

// TestMasksOfNamesInsideHeaders checks that a mask of a name hides its value inside tables and JSON
// of headers, too.
func TestMasksOfNamesInsideHeaders(t *testing.T) {
	t.Parallel()
	own := deadletter.FailureHeaders{Message: []string{"x-problem.inner.why"}, Stack: []string{"x-problem.trace"}}
	const stamp = `X-Message-Stamp-Symfony\Component\Messenger\Stamp\ErrorDetailsStamp`
	for name, headers := range map[string]table{
		"reason":           {"x-error": table{"reason": "kanarie"}},
		"message":          {"x-exception": `{"type":"A","message":"kanarie","stack":"A: kanarie\n   at B()"}`},
		"error":            {"rascal": table{"originalQueue": "q", "error": table{"message": "kanarie"}}},
		"error_message":    {"retry_info": `{"error":"x","error_class":"A","error_message":"kanarie"}`},
		"exceptionMessage": {stamp: `[{"exceptionClass":"A","exceptionMessage":"kanarie"}]`},
		"inner":            {"x-problem": table{"inner": table{"why": "kanarie"}, "trace": "A: kanarie\n   at B()"}},
		"why":              {"x-problem": table{"inner": table{"why": "kanarie"}}},
	} {
		for _, masked := range []bool{false, true} {
			mask := func(header, text string) (string, bool) {
				if masked && header == name {
					return "••••", true
				}
				return text, false
			}
			f := failure.Read(deadletter.Properties{Headers: headers}, "q", deadletter.Route{}, own, mask)
			if shown := strings.Contains(fmt.Sprint(f), "kanarie"); shown == masked {
				t.Errorf("%s, masked %v: %+v", name, masked, f)
			}
		}
	}
}
