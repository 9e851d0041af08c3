package rabbitmq_test

import (
	"cmp"
	"log/slog"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestWhatIsDeletedIsSaid runs two sessions of an inbox. Between them, the test deletes everything
// that dlo has declared. The second session must declare all of it again and report each loss as a
// problem. The first session must report nothing.
func TestWhatIsDeletedIsSaid(t *testing.T) {
	t.Parallel()
	_, address := testenv.Broker(t).VHost(t)
	link, err := rabbitmq.Connect(rabbitmq.Broker{
		Name:           "main",
		URL:            address,
		Exchange:       "dlo.dlx",
		Inboxes:        []string{"dlo.letters"},
		InFlight:       1,
		ConfirmTimeout: time.Second,
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ch := openChannel(t, address, nil)
	inbox := link.Inbox("dlo.letters", rabbitmq.Limits{Letters: 10, Bytes: 1 << 20, Linger: time.Millisecond})
	t.Cleanup(inbox.Close)
	const marker = "dlo.epoch.test"
	session := func(marker string, want ...deadletter.ProblemKind) {
		t.Helper()
		if _, err := inbox.Open(t.Context(), deadletter.InboxSession{Marker: marker}); err != nil {
			t.Fatal(err)
		}
		told := map[deadletter.ProblemKind]string{}
		for _, p := range link.Status().Queues {
			told[p.Kind] = p.Title
		}
		for _, kind := range want {
			if told[kind] == "" {
				t.Errorf("%s is not told, only %v", kind, told)
			}
		}
		if len(told) != len(want) {
			t.Errorf("told %v, want %v", told, want)
		}
		publishLetters(t, ch, "dlo.letters", "x")
		w, err := inbox.Next(t.Context())
		if err != nil || len(w) != 1 {
			t.Fatalf("%d letters, %v", len(w), err)
		}
		if err := cmp.Or(inbox.Ack(w), inbox.Fence()); err != nil {
			t.Fatal(err)
		}
	}
	deleted := func(queue string) {
		t.Helper()
		inbox.Close()
		if _, err := ch.QueueDelete(queue, false, false, false); err != nil {
			t.Fatal(err)
		}
	}
	session("")
	if err := inbox.MakeMarker(marker); err != nil {
		t.Fatal(err)
	}
	deleted("dlo.letters")
	session(marker, deadletter.ProblemInboxDeleted)
	deleted("dlo.letters")
	deleted(marker)
	session(marker, deadletter.ProblemInboxDeleted, deadletter.ProblemOwnQueue)
	deleted("dlo.letters")
	if err := ch.ExchangeDelete("dlo.dlx", false, false); err != nil {
		t.Fatal(err)
	}
	session("", deadletter.ProblemInboxDeleted, deadletter.ProblemOwnQueue)
	inbox.Close()
	if err := ch.ExchangeDelete("dlo.dlx", false, false); err != nil {
		t.Fatal(err)
	}
	deleted("dlo.letters")
	if _, err := ch.QueueDeclare("dlo.letters", true, false, false, false, ownInbox(testenv.Broker(t))); err != nil {
		t.Fatal(err)
	}
	session(marker, deadletter.ProblemInboxDeleted, deadletter.ProblemOwnQueue, deadletter.ProblemInboxUnbound)
}
