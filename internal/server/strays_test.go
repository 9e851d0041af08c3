package server

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
)

// strayed returns a server with the given brokers. Its store contains letters of other brokers.
func strayed(t *testing.T, found []deadletter.Stray, names ...string) *Server {
	t.Helper()
	s := &Server{process: &process{}}
	for _, name := range names {
		link, err := rabbitmq.Connect(rabbitmq.Broker{
			Name: name, URL: "amqp://127.0.0.1:1/shop",
		}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		s.links, s.cfg.Brokers = append(s.links, link), append(s.cfg.Brokers, config.Broker{Name: name})
	}
	s.findStrays = func(_ context.Context, configured func(broker, vhost string) bool) ([]deadletter.Stray, error) {
		for _, name := range names {
			if !configured(name, "shop") || configured(name, "/") {
				t.Errorf("broker %s is configured for another vhost", name)
			}
		}
		if configured("main", "shop") {
			t.Error("broker main is configured")
		}
		return found, nil
	}
	return s
}

// TestLettersThatNobodySends checks the problem about letters whose broker is not in the
// configuration. It must show the number of letters, their broker and the command that renames it.
func TestLettersThatNobodySends(t *testing.T) {
	t.Parallel()
	counts := map[deadletter.State]int{
		deadletter.StateScheduled: 79, deadletter.StatePublishing: 1, deadletter.StateDead: 14, deadletter.StateHeld: 1,
		deadletter.StateRequeued: 5,
	}
	for _, c := range []struct {
		name        string
		stray       deadletter.Stray
		brokers     []string
		severity    deadletter.Severity
		title, text string
		cure        []string
	}{
		{
			"renamed, the only one",
			deadletter.Stray{Broker: "main", VHost: "shop", Counts: counts},
			[]string{"prod"},
			deadletter.SeverityPage,
			"100 letters belong to broker main, which is not configured.",
			"80 wait for a retry that never comes; 15 need people, and cannot be requeued; 5 were sent, and nothing watches whether they come back.",
			[]string{
				"stop dlo and run: dlo brokers rename main prod.", `- {name: main, url: "amqp://..."}`,
				"discard -q 'broker:main'",
			},
		},
		{
			"renamed, one of two",
			deadletter.Stray{Broker: "main", VHost: "shop", Counts: map[deadletter.State]int{deadletter.StateDead: 1}},
			[]string{"prod", "east"},
			deadletter.SeverityNotify,
			"1 letter belongs to broker main, which is not configured.", "1 need people, and cannot be requeued.",
			[]string{"dlo brokers rename main NEW-NAME."},
		},
		{
			"an odd name",
			deadletter.Stray{Broker: "my: broker", VHost: "shop", Counts: counts},
			[]string{"prod"},
			deadletter.SeverityPage,
			"100 letters belong to broker my: broker, which is not configured.", "",
			[]string{
				`dlo brokers rename 'my: broker' prod.`, `- {name: "my: broker", url`,
				`discard -q 'broker:"my: broker"'`,
			},
		},
		{
			"another vhost",
			deadletter.Stray{Broker: "prod", VHost: "/", Counts: counts},
			[]string{"prod"},
			deadletter.SeverityPage,
			"100 letters belong to vhost / of broker prod, which has vhost shop in the configuration.", "",
			[]string{
				"Give the url of broker prod the vhost / again, and vhost shop an entry of its own",
				"discard -q 'broker:prod vhost:/'",
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			list := strayed(t, []deadletter.Stray{c.stray}, c.brokers...).strays()
			if len(list) != 1 {
				t.Fatalf("%+v", list)
			}
			p := list[0]
			if p.Kind != deadletter.ProblemBrokerUnknown || p.Severity != c.severity || p.Title != c.title ||
				c.text != "" && p.Text != c.text || p.Broker != c.stray.Broker || p.VHost != c.stray.VHost {
				t.Errorf("%+v", p)
			}
			for _, want := range c.cure {
				if !strings.Contains(p.Cure, want) {
					t.Errorf("the cure does not say %q: %s", want, p.Cure)
				}
			}
		})
	}
}

// TestAStoreThatDoesNotAnswerHasNoStrays checks a store that does not respond. There must be no
// problem about stray letters, because /readyz reports the store.
func TestAStoreThatDoesNotAnswerHasNoStrays(t *testing.T) {
	t.Parallel()
	s := &Server{process: &process{}}
	s.findStrays = func(context.Context, func(string, string) bool) ([]deadletter.Stray, error) {
		return nil, errors.New("busy")
	}
	if list := s.strays(); list != nil {
		t.Errorf("%+v", list)
	}
}
