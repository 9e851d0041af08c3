package rabbitmq_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestTheMarkerTellsARestart checks that dlo can detect a restart of the tested broker version with
// a marker, which is a queue with one transient message. The message must survive a lost
// connection, and must be gone after a kill and after a clean stop.
func TestTheMarkerTellsARestart(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.PrivateBroker(t)
	_, url := node.VHost(t)
	link, err := rabbitmq.Connect(rabbitmq.Broker{
		Name:           "main",
		URL:            url,
		Exchange:       "dlo.dlx",
		Inboxes:        []string{"dlo.letters"},
		InFlight:       1,
		ConfirmTimeout: time.Second,
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	inbox := link.Inbox("dlo.letters", rabbitmq.Limits{Letters: 10, Bytes: 1 << 20, Linger: time.Millisecond})
	defer inbox.Close()
	const marker = "dlo.epoch.test"
	opened := func(what string, want deadletter.MarkerState) {
		t.Helper()
		s, err := inbox.Open(t.Context(), deadletter.InboxSession{Marker: marker})
		if err != nil {
			t.Fatal(err)
		}
		if s.Marker != want {
			t.Errorf("RabbitMQ %s, %s: %s", node.Version(), what, s.Marker)
		}
	}
	mark := func() {
		t.Helper()
		if err := inbox.MakeMarker(marker); err != nil {
			t.Fatal(err)
		}
	}
	opened("before there is one", deadletter.MarkerDeleted)
	mark()
	opened("after a lost connection", deadletter.MarkerThere)
	node.Kill9()
	if err := node.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	opened("after a kill", deadletter.MarkerEmptied)
	mark()
	opened("after a lost connection", deadletter.MarkerThere)
	if err := node.Terminate(); err != nil {
		t.Fatal(err)
	}
	if err := node.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	opened("after a clean stop", deadletter.MarkerEmptied)
	if err := inbox.DeleteMarker(marker); err != nil {
		t.Error(err)
	}
	if err := inbox.DeleteMarker(marker); err != nil {
		t.Errorf("of a marker that is not there: %v", err)
	}
}
