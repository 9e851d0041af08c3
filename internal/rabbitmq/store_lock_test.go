package rabbitmq_test

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rabbitmq"
	"github.com/deadletteroffice/dlo/internal/testenv"
)

// TestOneLinkHasTheLockOfAStore takes the lock of a store over two links. The second one must be
// refused and say where the first one is, until the connection of the first one ends. If the queue
// of the lock is deleted, the connection must end too, and nothing more may be sent over it. A user
// who may not declare the queue has no lock.
func TestOneLinkHasTheLockOfAStore(t *testing.T) {
	t.Parallel()
	node := testenv.Broker(t)
	vhost, address := node.VHost(t)
	b := brokerAt(node, address)
	b.Inboxes = []string{"dlo.letters"}
	first, second := runLink(t, b), runLink(t, b)
	lock := func(l *rabbitmq.Link, store string) error {
		t.Helper()
		if err := l.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return l.LockStore(ctx, l.Session(), store)
	}
	if err := errors.Join(lock(first, "one"), lock(second, "two")); err != nil {
		t.Fatal(err)
	}
	var twice deadletter.StoreTwice
	eventually(t, "the second link is refused, and the API knows the first one", func() bool {
		err := lock(second, "one")
		if !errors.As(err, &twice) {
			t.Fatal(err)
		}
		return regexp.MustCompile(
			`^The other dlo is connected from (127\.0\.0\.1|::1), port \d+, as user \S+ since 20`,
		).MatchString(string(twice))
	})
	session := first.Session()
	first.UnlockStore(session)
	eventually(t, "the lock is free", func() bool { return lock(second, "one") == nil })
	if got := first.Publish(t.Context(), session, messages("orders", 1, nil))[0]; got.Kind != deadletter.OutcomeUnsent {
		t.Errorf("over a session that has ended: %+v", got)
	}

	session = second.Session()
	var queues []struct{ Name string }
	if err := node.API(http.MethodGet, "/api/queues/"+vhost, nil, &queues); err != nil {
		t.Fatal(err)
	}
	for _, q := range queues {
		if strings.HasPrefix(q.Name, "dlo.epoch.send.") {
			_, _ = node.Ctl("delete_queue", "-p", vhost, q.Name) // the API may still list the lock that has ended
		}
	}
	eventually(t, "the connection ends with its lock", func() bool { return second.Session() != session })

	user, limited := node.User(t, vhost, "")
	node.Grant(t, vhost, user, `^nothing$`, `.*`, `.*`)
	b.URL, b.Management = limited, ""
	if err := lock(runLink(t, b), "one"); !errors.Is(err, deadletter.ErrUnguarded) ||
		!strings.Contains(err.Error(), "ACCESS_REFUSED") {
		t.Errorf("without the right: %v", err)
	}
}
