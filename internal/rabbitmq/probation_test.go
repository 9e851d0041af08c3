package rabbitmq

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// TestAnInboxWhoseSessionsDieIsNotRead opens sessions that end before they have stored and
// acknowledged a batch of letters. The inbox must not count as read until a session does this or
// lives for a while.
func TestAnInboxWhoseSessionsDieIsNotRead(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	vhost, url := node.VHost(t)
	p := newRawPublisher(t, url)
	p.declare(t, "inbox", amqp.Table{"x-queue-type": "classic"})
	relay := testenv.Relay(t, node.AMQPAddr())
	link, inbox := linked(t, Broker{
		URL:     node.AMQPURLVia(relay.Addr(), vhost),
		Inboxes: []string{"inbox"},
	}, Limits{Letters: 16, Bytes: 1 << 20, Linger: time.Millisecond})
	link.updateStatus(func(s *deadletter.BrokerStatus) { s.Connected = true })
	inbox.sleep = func(context.Context, time.Duration) error { return nil }
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	notRead := func() string {
		s := link.Status()
		for _, p := range s.Problems() {
			if p.Kind == deadletter.ProblemInboxNotRead {
				return p.Text
			}
		}
		return ""
	}
	open := func() {
		t.Helper()
		if _, err := inbox.Open(ctx, deadletter.InboxSession{Prefetch: 1}); err != nil {
			t.Fatal(err)
		}
	}
	dies := func() {
		t.Helper()
		open()
		relay.Cut()
		if w, err := inbox.Next(ctx); err == nil {
			t.Fatalf("%d letters over a line that is cut", len(w))
		}
		inbox.Close()
	}
	settles := func() {
		t.Helper()
		p.publish(t, "inbox", "\x00\x00", "last")
		takeAll(t, inbox, "last")
	}
	open()
	if text := notRead(); text != "" {
		t.Errorf("before anything has happened: %s", text)
	}
	for range 3 {
		dies()
		if text := notRead(); !strings.Contains(text, "the connection ended; connecting again; ") ||
			strings.Contains(text, "Exception") {
			t.Errorf("after a session that died: %q", text)
		}
		open()
		if notRead() == "" {
			t.Error("a session that has only begun counts")
		}
	}
	settles()
	if text := notRead(); text != "" {
		t.Errorf("after a window: %s", text)
	}
	relay.Cut()
	open()
	if text := notRead(); text != "" {
		t.Errorf("after the end of a session that was good for something: %s", text)
	}

	dies()
	inbox.probation.proof = time.Second
	open()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		inbox.Next(ctx)
	}()
	for notRead() != "" && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	if ctx.Err() != nil {
		t.Error("a quiet session does not count")
	}
	cancel()
	<-ended
}
