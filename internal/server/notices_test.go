package server

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/notify"
	"github.com/deadletteroffice/dlo/internal/survey"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// valid contains a valid value for each field of a channel, by the name of the field. The addresses
// are private, and no program listens there.
var valid = map[string]any{
	"URL":      "http://127.0.0.1:1",
	"Secret":   "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32)),
	"Key":      "key",
	"Host":     "127.0.0.1",
	"Port":     1,
	"User":     "dlo",
	"Password": "secret",
	"From":     "dlo@example.com",
	"To":       []string{"team@example.com"},
}

// TestEveryKindOfChannelHasASender checks that a sender can be created for every kind of channel in
// a configuration. The channels of the test have private addresses. They set allow_private, so
// these addresses must be accepted.
func TestEveryKindOfChannelHasASender(t *testing.T) {
	t.Parallel()
	kinds, senders := 0, map[reflect.Type]string{}
	for field := range reflect.TypeFor[config.Channel]().Fields() {
		if field.Type.Kind() != reflect.Pointer {
			continue
		}
		kinds++
		kind := reflect.New(field.Type.Elem())
		for option := range field.Type.Elem().Fields() {
			value, ok := valid[option.Name]
			if !ok {
				t.Fatalf("no valid value of %s.%s is known here", field.Name, option.Name)
			}
			kind.Elem().FieldByIndex(option.Index).Set(reflect.ValueOf(value))
		}
		c := config.Channel{Name: "it", AllowPrivate: true}
		reflect.ValueOf(&c).Elem().FieldByIndex(field.Index).Set(kind)
		channels, err := channelsOf([]config.Channel{c})
		if err != nil {
			t.Errorf("%s: %v", field.Name, err)
			continue
		}
		if _, err := channels["it"].Sender.Send(
			t.Context(), notify.Message{},
		); err == nil || errors.Is(err, notify.ErrPermanent) {
			t.Errorf("%s does not know of allow_private: %v", field.Name, err)
		}
		senders[reflect.TypeOf(channels["it"].Sender)] = field.Name
	}
	if kinds == 0 || len(senders) != kinds {
		t.Errorf("%d kinds of channels have the senders %v, not one each", kinds, senders)
	}
	if _, err := channelsOf([]config.Channel{{Name: "odd"}}); err == nil ||
		!strings.Contains(err.Error(), "channel odd: dlo has no sender for a channel of this kind") {
		t.Errorf("a channel of no kind: %v", err)
	}
}

// TestNothingMaskedIsTold checks that masks apply to everything that a delivery says about groups.
func TestNothingMaskedIsTold(t *testing.T) {
	t.Parallel()
	const secret = "card 4111"
	group := func() deadletter.GroupRow { return deadletter.GroupRow{ID: 1, Title: secret, Error: secret} }
	one := group()
	d := deadletter.Delivery{
		Notice:   deadletter.Notice{Kind: deadletter.NoticeJoined, Key: "G-1/1", Group: 1, Text: secret},
		Group:    &one,
		Incident: []deadletter.GroupRow{group(), group()},
		Left:     []deadletter.GroupRow{group()},
	}
	box := outbox{mask: func(_, text string) (string, bool) { return strings.ReplaceAll(text, secret, "hidden"), true }}
	alone := d
	alone.Incident = nil
	for _, d := range []deadletter.Delivery{
		d,
		alone,
		{Digest: &deadletter.Digest{Lines: []deadletter.DigestLine{{Group: group()}}}},
	} {
		box.maskTexts(&d)
		if m := notify.Compose(notify.Office{}, d); strings.Contains(fmt.Sprintf("%+v", m), secret) {
			t.Errorf("%+v", m)
		}
	}
}

// TestMachinesAreTheWebhooks checks that events for machines, such as the end of an operation, are
// sent to the webhooks of the configuration, and not to channels for people.
func TestMachinesAreTheWebhooks(t *testing.T) {
	t.Parallel()
	l := openLedger(t)
	l.cfg.Channels = append(l.cfg.Channels, config.Channel{
		Name: "hook", AllowPrivate: true,
		Webhook: &config.Webhook{URL: "http://127.0.0.1:1", Secret: valid["Secret"].(string)},
	})
	l.useChannels(l.cfg, map[string]notify.Channel{})
	ids := l.die("main", "sms", 1, 1)
	l.call(deadletter.WayAPI, "POST", "/operations", `{"action":"hold","ids":["`+string(ids[0])+`"]}`)
	l.step()
	for channel, want := range map[string]int{"hook": 1, "team": 0} {
		if due, err := l.store.Due(
			t.Context(), channel, 10,
		); err != nil || len(due) != want || want > 0 && due[0].Notice.Kind != deadletter.EventOperationFinished {
			t.Errorf("%s: %+v, %v", channel, due, err)
		}
	}
}

// TestNoPathProblemEndsUnseen checks faults in a vhost that dlo has not read yet, for example after
// a restart. People must not get a notice that such a fault is over.
func TestNoPathProblemEndsUnseen(t *testing.T) {
	t.Parallel()
	s := &Server{survey: survey.New([]survey.Place{{Broker: "main", VHost: "shop"}})}
	fault := pathProblem([]topology.Finding{
		{
			Kind: topology.NoExchange, Broker: "main", VHost: "shop", Queue: "orders",
			Title: "orders has no dead-letter exchange",
		},
	})
	if !s.unknownPaths()[fault.Key()] {
		t.Errorf("%q may be reported as over", fault.Key())
	}
	fault.VHost = "other" // dlo no longer looks at this vhost
	if s.unknownPaths()[fault.Key()] {
		t.Errorf("%q is never reported as over", fault.Key())
	}
}

// TestOneCauseIsToldOnce checks that a fault of several queues is one fault in notices and metrics.
func TestOneCauseIsToldOnce(t *testing.T) {
	t.Parallel()
	s := &Server{survey: survey.New([]survey.Place{{
		Broker: "main", VHost: "shop",
		Look: func(context.Context) (topology.Snapshot, error) {
			look := topology.Snapshot{Broker: "main", VHost: "shop", ReadAt: time.Now()}
			for _, queue := range []string{"a", "b", "c"} {
				look.Queues = append(look.Queues, topology.Queue{Name: queue, Durable: true})
			}
			return look, nil
		},
	}})}
	go s.survey.Run(t.Context())
	s.survey.Refresh(t.Context(), "main", "shop")
	told := s.pathProblems()
	if want := "a has no dead-letter exchange; the same is true of 2 more: b, c."; len(told) != 1 ||
		told[0].Title != want {
		t.Errorf("%+v, want %q", told, want)
	}
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(pathCollector{s})
	families, err := metrics.Gather()
	if err != nil || len(families) != 2 || len(families[0].Metric) != 1 || families[0].Metric[0].Gauge.GetValue() != 1 {
		t.Errorf("metrics %v, %v", families, err)
	}
}
