package rabbitmq_test

import (
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// said collects log lines.
type said struct {
	mu    sync.Mutex
	lines strings.Builder
}

func (s *said) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines.Write(line)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines.String()
}

// TestAnInboxWithoutALimitAfterARestart uses a policy that removes the delivery limit of an inbox.
// After a broker restart, the management API does not show the policy yet, or does not respond. dlo
// must drain the inbox as soon as the API shows the policy. It must not refuse the inbox in the
// meantime, because it checks a refused inbox again only much later.
func TestAnInboxWithoutALimitAfterARestart(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.PrivateBroker(t)
	if !node.AtLeast("4.0") {
		t.Skip("quorum queues of 3.x have no limit of their own")
	}
	vhost, address := node.VHost(t)
	if err := node.API(http.MethodPut, "/api/policies/"+url.PathEscape(vhost)+"/no-limit", map[string]any{
		"pattern":    "^dlq$",
		"apply-to":   "queues",
		"definition": map[string]any{"delivery-limit": -1},
	}, nil); err != nil {
		t.Fatal(err)
	}
	declare(t, address, map[string]amqp.Table{"dlq": {"x-queue-type": "quorum"}})
	var log said
	link, err := rabbitmq.Connect(rabbitmq.Broker{
		Name:           "main",
		URL:            address,
		Management:     node.ManagementURLOf("guest:guest"),
		Inboxes:        []string{"dlq"},
		InFlight:       1,
		ConfirmTimeout: time.Second,
	}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	inbox := link.Inbox("dlq", rabbitmq.Limits{Letters: 10, Bytes: 1 << 20, Linger: time.Millisecond})
	defer inbox.Close()
	if _, err := inbox.Open(t.Context(), deadletter.InboxSession{}); err != nil {
		t.Fatal(err)
	}
	// a quorum queue younger than 12 s does not survive a kill (measured on 3.10.8, 4.0.5, 4.3.6)
	time.Sleep(13 * time.Second)
	node.Kill9()
	restarted := make(chan error, 1)
	go func() { restarted <- node.Restart(t.Context()) }()
	if _, err := inbox.Open(t.Context(), deadletter.InboxSession{}); err != nil {
		t.Fatal(err)
	}
	if err := <-restarted; err != nil {
		t.Fatal(err)
	}
	if text := log.String(); strings.Contains(text, "not drained") {
		t.Errorf("an inbox without a limit is refused:\n%s", text)
	}
}
