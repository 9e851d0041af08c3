package notify

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const hookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func newTestWebhook(t *testing.T, r *receiver, now func() time.Time) *Webhook {
	t.Helper()
	w, err := NewWebhook(WebhookOptions{URL: r.URL + "/hook", Secret: hookSecret, AllowPrivate: true, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestWhatAWebhookGets(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	m := Compose(office, someDelivery(deadletter.NoticeOpened))
	w := newTestWebhook(t, r, nil)
	for range 2 {
		if _, err := w.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	verifier, err := standardwebhooks.NewWebhook(hookSecret)
	if err != nil {
		t.Fatal(err)
	}
	q := r.receivedRequests()
	for _, q := range q {
		if err := verifier.Verify(q.body, q.header); err != nil {
			t.Error(err)
		}
		if q.header.Get("webhook-id") != m.ID || q.header.Get("Content-Type") != "application/json" {
			t.Errorf("headers %v", q.header)
		}
	}
	wanted := `{"type": "notice.opened", "timestamp": "2026-11-20T14:02:11Z", "data": {"id": "` + m.ID + `", "key": "` +
		m.Key + `", "event": "fires", "severity": "page",
	"title": "312 letters dead in email-queue: template \"welcome_v3\" not found", "text": "TemplateError: template \"welcome_v3\" not found\n  at render", "url": "https://dlo.example.com/groups/G-418",
	"since": "2026-11-20T13:58:00Z", "count": 312, "last": "2026-11-20T14:02:00Z", "facts": {"group": "G-418", "queue": "email-queue", "broker": "main", "vhost": "/", "reason": "rejected", "type": "acme.notify.v1.EmailRequested", "letters": "312", "waiting": "4",
	"since": "2026-11-20 13:58 UTC", "last": "2026-11-20 14:02 UTC", "owner": "lena"}}}`
	if d := cmp.Diff(decoded(t, wanted), decoded(t, string(q[0].body))); d != "" {
		t.Error(d)
	}
	q[0].body[10] ^= 1
	if verifier.Verify(q[0].body, q[0].header) == nil {
		t.Error("another body passes")
	}
}

// TestTheSignatureIsThatOfTheSpecification checks that a webhook gets the signature from the
// example in the specification of Standard Webhooks.
func TestTheSignatureIsThatOfTheSpecification(t *testing.T) {
	t.Parallel()
	w, err := NewWebhook(WebhookOptions{URL: "https://example.com", Secret: hookSecret})
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.signer.Sign("msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; err != nil || got != want {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestWhatAWebhookAnswers(t *testing.T) {
	t.Parallel()
	for status, permanent := range map[int]bool{
		410: true, 400: false, 401: false, 404: false, 429: false, 500: false, 302: false,
	} {
		r := newReceiver(t, respondWith(status, canary))
		_, err := newTestWebhook(t, r, nil).Send(t.Context(), Message{ID: "1"})
		if err == nil || errors.Is(err, ErrPermanent) != permanent {
			t.Fatalf("%d: got %v", status, err)
		}
		noSecret(t, err.Error())
	}
	for _, status := range []int{200, 201, 202, 204} {
		r := newReceiver(t, func(w http.ResponseWriter) { w.WriteHeader(status) })
		if _, err := newTestWebhook(t, r, nil).Send(t.Context(), Message{ID: "1"}); err != nil {
			t.Errorf("%d: %v", status, err)
		}
	}
}

func TestSecretsThatAreNoneAreNotRepeated(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", canary, "whsec_" + canary, "whsec_MfKQ9r8G", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
		"whsec_" + strings.Repeat("MfKQ9r8G", 20),
	} {
		_, err := NewWebhook(WebhookOptions{URL: "https://example.com", Secret: s})
		if err == nil {
			t.Fatalf("%q is taken", s)
		}
		noSecret(t, err.Error())
		if len(s) > 20 && strings.Contains(err.Error(), strings.TrimPrefix(s, "whsec_")) {
			t.Error("the secret is in the error")
		}
	}
	if _, err := NewWebhook(WebhookOptions{URL: "https://example.com", Secret: hookSecret + "\n"}); err != nil {
		t.Errorf("a secret file ends with a line break: %v", err)
	}
}

// plainHook fails the test if the body for a webhook is not JSON of the expected form. It also
// fails the test if the body contains markup or characters that are not visible.
func plainHook(t *testing.T, m *Message) {
	t.Helper()
	body, err := json.Marshal(webhookBody(m))
	if err != nil {
		t.Fatal(err)
	}
	var got webhookMessage
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(string(body), "<>\u2028\u2029") || len(body) > 300_000 {
		t.Errorf("%d bytes, or markup in %.200q", len(body), body)
	}
	if got.Type != "notice.opened" || got.Data.URL != m.URL || got.Data.Event != string(m.Event) ||
		got.Data.Facts["group"] != "G-418" {
		t.Errorf("a text became something else: %.300q", body)
	}
	isVisible(t, got.Data.Title, "")
	isVisible(t, got.Data.Text, "\n\t")
	for k, v := range got.Data.Facts {
		isVisible(t, k+v, "")
	}
	for _, l := range got.Data.Lines {
		isVisible(t, l.Title+l.Text, "")
	}
}

func TestHostileTextsAreStringsOfAWebhook(t *testing.T) {
	t.Parallel()
	for _, m := range hostileMessages() {
		plainHook(t, &m)
	}
}

func FuzzWebhook(f *testing.F) {
	for _, h := range hostile {
		f.Add(h[:min(len(h), 4096)], "and this")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		m := hostileMessage(a, b)
		plainHook(t, &m)
	})
}

func TestTheManualShowsTheShapeOfAWebhook(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../../docs/notifications.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(manual), "```json\n")
	example, _, _ := strings.Cut(rest, "```")
	var got webhookMessage
	d := json.NewDecoder(strings.NewReader(example))
	d.DisallowUnknownFields()
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.Data.Event != string(Fires) || len(got.Data.Lines) != 1 || len(got.Data.ID) != 32 {
		t.Errorf("got %+v", got)
	}
	for _, k := range []deadletter.NoticeKind{
		deadletter.NoticeOpened, deadletter.NoticeRegressed, deadletter.NoticeJoined, deadletter.NoticeEscalated,
		deadletter.NoticeUpdated, deadletter.NoticeQuiet, deadletter.NoticeResolved, deadletter.NoticeRefused,
		deadletter.NoticeBreaker, deadletter.NoticeDigest,
	} {
		if !strings.Contains(string(manual), "\n| "+string(k)+" |") {
			t.Errorf("the manual does not name the kind %s", k)
		}
	}
	for _, k := range []deadletter.NoticeKind{
		deadletter.EventGroupQuiet, deadletter.EventGroupResolved, deadletter.EventOperationFinished,
	} {
		if !strings.Contains(string(manual), "\n| `"+string(k)+"` |") {
			t.Errorf("the manual does not name the event %s", k)
		}
	}
}
