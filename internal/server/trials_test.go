package server

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
)

// TestWhereNoTrialCanBe checks the reasons why no trial is possible. The letter of a trial passes
// through the dead-letter exchange in the configuration into the first inbox. There, dlo recognises
// the letter by the queue in which it died.
func TestWhereNoTrialCanBe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what   string
		broker config.Broker
		want   string // part of the reason; "" = a trial is possible
	}{
		{"the usual one", config.Broker{Name: "main", Exchange: "dlo.dlx", Inboxes: []string{"dlo.letters"}}, ""},
		{
			"no exchange",
			config.Broker{Name: "ma\u202ein", Inboxes: []string{"dlo.letters"}},
			`broker ma\u202ein has no dead-letter exchange`,
		},
		{
			"letters of one queue",
			config.Broker{
				Name:     "main",
				Exchange: "x",
				Inboxes:  []string{"sms_error", "b"},
				Origins:  map[string]string{"sms_error": "sms"},
			},
			"all letters of inbox sms_error are of queue sms",
		},
		{
			"letters of one queue in another inbox",
			config.Broker{
				Name:     "main",
				Exchange: "x",
				Inboxes:  []string{"b", "sms_error"},
				Origins:  map[string]string{"sms_error": "sms"},
			},
			"",
		},
	} {
		if got := noTrial(&c.broker); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", c.what, got)
		}
	}
}

// TestATrialWaitsForItsInbox checks that a trial waits until the broker is connected and the inbox
// is drained. Before that, its letter would not arrive.
func TestATrialWaitsForItsInbox(t *testing.T) {
	t.Parallel()
	s := &Server{process: &process{}}
	s.cfg.Brokers = []config.Broker{{Name: "main", Exchange: "dlo.dlx", Inboxes: []string{"dlo.letters"}}}
	link, err := rabbitmq.Connect(rabbitmq.Broker{
		Name:    "main",
		URL:     "amqp://127.0.0.1:1/shop",
		Inboxes: []string{"dlo.letters"},
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	s.links = []*rabbitmq.Link{link}
	b := s.trialBrokers()[0]
	if b.Name != "main" || b.VHost != "shop" || b.Unable != "" ||
		!strings.Contains(b.Unready(), "main is not connected") {
		t.Errorf("%+v: %q", b, b.Unready())
	}
	for _, c := range []struct {
		status deadletter.BrokerStatus
		want   string
	}{
		{
			deadletter.BrokerStatus{
				Name:      "main",
				Connected: true,
				Inboxes:   []deadletter.InboxStatus{{Queue: "dlo.letters", Reason: "no right"}},
			},
			"inbox dlo.letters is not read yet: no right",
		},
		{
			deadletter.BrokerStatus{
				Name:      "main",
				Connected: true,
				Inboxes:   []deadletter.InboxStatus{{Queue: "dlo.letters", Draining: true}},
			},
			"",
		},
	} {
		if got := notYet(c.status); got != c.want {
			t.Errorf("%q", got)
		}
	}
}
