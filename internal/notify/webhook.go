package notify

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// WebhookOptions contains the settings of a webhook channel.
type WebhookOptions struct {
	URL          string
	Secret       string // whsec_ followed by 24 to 64 bytes in base64
	AllowPrivate bool
	Now          func() time.Time // clock; nil = time.Now
}

// Webhook posts messages as JSON that is signed as in Standard Webhooks (standardwebhooks.com).
type Webhook struct {
	client *client
	signer *standardwebhooks.Webhook
	now    func() time.Time
}

// NewWebhook checks the options and returns a Webhook. Its errors never contain the secret.
func NewWebhook(o WebhookOptions) (*Webhook, error) {
	encoded, ok := strings.CutPrefix(strings.TrimSpace(o.Secret), "whsec_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(key) < 24 || len(key) > 64 {
		return nil, errors.New(
			`the secret has to be whsec_ and 24 to 64 bytes in base64; make one with: echo "whsec_$(openssl rand -base64 32)"`,
		)
	}
	signer, err := standardwebhooks.NewWebhookRaw(key)
	if err != nil {
		return nil, errors.New("the secret is missing or not valid")
	}
	c, err := newClient(o.URL, o.AllowPrivate)
	if err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Webhook{client: c, signer: signer, now: o.Now}, nil
}

// Channel returns the settings of a webhook channel. Each notice is sent separately.
func (w *Webhook) Channel() Channel { return Channel{Sender: w} }

// Send posts a message. Any 2xx status confirms the message. The status 410 means that the receiver
// wants no more messages. After any other status, the message is sent again, because a receiver may
// also respond with 404 or 401 while it is being deployed.
func (w *Webhook) Send(ctx context.Context, m Message) (string, error) {
	body, err := json.Marshal(webhookBody(&m))
	if err != nil {
		return "", permanentError("the message cannot be written: %v", err)
	}
	now := w.now()
	signature, err := w.signer.Sign(m.ID, now, body)
	if err != nil {
		return "", permanentError("the message cannot be signed")
	}
	header := http.Header{}
	header.Set(standardwebhooks.HeaderWebhookID, m.ID)
	header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	a, err := w.client.post(ctx, header, body)
	if err != nil {
		return "", err
	}
	return a.text(), a.err(http.StatusGone)
}

// webhookMessage is the body that is posted to a webhook (docs/notifications.md). Fields may be
// added, but a field must never change.
type webhookMessage struct {
	// "notice." and the kind, e.g. notice.opened; for machine notices, only the kind
	Type      string      `json:"type"`
	Timestamp string      `json:"timestamp"` // time of the cause
	Data      webhookData `json:"data"`
}

type webhookData struct {
	ID       string            `json:"id"`
	Key      string            `json:"key"`
	Event    string            `json:"event"`
	Severity string            `json:"severity"`
	Title    string            `json:"title"`
	Text     string            `json:"text,omitempty"`
	URL      string            `json:"url"`
	Since    string            `json:"since,omitempty"`
	Count    *int              `json:"count,omitempty"`
	Last     string            `json:"last,omitempty"`
	Facts    map[string]string `json:"facts"`
	Lines    []webhookLine     `json:"lines,omitempty"`

	Operation *webhookOperation `json:"operation,omitempty"`
}

type webhookLine struct {
	Title string `json:"title"`
	Text  string `json:"text,omitempty"`
	URL   string `json:"url"`
	Group string `json:"group,omitempty"`
	Count *int   `json:"count,omitempty"`
	Last  string `json:"last,omitempty"`
}

type webhookOperation struct {
	ID       string                    `json:"id"`
	Action   deadletter.Verb           `json:"action"`
	State    deadletter.OperationState `json:"state"`
	By       string                    `json:"by"`
	Asked    int                       `json:"asked"`
	Done     int                       `json:"done"`
	Counts   map[deadletter.Result]int `json:"counts"`
	Started  string                    `json:"created_at"`
	Finished string                    `json:"finished_at,omitempty"`
}

func webhookBody(m *Message) webhookMessage {
	w := webhookMessage{Type: webhookType(m.Kind), Timestamp: m.At.UTC().Format(time.RFC3339), Data: webhookData{
		ID:       m.ID,
		Key:      boundKey(m.Key),
		Event:    string(m.Event),
		Severity: string(m.Severity),
		Title:    line(m.Title, titleBytes),
		Text:     lines(m.Text, textBytes),
		URL:      m.URL,
		Facts:    map[string]string{},
	}}
	w.Data.Since, w.Data.Count, w.Data.Last = rfc3339(m.Since), m.Count, rfc3339(m.Last)
	for _, f := range m.Facts {
		if f.Value != "" {
			w.Data.Facts[line(f.Name, 50)] = line(f.Value, factBytes)
		}
	}
	for _, l := range m.Lines {
		w.Data.Lines = append(w.Data.Lines, webhookLine{
			Title: line(l.Title, titleBytes),
			Text:  line(l.Text, factBytes),
			URL:   l.URL,
			Group: l.Group,
			Count: l.Count,
			Last:  rfc3339(l.Last),
		})
	}
	if op := m.Operation; op != nil {
		w.Data.Operation = &webhookOperation{
			ID:       op.ID.String(),
			Action:   op.Action,
			State:    op.State,
			By:       line(op.By, factBytes),
			Asked:    op.Total,
			Counts:   map[deadletter.Result]int{},
			Started:  rfc3339(op.CreatedAt),
			Finished: rfc3339(op.FinishedAt),
		}
		for result, n := range op.Counts {
			if n > 0 {
				w.Data.Operation.Counts[result] = n
			}
			if result.Acted() {
				w.Data.Operation.Done += n
			}
		}
	}
	return w
}

func webhookType(k deadletter.NoticeKind) string {
	if k.ForMachines() {
		return string(k)
	}
	return "notice." + string(k)
}

func rfc3339(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
