package notify

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// AlertmanagerOptions contains the settings of an Alertmanager channel.
type AlertmanagerOptions struct {
	URL          string // address of the Alertmanager, without /api
	AllowPrivate bool
	Now          func() time.Time // clock; nil = time.Now
}

// Alertmanager sends one alert per group through API v2 of an Alertmanager.
//
// An Alertmanager ends an alert when its endsAt is reached, and forgets all alerts when it
// restarts. A dead letter does not disappear in these cases, nor while dlo is not running.
// Therefore each alert lasts a week, and the caller must call Repeat every few minutes with all
// open messages. Repeat extends these alerts to a week from now, and restores alerts that the
// Alertmanager has forgotten. No later message ends the alert of a message with the event Told, so
// this alert ends after an hour.
type Alertmanager struct {
	client *client
	now    func() time.Time
}

const (
	alertHold = 7 * 24 * time.Hour
	alertTold = time.Hour
)

// NewAlertmanager checks the options and returns an Alertmanager.
func NewAlertmanager(o AlertmanagerOptions) (*Alertmanager, error) {
	c, err := newClient(o.URL, o.AllowPrivate)
	if err != nil {
		return nil, err
	}
	u, _ := url.Parse(o.URL) // newClient has checked that the URL is valid
	c.url = u.JoinPath("api", "v2", "alerts").String()
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Alertmanager{client: c, now: o.Now}, nil
}

// Channel returns the settings of an Alertmanager channel. Messages are not combined, because an
// Alertmanager itself groups alerts.
func (a *Alertmanager) Channel() Channel { return Channel{Sender: a} }

// Send starts, renews or ends the alert in Alertmanager that belongs to a message.
func (a *Alertmanager) Send(ctx context.Context, m Message) (string, error) {
	return a.post(ctx, alertsOf(&m, a.now()))
}

// Repeat renews the alerts of all open messages. It skips messages that resolve an incident.
func (a *Alertmanager) Repeat(ctx context.Context, open []Message) error {
	now := a.now()
	var all []alert
	for i := range open {
		if open[i].Event == Fires || open[i].Event == Updates {
			all = append(all, alertsOf(&open[i], now)...)
		}
	}
	_, err := a.post(ctx, all)
	return err
}

const alertsAtOnce = 300

// post sends alerts in batches. If an alert is sent twice, this does no harm.
func (a *Alertmanager) post(ctx context.Context, alerts []alert) (answer string, err error) {
	for some := range slices.Chunk(alerts, alertsAtOnce) {
		got, err := a.client.postJSON(ctx, some)
		if err == nil {
			err = got.err(400, 401, 403, 404, 405, 410, 413)
		}
		if err != nil {
			return "", err
		}
		answer = got.text()
	}
	return answer, nil
}

type alert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

// alertsOf returns the alerts of a message. There is one alert per severity, and at most one of
// them is still active. This is necessary because an Alertmanager identifies an alert by its
// labels, and people can change the severity of a group. The alert with the earlier severity then
// ends. A message that resolves the incident ends the alerts of all severities. Alertmanager
// notifies nobody about the end of an alert that never started.
func alertsOf(m *Message, now time.Time) []alert {
	now = now.UTC().Truncate(time.Millisecond)
	since := m.Since
	if since.IsZero() || since.After(now) {
		since = m.At
	}
	if since.IsZero() || since.After(now) {
		since = now
	}
	if m.Event == Told {
		return []alert{alertOf(m, m.Severity, since, now.Add(alertTold))}
	}
	var all []alert
	for _, s := range alertSeverities {
		ends := now
		if s == m.Severity && m.Event != Resolves {
			ends = now.Add(alertHold)
		}
		all = append(all, alertOf(m, s, since, ends))
	}
	return append(all, endsOf(m, since, now)...)
}

var alertSeverities = []deadletter.Severity{
	deadletter.SeverityPage, deadletter.SeverityNotify, deadletter.SeverityDigest,
}

// endsOf returns alerts that end earlier alerts of an incident. The alert of an incident names the
// first group of the incident. If this group leaves the incident, a new alert names the next group.
// The alert that names the earlier group must then end.
func endsOf(m *Message, since, now time.Time) []alert {
	var all []alert
	for _, c := range m.Left {
		if c.Group == m.Fact(factGroup) {
			continue
		}
		was := Message{
			Title: m.Title,
			URL:   m.URL,
			Facts: []Fact{{factBroker, c.Broker}, {factVHost, c.VHost}, {factQueue, c.Queue}, {factGroup, c.Group}},
		}
		for _, s := range alertSeverities {
			all = append(all, alertOf(&was, s, since, now))
		}
	}
	return all
}

func alertOf(m *Message, s deadletter.Severity, since, ends time.Time) alert {
	a := alert{
		Labels:       map[string]string{"alertname": "DeadLetters", "severity": string(s)},
		Annotations:  map[string]string{"summary": line(m.Title, titleBytes)},
		StartsAt:     since.UTC().Truncate(time.Millisecond),
		EndsAt:       ends,
		GeneratorURL: m.URL,
	}
	for _, name := range []string{factBroker, factVHost, factQueue, factGroup} {
		if v := m.Fact(name); v != "" {
			a.Labels[name] = line(v, factBytes)
		}
	}
	if m.Fact(factGroup) == "" {
		a.Labels["cause"] = boundKey(m.Key)
	}
	var text []string
	if m.Text != "" {
		text = append(text, lines(m.Text, textBytes))
	}
	for _, f := range m.Facts {
		if f.Value != "" && a.Labels[f.Name] == "" {
			text = append(text, line(f.Name, 50)+": "+line(f.Value, factBytes))
		}
	}
	for _, l := range m.Lines[:min(len(m.Lines), digestLines)] {
		text = append(text, line(l.Title+": "+l.Text, titleBytes+factBytes))
	}
	if len(text) > 0 {
		a.Annotations["description"] = strings.Join(text, "\n")
	}
	return a
}
