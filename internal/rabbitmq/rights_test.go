package rabbitmq_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// rightsProblem returns the problem that a link reports about its permissions. It returns nil if no
// permission is missing.
func rightsProblem(link *rabbitmq.Link) *deadletter.Problem {
	status := link.Status()
	for _, p := range status.Problems() {
		if p.Kind == deadletter.ProblemRights {
			return &p
		}
	}
	return nil
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// TestARightThatIsMissingHoldsNoLetter covers a user who has no permission to publish, and a user
// who loses this permission later. dlo must send nothing and reject no letter. The problem must
// name the permission and the command that grants it. As soon as the user has the permission, dlo
// must send letters again automatically.
func TestARightThatIsMissingHoldsNoLetter(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, owner := node.VHost(t)
	declare(t, owner, map[string]amqp.Table{"orders": nil})
	user, address := node.User(t, vhost, "")
	node.Grant(t, vhost, user, `^dlo\.`, `^dlo\.`, `^dlo\.`)
	link := runLink(t, rabbitmq.Broker{
		URL:            address,
		Inboxes:        []string{"dlo.letters"},
		InFlight:       8,
		ConfirmTimeout: 10 * time.Second,
	})
	eventually(t, "the right is refused", func() bool { return rightsProblem(link) != nil })
	p := rightsProblem(link)
	if p.Severity != deadletter.SeverityPage || !strings.Contains(p.Title, user) ||
		p.Text != "It may not write amq.default, which it needs for sending retries and requeues. It continues automatically once it may." {
		t.Errorf("%+v", p)
	}
	if want := `'^(amq\.default|dlo\..*)$' '^(dlo\..*)$'`; !strings.HasSuffix(p.Cure, want) {
		t.Errorf("%s does not end with %s", p.Cure, want)
	}
	early, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := link.Ready(early); err == nil {
		t.Error("the link takes messages that it may not send")
	}
	node.Cure(t, p.Cure)
	if err := link.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := rightsProblem(link); p != nil {
		t.Errorf("after the cure: %+v", p)
	}
	one := messages("orders", 1, []byte("x"))
	one[0].Alone = true
	if got := link.Publish(t.Context(), link.Session(), one)[0]; got.Kind != deadletter.OutcomeConfirmed {
		t.Errorf("%+v", got)
	}
	node.Grant(t, vhost, user, `^dlo\.`, `^dlo\.`, `^dlo\.`)
	eventually(t, "the right is taken away", func() bool { // 4.0.5 applies the change only to new channels
		got := link.Publish(t.Context(), link.Session(), one)[0]
		if got.Kind != deadletter.OutcomeConfirmed && got.Kind != deadletter.OutcomeUnsent {
			t.Errorf("%+v", got)
		}
		return got.Kind == deadletter.OutcomeUnsent
	})
	if rightsProblem(link) == nil {
		t.Error("nobody is told that the right is gone")
	}
	node.Cure(t, p.Cure)
	if err := link.Ready(t.Context()); err != nil || rightsProblem(link) != nil {
		t.Error(err, rightsProblem(link))
	}
}

// TestAnInboxThatMayNotBeRead covers a user who may not read an inbox. Until the user may read it,
// dlo must not drain the inbox, and must not show it as drained. The check of the permission must
// take no letter.
func TestAnInboxThatMayNotBeRead(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	vhost, owner := node.VHost(t)
	declare(t, owner, map[string]amqp.Table{"team.dlq": nil})
	ch := openChannel(t, owner, nil)
	publishLetters(t, ch, "team.dlq", "letter")
	user, address := node.User(t, vhost, "management")
	node.Grant(t, vhost, user, `^dlo\.epoch\.`, `^amq\.default$`, `^dlo\.epoch\.`)
	b := brokerAt(node, address)
	b.Management, b.Exchange, b.Inboxes = node.ManagementURLOf(user+":secret"), "", []string{"team.dlq"}
	link := runLink(t, b)
	if err := link.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := link.Inspect(t.Context(), "team.dlq"); !errors.Is(err, deadletter.ErrUnavailable) ||
		!strings.Contains(err.Error(), "may not read team.dlq") {
		t.Errorf("a drain of it: %v", err)
	}
	inbox := link.Inbox("team.dlq", rabbitmq.Limits{Letters: 10, Bytes: 1 << 20, Linger: time.Millisecond})
	t.Cleanup(inbox.Close)
	opened := make(chan error, 1)
	go func() {
		_, err := inbox.Open(t.Context(), deadletter.InboxSession{})
		opened <- err
	}()
	eventually(
		t, "the right is refused",
		func() bool { status := link.Status(); return status.Inboxes[0].Reason != "not connected yet" },
	)
	status := link.Status()
	if i := status.Inboxes[0]; i.Draining || !strings.Contains(i.Reason, "user "+user+" may not read team.dlq") {
		t.Errorf("%+v", i)
	}
	p := rightsProblem(link)
	if p == nil || p.Severity != deadletter.SeverityPage || !strings.Contains(p.Text, "It may not read team.dlq") ||
		!strings.Contains(p.Cure, `'^(dlo\..*|team\.dlq)$'`) {
		t.Fatalf("%+v", p)
	}
	node.Cure(t, p.Cure)
	select {
	case err := <-opened:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(patience):
		t.Fatal("it is not read once it may be")
	}
	w, err := inbox.Next(t.Context())
	if err != nil || len(w) != 1 || w[0].Redelivered {
		t.Errorf("%+v, %v", w, err)
	}
	if p := rightsProblem(link); p != nil {
		t.Errorf("after the cure: %+v", p)
	}
}

// TestAMarkerWithoutAMessageIsDeleted covers a user who may declare a marker, which is a queue with
// one transient message, but may not publish this message. A broker restart drops such a message.
// dlo must delete the marker. Otherwise it would look as if a broker restart had emptied the
// marker.
func TestAMarkerWithoutAMessageIsDeleted(t *testing.T) {
	testenv.Full(t)
	t.Parallel()
	node := testenv.Broker(t)
	marked := func(t *testing.T, address string) *rabbitmq.Link {
		t.Helper()
		link := runLink(t, rabbitmq.Broker{
			URL:            address,
			Exchange:       "dlo.dlx",
			Inboxes:        []string{"dlo.letters"},
			InFlight:       1,
			ConfirmTimeout: time.Second,
		})
		inbox := link.Inbox("dlo.letters", rabbitmq.Limits{Letters: 10, Bytes: 1 << 20, Linger: time.Millisecond})
		t.Cleanup(inbox.Close)
		if _, err := inbox.Open(t.Context(), deadletter.InboxSession{}); err != nil {
			t.Fatal(err)
		}
		if err := inbox.MakeMarker("dlo.epoch.test"); err != nil {
			t.Fatal(err)
		}
		if facts, err := inbox.Open(t.Context(), deadletter.InboxSession{
			Marker: "dlo.epoch.test",
		}); err != nil || facts.Marker != deadletter.MarkerDeleted {
			t.Errorf("%s, %v", facts.Marker, err)
		}
		return link
	}
	t.Run("the user may not publish", func(t *testing.T) {
		t.Parallel()
		vhost, _ := node.VHost(t)
		user, address := node.User(t, vhost, "")
		node.Grant(t, vhost, user, `^dlo\.`, `^dlo\.`, `^dlo\.`)
		link := marked(t, address)
		eventually(t, "the right is missed", func() bool {
			p := rightsProblem(link)
			return p != nil && strings.Contains(p.Text, "write amq.default")
		})
	})
	t.Run("its queue refuses it", func(t *testing.T) {
		t.Parallel()
		vhost, address := node.VHost(t)
		full := map[string]any{
			"pattern":    "^dlo.epoch.test$",
			"apply-to":   "queues",
			"definition": map[string]any{"max-length": 0, "overflow": "reject-publish"},
		}
		if err := node.API(http.MethodPut, "/api/policies/"+url.PathEscape(vhost)+"/full", full, nil); err != nil {
			t.Fatal(err)
		}
		if p := rightsProblem(marked(t, address)); p != nil {
			t.Errorf("%+v", p)
		}
	})
}

// TestAManagementAPIThatRefusesTheUserIsAProblem covers a wrong password and a user without the
// needed tag.
func TestAManagementAPIThatRefusesTheUserIsAProblem(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	vhost, _ := node.VHost(t)
	user, address := node.User(t, vhost, "")
	for _, password := range []string{"wrong", "secret"} {
		b := brokerAt(node, address)
		b.Management = node.ManagementURLOf(user + ":" + password)
		problems := awaitProblems(t, b, func(list []deadletter.Problem) bool { return len(list) > 0 })
		if len(problems) != 1 || problems[0].Kind != deadletter.ProblemManagement ||
			!strings.Contains(problems[0].Text, "401") || !strings.Contains(
			problems[0].Cure, "set_user_tags "+user+" management",
		) {
			t.Errorf("password %s: %+v", password, problems)
		}
	}
	b := brokerAt(node, address)
	b.Management = "http://127.0.0.1:1"
	if problems := awaitProblems(
		t, b, func(list []deadletter.Problem) bool { return len(list) > 0 },
	); len(problems) != 1 || problems[0].Kind != deadletter.ProblemManagement ||
		!strings.Contains(problems[0].Text, "refused") {
		t.Errorf("an API that is not there: %+v", problems)
	}
}
