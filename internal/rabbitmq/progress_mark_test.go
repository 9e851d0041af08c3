package rabbitmq

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/testenv"
	amqp "github.com/rabbitmq/amqp091-go"
)

// marking returns a link whose publishing connection is open, and a channel on another connection.
// Through the link, the tests write marks of a store, which are messages that record how far the
// store had got.
func marking(t *testing.T) (*Link, *amqp.Channel) {
	t.Helper()
	_, url := testenv.VHost(t)
	return markingAt(t, url)
}

func markingAt(t *testing.T, url string) (*Link, *amqp.Channel) {
	t.Helper()
	link, _ := linked(t, Broker{URL: url, Inboxes: []string{"dlo.letters"}}, Limits{})
	ctx, stop := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		link.Run(ctx)
	}()
	t.Cleanup(func() { stop(); <-over })
	if err := link.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	_, ch := testenv.Channel(t, url)
	return link, ch
}

// TestAMarkIsKept writes a mark, which is a message that records how far a store had got. From
// RabbitMQ 4.0 on, a queue deletes a message that was delivered 20 times. It must nevertheless be
// possible to read the mark any number of times, over this connection and over others. If there are
// several marks, the newest must count.
func TestAMarkIsKept(t *testing.T) {
	t.Parallel()
	link, ch := marking(t)
	ctx := t.Context()
	if p, err := link.ReadMark(ctx, "s1", false); p != nil || err != nil {
		t.Fatalf("before anything was noted: %+v, %v", p, err)
	}
	at := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	for n := range int64(5) {
		if err := link.WriteMark(ctx, link.Session(), deadletter.Progress{
			Store: "s1", Claims: n + 1, Commits: 10 * n, Received: 7, At: at,
		}); err != nil {
			t.Fatal(err)
		}
	}
	want := deadletter.Progress{Store: "s1", Claims: 5, Commits: 40, Received: 7, At: at}
	for range 30 {
		if p, err := link.ReadMark(ctx, "s1", false); err != nil || p == nil || *p != want {
			t.Fatalf("%+v, %v", p, err)
		}
	}
	if q, err := ch.QueueDeclarePassive(
		"dlo.epoch.mark.s1", true, false, false, false, nil,
	); err != nil || q.Messages != 1 {
		t.Errorf("%+v, %v", q, err)
	}
	if p, err := link.ReadMark(ctx, "s2", false); p != nil || err != nil {
		t.Errorf("of another store: %+v, %v", p, err)
	}
}

// TestAMarkUnderAPolicy checks the mark of a store, which is a message that records how far the
// store has got. dlo keeps this mark in a queue that holds one message. A policy of the test makes
// a full queue reject new messages. A new mark must still be able to replace the old one.
func TestAMarkUnderAPolicy(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	policy := map[string]any{
		"pattern":    ".*",
		"apply-to":   "queues",
		"definition": map[string]any{"overflow": "reject-publish", "max-length": 1},
	}
	if err := node.API(http.MethodPut, "/api/policies/"+url.PathEscape(vhost)+"/of-the-site", policy, nil); err != nil {
		t.Fatal(err)
	}
	link, _ := markingAt(t, address)
	for n := range int64(20) {
		if err := link.WriteMark(t.Context(), link.Session(), deadletter.Progress{
			Store: "s1", Claims: n + 1, Commits: n + 1, At: time.Now(),
		}); err != nil {
			t.Fatalf("mark %d: %v", n+1, err)
		}
		time.Sleep(20 * time.Millisecond) // a quorum queue notices with a delay that it is full
	}
	if p, err := link.ReadMark(t.Context(), "s1", false); err != nil || p == nil || p.Claims != 20 {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestAMarkSurvivesItsReader covers a process that takes the mark of a store from its queue and
// then dies. The broker must return the mark to the queue. A caller that knows that the store has a
// mark must wait until the mark is back.
func TestAMarkSurvivesItsReader(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	link, ch := marking(t)
	want := deadletter.Progress{Store: "s1", Claims: 5, Commits: 5, At: time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)}
	if p, err := link.ReadMark(t.Context(), "s1", true); p != nil || err != nil {
		t.Fatalf("before anything was noted: %+v, %v", p, err)
	}
	if err := link.WriteMark(t.Context(), link.Session(), want); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := ch.Get("dlo.epoch.mark.s1", false); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if p, err := link.ReadMark(t.Context(), "s1", false); p != nil || err != nil {
		t.Errorf("while somebody has it: %+v, %v", p, err)
	}
	time.AfterFunc(markBack/10, func() { ch.Close() })
	if p, err := link.ReadMark(t.Context(), "s1", true); err != nil || p == nil || *p != want {
		t.Errorf("after that one has died: %+v, %v", p, err)
	}
}

// TestAMarkWhoseQueueIsGone deletes and purges the queue of a store's mark, which is the message
// that records how far the store has got. The next mark must still be written, and dlo must report
// each loss once. If the caller names an earlier connection than the present one, no mark may be
// written.
func TestAMarkWhoseQueueIsGone(t *testing.T) {
	t.Parallel()
	link, ch := marking(t)
	ctx := t.Context()
	last := deadletter.Progress{Store: "s1"}
	write := func() {
		t.Helper()
		last.Claims, last.Commits, last.At = last.Claims+1, last.Commits+1, time.Now()
		if err := link.WriteMark(ctx, link.Session(), last); err != nil {
			t.Fatal(err)
		}
	}
	told := func() (since []time.Time) {
		for _, p := range link.Status().Queues {
			if p.Kind == deadletter.ProblemOwnQueue && p.Queue == "dlo.epoch.mark.s1" {
				since = append(since, p.Since)
			}
		}
		return since
	}
	write()
	write()
	if n := told(); n != nil {
		t.Errorf("a mark that is there is missing since %v", n)
	}
	var before []time.Time
	for name, lose := range map[string]func() (int, error){
		"deleted": func() (int, error) { return ch.QueueDelete("dlo.epoch.mark.s1", false, false, false) },
		"purged":  func() (int, error) { return ch.QueuePurge("dlo.epoch.mark.s1", false) },
	} {
		if _, err := lose(); err != nil {
			t.Fatal(err)
		}
		write()
		first := told()
		if len(first) != 1 || slices.Equal(first, before) {
			t.Errorf("%s: told %v, before %v", name, first, before)
		}
		write()
		if before = told(); !slices.Equal(first, before) {
			t.Errorf("%s: told again: %v, then %v", name, first, before)
		}
		if p, err := link.ReadMark(ctx, "s1", false); err != nil || p == nil || p.Claims != last.Claims {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	last.Commits++
	if err := link.WriteMark(ctx, link.Session()-1, last); !errors.Is(err, errOtherSession) {
		t.Errorf("over a connection of before: %v", err)
	}
}

// TestWhatIsNoMark publishes a foreign message to the queue of a store's mark, where only the
// message with the store's progress should be. The foreign message must not count as a mark, and
// the next mark must remove it.
func TestWhatIsNoMark(t *testing.T) {
	t.Parallel()
	link, ch := marking(t)
	ctx := t.Context()
	if _, err := link.ReadMark(ctx, "s1", false); err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{
		"", "{}", `{"store":"s1","claims":-1,"commits":1,"at":"2026-11-20T08:00:00Z"}`, "\xff",
	} {
		if err := ch.Publish("", "dlo.epoch.mark.s1", false, false, amqp.Publishing{Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}
		if p, err := link.ReadMark(ctx, "s1", false); p != nil || err != nil {
			t.Errorf("%q is read as %+v, %v", body, p, err)
		}
	}
}
