package deadletter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/google/go-cmp/cmp"
)

const easyNetQType = "EasyNetQ.SystemMessages.Error, EasyNetQ"

func TestUnwrapEasyNetQ(t *testing.T) {
	t.Parallel()
	wrapped := func(message, properties string) []byte {
		return []byte(
			`{"RoutingKey":"k","Exchange":"e","Queue":"q","Exception":"boom","Message":` + message +
				`,"DateTime":"2026-11-20T07:11:12Z","BasicProperties":` + properties + `}`,
		)
	}
	p, body, err := deadletter.UnwrapEasyNetQ(wrapped(`"{\"id\":17}"`,
		`{"ContentType":"application/json","Type":"Acme.OrderMsg, Acme","CorrelationId":"c-1","MessageId":null,"DeliveryMode":2,"Priority":3,"Timestamp":1795158672,"TimestampPresent":true,"Headers":{"x-tenant":"7","n":7,"f":1.5,"list":[1,"a"]}}`))
	want := deadletter.Properties{
		ContentType:   "application/json",
		Type:          "Acme.OrderMsg, Acme",
		CorrelationID: "c-1",
		DeliveryMode:  2,
		Priority:      3,
		Timestamp:     time.Unix(1795158672, 0).UTC(),
		Headers:       deadletter.Table{"x-tenant": "7", "n": int64(7), "f": 1.5, "list": []any{int64(1), "a"}},
	}
	if diff := cmp.Diff(want, p); diff != "" || string(body) != `{"id":17}` || err != nil {
		t.Errorf("%s, %v (-want +got):\n%s", body, err, diff)
	}
	twice := wrapped(`"{\"Message\":\"hello\",\"BasicProperties\":{\"Type\":\"A, B\"}}"`, `{"Type":"`+easyNetQType+`"}`)
	if p, body, err := deadletter.UnwrapEasyNetQ(twice); err != nil || p.Type != "A, B" || string(body) != "hello" {
		t.Errorf("wrapped twice: %q, %+v, %v", body, p, err)
	}
	for _, c := range []struct{ name, message, properties, body, why string }{
		{"base64 of JSON", `"eyJpZCI6MTd9"`, `{"ContentType":"application/json"}`, `{"id":17}`, ""},
		{"base64 of protobuf", `"CAE="`, `{"ContentType":"application/x-protobuf"}`, "\x08\x01", ""},
		{"JSON that could be base64", `"1234"`, `{"ContentType":"application/json"}`, "1234", ""},
		{"text or base64", `"abcd"`, `{}`, "", "may be text or base64"},
		{"bytes that were lost", `"a\ufffdb"`, `{}`, "", "has lost bytes"},
		{"no message", `null`, `{}`, "", "has no Message"},
		{"no properties", `"a b"`, `null`, "", "has no BasicProperties"},
		{
			"a name that is too long", `"a b"`, `{"Type":"` + strings.Repeat("x", 256) + `"}`, "",
			"longer than AMQP allows",
		},
		{"headers without end", `"a b"`, `{"Headers":{"x":"` + strings.Repeat("x", 1<<20) + `"}}`, "", "above 1 MiB"},
		{"headers that are a list", `"a b"`, `{"Headers":[1]}`, "", "not an object"},
		{"no headers", `"a b"`, `{"Headers":null}`, "a b", ""},
		{"a number for a message", `17`, `{}`, "", "not the JSON"},
	} {
		_, body, err := deadletter.UnwrapEasyNetQ(wrapped(c.message, c.properties))
		if c.why == "" && (err != nil || string(body) != c.body) ||
			c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%s: %q, %v", c.name, body, err)
		}
	}
}
