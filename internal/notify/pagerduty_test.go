package notify

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/google/go-cmp/cmp"
)

func newTestPager(t *testing.T, r *receiver) *PagerDuty {
	t.Helper()
	p, err := NewPagerDuty(PagerDutyOptions{Key: canary, URL: r.URL + "/v2/enqueue", AllowPrivate: true})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestWhatAPagerGets(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, respondWith(202, `{"status":"success"}`), respondWith(202, `{}`))
	p := newTestPager(t, r)
	m := Compose(office, someDelivery(deadletter.NoticeOpened))
	end := Compose(office, someDelivery(deadletter.NoticeResolved))
	for _, m := range []Message{m, end} {
		if _, err := p.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	wanted := `{"routing_key": "` + canary + `", "event_action": "trigger", "dedup_key": "` + m.Key +
		`", "client": "Dead Letter Office", "client_url": "https://dlo.example.com/groups/G-418",
	"links": [{"href": "https://dlo.example.com/groups/G-418", "text": "Open G-418"}],
	"payload": {"summary": "312 letters dead in email-queue: template \"welcome_v3\" not found", "source": "email-queue", "severity": "critical", "timestamp": "2026-11-20T14:02:11Z", "component": "email-queue", "group": "main",
		"class": "rejected", "custom_details": {"group": "G-418", "queue": "email-queue", "broker": "main", "vhost": "/", "reason": "rejected", "type": "acme.notify.v1.EmailRequested", "letters": "312", "waiting": "4",
		"since": "2026-11-20 13:58 UTC", "last": "2026-11-20 14:02 UTC", "owner": "lena", "text": "TemplateError: template \"welcome_v3\" not found\n  at render"}}}`
	q := r.receivedRequests()
	if d := cmp.Diff(decoded(t, wanted), decoded(t, string(q[0].body))); d != "" || q[0].path != "POST /v2/enqueue" {
		t.Errorf("%s: %s", q[0].path, d)
	}
	var resolve pagerEvent
	if err := json.Unmarshal(q[1].body, &resolve); err != nil {
		t.Fatal(err)
	}
	if resolve.Action != "resolve" || resolve.DedupKey != m.Key || resolve.RoutingKey != canary {
		t.Errorf("got %+v", resolve)
	}
}

// decoded parses JSON, so that two texts can be compared.
func decoded(t *testing.T, s string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSeveritiesOfAPager(t *testing.T) {
	t.Parallel()
	for s, want := range map[deadletter.Severity]string{
		deadletter.SeverityPage: "critical", deadletter.SeverityNotify: "warning", deadletter.SeverityDigest: "info",
		"": "info",
	} {
		if got := pagerDutyEvent("k", &Message{Severity: s}).Payload.Severity; got != want {
			t.Errorf("%s: got %s, want %s", s, got, want)
		}
	}
}

func TestWhatAPagerAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		status    int
		permanent bool
		err       string
	}{
		{"accepted", 202, false, ""},
		{"a key that is none", 400, true, "the receiver answered 400 Bad Request"},
		{"too many", 429, false, "the receiver answered 429 Too Many Requests"},
		{"broken", 503, false, "the receiver answered 503 Service Unavailable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t, respondWith(c.status, `{"errors":["`+canary+`"]}`))
			_, err := newTestPager(t, r).Send(t.Context(), Message{})
			if c.err == "" && err == nil {
				return
			}
			if err == nil || err.Error() != c.err || errors.Is(err, ErrPermanent) != c.permanent {
				t.Errorf("got %v, want %q", err, c.err)
			}
		})
	}
}

func TestAKeyThatIsNoneIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", canary + "\n", canary + " x", canary + "ü"} {
		_, err := NewPagerDuty(PagerDutyOptions{Key: key})
		if err == nil {
			t.Fatalf("%q is taken", key)
		}
		noSecret(t, err.Error())
	}
	if p, err := NewPagerDuty(PagerDutyOptions{Key: canary}); err != nil || p.client.url != "https://events.pagerduty.com/v2/enqueue" {
		t.Errorf("got %v, %v", p, err)
	}
}

func TestHostileTextsFitAPager(t *testing.T) {
	t.Parallel()
	for _, m := range hostileMessages() {
		body, err := json.Marshal(pagerDutyEvent("key", &m))
		if err != nil {
			t.Fatal(err)
		}
		var e pagerEvent
		if err := json.Unmarshal(body, &e); err != nil {
			t.Fatal(err)
		}
		if len(body) > 100_000 || utf8.RuneCountInString(e.Payload.Summary) > 1024 || len(e.DedupKey) > 255 ||
			e.Payload.Summary == "" || e.Payload.Source == "" {
			t.Errorf("%d bytes, summary %d, key %d", len(body), len(e.Payload.Summary), len(e.DedupKey))
		}
		if e.Action != "trigger" || e.RoutingKey != "key" {
			t.Errorf("a text became a key: %+v", e)
		}
		isVisible(t, e.Payload.Summary+e.Payload.Source+e.Payload.Component+e.Payload.Group+e.Payload.Class, "")
		for k, v := range e.Payload.Details {
			isVisible(t, k, "")
			isVisible(t, v, "\n\t")
		}
		if strings.ContainsAny(string(body), "<>") {
			t.Error("a tag is not escaped")
		}
	}
}
