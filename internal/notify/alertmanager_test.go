package notify

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/google/go-cmp/cmp"
)

var alertNow = time.Date(2026, 11, 20, 14, 3, 0, 0, time.UTC)

func newTestAlertmanager(t *testing.T, r *receiver) *Alertmanager {
	t.Helper()
	a, err := NewAlertmanager(AlertmanagerOptions{
		URL: r.URL + "/am/", AllowPrivate: true, Now: func() time.Time { return alertNow },
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func alerts(t *testing.T, q received) (all []alert) {
	t.Helper()
	if err := json.Unmarshal(q.body, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWhatAnAlertmanagerGets(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	if _, err := newTestAlertmanager(t, r).Send(
		t.Context(), Compose(office, someDelivery(deadletter.NoticeOpened)),
	); err != nil {
		t.Fatal(err)
	}
	q := r.receivedRequests()[0]
	if q.path != "POST /am/api/v2/alerts" {
		t.Errorf("got %s", q.path)
	}
	all := alerts(t, q)
	want := alert{
		Labels: map[string]string{
			"alertname": "DeadLetters", "severity": "page", "queue": "email-queue", "vhost": "/", "broker": "main",
			"group": "G-418",
		},
		Annotations: map[string]string{
			"summary":     `312 letters dead in email-queue: template "welcome_v3" not found`,
			"description": "TemplateError: template \"welcome_v3\" not found\n  at render\nreason: rejected\ntype: acme.notify.v1.EmailRequested\nletters: 312\nwaiting: 4\nsince: 2026-11-20 13:58 UTC\nlast: 2026-11-20 14:02 UTC\nowner: lena",
		},
		StartsAt:     time.Date(2026, 11, 20, 13, 58, 0, 0, time.UTC),
		EndsAt:       alertNow.Add(alertHold),
		GeneratorURL: "https://dlo.example.com/groups/G-418",
	}
	if d := cmp.Diff(want, all[0]); d != "" {
		t.Error(d)
	}
	if len(all) != 3 || !all[1].EndsAt.Equal(alertNow) || !all[2].EndsAt.Equal(alertNow) ||
		all[1].Labels["severity"] != "notify" || all[2].Labels["severity"] != "digest" {
		t.Errorf("the alerts of other severities are %+v", all[1:])
	}
}

func TestTheEndOfAlerts(t *testing.T) {
	t.Parallel()
	told := deadletter.Delivery{
		Notice: deadletter.Notice{
			ID: 3, Kind: deadletter.NoticeBreaker, Key: "breaker:sms", Severity: deadletter.SeverityNotify,
			Text: "held back", At: alertNow,
		},
	}
	for _, c := range []struct {
		name string
		d    deadletter.Delivery
		ends []time.Duration // time until each alert ends
	}{
		{"open", someDelivery(deadletter.NoticeUpdated), []time.Duration{alertHold, 0, 0}},
		{"resolved, whatever its severity was", someDelivery(deadletter.NoticeResolved), []time.Duration{0, 0, 0}},
		{"told once", told, []time.Duration{alertTold}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := Compose(office, c.d)
			var ends []time.Duration
			for _, a := range alertsOf(&m, alertNow) {
				ends = append(ends, a.EndsAt.Sub(alertNow))
				if a.EndsAt.Before(a.StartsAt) {
					t.Errorf("it ends before it starts: %+v", a)
				}
			}
			if d := cmp.Diff(c.ends, ends); d != "" {
				t.Error(d)
			}
		})
	}
	m := Compose(office, told)
	if got := alertsOf(&m, alertNow)[0].Labels["cause"]; got != m.Key {
		t.Errorf("two causes without a group are one alert: %q", got)
	}
}

func TestOpenAlertsAreRepeated(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	var open []Message
	for i := range 250 {
		d := someDelivery(deadletter.NoticeOpened)
		d.Group.ID = deadletter.GroupID(i)
		open = append(open, Compose(office, d))
	}
	open = append(open, Compose(office, someDelivery(deadletter.NoticeResolved)))
	if err := newTestAlertmanager(t, r).Repeat(t.Context(), open); err != nil {
		t.Fatal(err)
	}
	groups := map[string]bool{}
	for _, q := range r.receivedRequests() {
		for _, a := range alerts(t, q) {
			if a.EndsAt.After(alertNow) {
				groups[a.Labels["group"]] = true
			}
		}
	}
	if len(groups) != 250 {
		t.Errorf("%d groups are open", len(groups))
	}
	if err := newTestAlertmanager(t, r).Repeat(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestWhatAnAlertmanagerAnswers(t *testing.T) {
	t.Parallel()
	for status, permanent := range map[int]bool{400: true, 404: true, 401: true, 429: false, 500: false, 503: false} {
		r := newReceiver(t, respondWith(status, ""))
		if _, err := newTestAlertmanager(t, r).Send(
			t.Context(), Message{},
		); err == nil || errors.Is(err, ErrPermanent) != permanent {
			t.Errorf("%d: got %v", status, err)
		}
	}
}

func TestHostileTextsAreLabelsAndNoMore(t *testing.T) {
	t.Parallel()
	for _, m := range hostileMessages() {
		for _, a := range alertsOf(&m, alertNow) {
			if len(a.Labels) > 6 || a.Labels["alertname"] != "DeadLetters" {
				t.Errorf("labels %v", a.Labels)
			}
			for _, v := range a.Labels {
				isVisible(t, v, "")
			}
			for _, v := range a.Annotations {
				isVisible(t, v, "\n\t")
			}
		}
	}
}
