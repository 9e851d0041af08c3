package server

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/config"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
)

// TestWhoMayNotConnectsToNoBroker checks that only people with the right can request a connection.
// Nobody may connect to a broker that is not in the configuration.
func TestWhoMayNotConnectsToNoBroker(t *testing.T) {
	t.Parallel()
	s := &Server{process: &process{log: slog.New(slog.DiscardHandler)}}
	s.cfg.Brokers = []config.Broker{{Name: "main"}}
	link, err := rabbitmq.Connect(rabbitmq.Broker{Name: "main", URL: "amqp://127.0.0.1:1/"}, s.log)
	if err != nil {
		t.Fatal(err)
	}
	s.links = []*rabbitmq.Link{link}
	if err := s.Connect(
		t.Context(), deadletter.Principal{Name: "ann"}, "main",
	); !errors.Is(err, deadletter.ErrForbidden) ||
		!strings.Contains(err.Error(), `ann may not connect now at broker main`) {
		t.Error(err)
	}
	if err := s.Connect(
		t.Context(), deadletter.Local, "o\x1bther",
	); !errors.Is(err, deadletter.ErrNotFound) || !strings.Contains(err.Error(), `o\\x1bther`) {
		t.Error(err)
	}
}
