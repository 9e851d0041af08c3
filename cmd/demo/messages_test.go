package main

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// sample returns a message of the kind k. It also returns the delivery that a consumer of its queue
// would get.
func sample(t testing.TB, types schemas, n int, k kind) (message, amqp.Delivery) {
	t.Helper()
	m, err := samples{types, func() time.Time { return time.Unix(1795000000, 0) }}.message(n, k)
	if err != nil {
		t.Fatal(err)
	}
	p := m.publishing
	return m, amqp.Delivery{Headers: p.Headers, ContentType: p.ContentType, Type: p.Type, Body: p.Body}
}

func mustLoad(t testing.TB) schemas {
	t.Helper()
	types, err := loadSchemas()
	if err != nil {
		t.Fatal(err)
	}
	return types
}

func TestEverySampleDecodesByItsSchema(t *testing.T) {
	t.Parallel()
	types := mustLoad(t)
	for k, want := range map[kind]string{
		registered: customerRegistered, registeredBadMail: customerRegistered, registeredLongSMS: customerRegistered,
		registeredTenant: customerRegistered,
		mail:             emailRequested, mailBadTemplate: emailRequested, mailHostile: emailRequested,
		sms:        smsRequested,
		smsTooLong: smsRequested, smsFarTooLong: smsRequested,
	} {
		for n := range len(customers) {
			m, _ := sample(t, types, n, k)
			body := m.publishing.Body
			if want == smsRequested {
				var err error
				if body, err = base64.StdEncoding.DecodeString(string(body)); err != nil {
					t.Fatalf("kind %d, message %d: %v", k, n, err)
				}
			}
			f, err := types.decode(want, body)
			if err != nil {
				t.Fatalf("kind %d, message %d: %v", k, n, err)
			}
			if len(f.m.GetUnknown()) > 0 || f.number("tenant_id") == 0 {
				t.Errorf("kind %d, message %d: %v", k, n, f.m)
			}
		}
	}
}

func TestTheHostileSampleIsHostile(t *testing.T) {
	t.Parallel()
	m, _ := sample(t, mustLoad(t), 3, mailHostile)
	if !strings.Contains(string(m.publishing.Body), "<script>") ||
		!strings.Contains(m.publishing.Headers["x-campaign"].(string), "onmouseover") {
		t.Errorf("%q %v", m.publishing.Body, m.publishing.Headers)
	}
}

// queuesOf returns the queues to which the broker routes a message.
func queuesOf(m message) []string {
	switch {
	case m.exchange == eventsExchange:
		return queues
	case m.key == mailKey:
		return []string{emailQueue}
	}
	return []string{smsQueue}
}

func TestTheBurstMakesSixtyLettersAndTheFixLeavesFour(t *testing.T) {
	t.Parallel()
	types := mustLoad(t)
	before, after := map[string]int{}, map[string]int{}
	last := kind(0)
	for n, k := range burst() {
		m, d := sample(t, types, n, k)
		last = k
		for _, q := range queuesOf(m) {
			if _, refusal := workers(types)[q](d, false); refusal != "" {
				before[q]++
			}
			if _, refusal := workers(types)[q](d, true); refusal != "" {
				after[q]++
			}
		}
	}
	if before[emailQueue]+before[smsQueue] != 60 || before[billingQueue] != 0 {
		t.Errorf("before the fix: %v", before)
	}
	if after[emailQueue] != 3 || after[smsQueue] != 1 || after[billingQueue] != 0 {
		t.Errorf("after the fix: %v", after)
	}
	if last != smsFarTooLong { // otherwise a requeue of the oldest letters would stop because of it
		t.Errorf("the last of the burst is of kind %d", last)
	}
}

func TestEachFifthMessageOfTheTrickleFails(t *testing.T) {
	t.Parallel()
	types := mustLoad(t)
	for n := range 50 {
		m, d := sample(t, types, n, trickle(n))
		failed := 0
		for _, q := range queuesOf(m) {
			if _, refusal := workers(types)[q](d, false); refusal != "" {
				failed++
			}
		}
		if (failed > 0) != (n%5 == 4) {
			t.Errorf("message %d of kind %d fails in %d queues", n, trickle(n), failed)
		}
	}
}
