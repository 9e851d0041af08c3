package notify

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// PagerDutyOptions contains the settings of a PagerDuty channel.
type PagerDutyOptions struct {
	Key          string // integration key of the Events API v2; a secret
	URL          string // address to which events are sent; "" = https://events.pagerduty.com/v2/enqueue
	AllowPrivate bool
}

// PagerDuty opens, updates and resolves incidents through the Events API v2 of PagerDuty. There is
// one incident per key.
type PagerDuty struct {
	client *client
	key    string
}

// NewPagerDuty checks the options and returns a PagerDuty.
func NewPagerDuty(o PagerDutyOptions) (*PagerDuty, error) {
	if o.Key == "" || strings.ContainsFunc(o.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the integration key is missing")
	}
	c, err := newClient(cmp.Or(o.URL, "https://events.pagerduty.com/v2/enqueue"), o.AllowPrivate)
	if err != nil {
		return nil, err
	}
	return &PagerDuty{client: c, key: o.Key}, nil
}

// Channel returns the settings of a PagerDuty channel.
func (p *PagerDuty) Channel() Channel { return Channel{Sender: p} }

// Send sends an event. The status 202 means that PagerDuty has accepted the event. 400 means that
// the event or its key is not valid. 429 and 5xx mean that the event must be sent again
// (developer.pagerduty.com, Events API v2).
func (p *PagerDuty) Send(ctx context.Context, m Message) (string, error) {
	a, err := p.client.postJSON(ctx, pagerDutyEvent(p.key, &m))
	if err != nil {
		return "", err
	}
	return a.text(), a.err(400, 401, 403, 404, 405, 410, 413)
}

type pagerEvent struct {
	RoutingKey string        `json:"routing_key"`
	Action     string        `json:"event_action"`
	DedupKey   string        `json:"dedup_key"`
	Payload    *pagerPayload `json:"payload,omitempty"`
	Client     string        `json:"client,omitempty"`
	ClientURL  string        `json:"client_url,omitempty"`
	Links      []pagerLink   `json:"links,omitempty"`
}

type pagerPayload struct {
	Summary   string            `json:"summary"`
	Source    string            `json:"source"`
	Severity  string            `json:"severity"`
	Timestamp string            `json:"timestamp,omitempty"`
	Component string            `json:"component,omitempty"`
	Group     string            `json:"group,omitempty"`
	Class     string            `json:"class,omitempty"`
	Details   map[string]string `json:"custom_details,omitempty"`
}

type pagerLink struct {
	Href string `json:"href"`
	Text string `json:"text"`
}

// pagerDutyEvent converts a message to an event of PagerDuty. PagerDuty shows all texts as plain
// text. Because of dlo's limits, the event is always much smaller than 512 KB, and its summary is
// shorter than 1,024 characters.
func pagerDutyEvent(key string, m *Message) pagerEvent {
	e := pagerEvent{RoutingKey: key, Action: "trigger", DedupKey: boundKey(m.Key)}
	if m.Event == Resolves {
		e.Action = "resolve"
	}
	p := &pagerPayload{
		Summary:   cmp.Or(line(m.Title, titleBytes), "Dead Letter Office"),
		Source:    cmp.Or(line(m.Fact(factQueue), factBytes), "Dead Letter Office"),
		Severity:  pagerSeverity(m.Severity),
		Component: line(m.Fact(factQueue), factBytes),
		Group:     line(m.Fact(factBroker), factBytes),
		Class:     line(m.Fact(factReason), factBytes),
		Details:   map[string]string{},
	}
	if !m.At.IsZero() {
		p.Timestamp = m.At.UTC().Format(time.RFC3339)
	}
	for _, f := range m.Facts {
		if f.Value != "" {
			p.Details[line(f.Name, 50)] = line(f.Value, factBytes)
		}
	}
	if m.Text != "" {
		p.Details["text"] = lines(m.Text, textBytes)
	}
	for i, l := range m.Lines[:min(len(m.Lines), digestLines)] {
		p.Details["line "+numberText(i+1)] = line(l.Title+": "+l.Text, titleBytes+factBytes)
	}
	e.Payload = p
	if e.Action == "trigger" {
		e.Client, e.ClientURL = "Dead Letter Office", m.URL
		if m.URL != "" {
			e.Links = []pagerLink{{Href: m.URL, Text: linkName(m.URL)}}
		}
	}
	return e
}

func pagerSeverity(s deadletter.Severity) string {
	switch s {
	case deadletter.SeverityPage:
		return "critical"
	case deadletter.SeverityNotify:
		return "warning"
	}
	return "info"
}
