// Package rabbitmq speaks AMQP 0-9-1 and the management API: it drains inboxes by windows and
// publishes with confirms. Every session is disposable: on any close, cancel or silence all its
// objects are dropped and another is begun. It keeps no letter and decides nothing about one.
package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// Broker is one broker and vhost as the configuration names it.
type Broker struct {
	Name           string
	URL            string // amqp or amqps, with user and password
	Management     string // http or https with user and password; "" = none
	Exchange       string // dead-letter exchange that is declared and bound to the first inbox; "" declares nothing
	Inboxes        []string
	AcceptLimited  []string      // inboxes to drain although the broker may delete letters from them
	InFlight       int           // unconfirmed publishes at most, over all channels
	ConfirmTimeout time.Duration // how long a confirm may take
}

// Link is the way to one broker: a publishing connection, and one more per inbox.
type Link struct {
	broker     Broker
	vhost      string
	user       string
	log        *slog.Logger
	management *Management

	mu        sync.Mutex
	status    deadletter.BrokerStatus
	events    []deadletter.Problem // what happened to queues, within a day
	publish   publisher
	sessions  int64                    // publishing connections so far
	refused   map[string]refusedWaiter // waiters of the broker that could not be made, by name
	declaring bool                     // wait queues are being declared
	changed   chan struct{}            // closed and replaced whenever the publishing connection changes
	tries     tries

	marking  sync.Mutex // one mark is read or written at a time
	marked   int64      // commits of the last one
	markedIn int64      // session that it was written in
}

// Connect returns the link to b. It does not wait for the broker: connections are made when they
// are used, again and again. The error names what is wrong with the URLs, without passwords.
func Connect(b Broker, log *slog.Logger) (*Link, error) {
	u, err := amqp.ParseURI(b.URL)
	if err != nil {
		return nil, fmt.Errorf("broker %s: the AMQP URL cannot be read (%w); a password with ? # or / must be percent-encoded", b.Name, scrub(err))
	}
	l := &Link{broker: b, vhost: u.Vhost, user: u.Username, log: log.With("broker", b.Name), changed: make(chan struct{}), tries: newTries(), refused: map[string]refusedWaiter{}}
	l.status = deadletter.BrokerStatus{Name: b.Name, VHost: u.Vhost, Exchange: b.Exchange, Reason: "not connected yet", Since: time.Now()}
	l.status.User, l.status.Rights = l.user, l.assumed()
	l.status.Grant = l.grant(l.status.Rights)
	for _, q := range b.Inboxes {
		l.status.Inboxes = append(l.status.Inboxes, deadletter.InboxStatus{Queue: q, Reason: "not connected yet"})
	}
	if b.Management != "" {
		if l.management, err = newManagement(b.Management); err != nil {
			return nil, fmt.Errorf("broker %s: %w", b.Name, err)
		}
		l.status.Managed = true
	}
	return l, nil
}

// scrub takes the URL, and so the password, out of an error of net/url.
func scrub(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// VHost returns the vhost of the link.
func (l *Link) VHost() string { return l.vhost }

// Status returns what is known of the broker now.
func (l *Link) Status() deadletter.BrokerStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.status
	s.Inboxes = slices.Clone(s.Inboxes)
	s.Queues = slices.Concat(s.Queues, l.recent(""))
	return s
}

// Reached notes that the inboxes were there once since the store was made.
func (l *Link) Reached() { l.update(func(s *deadletter.BrokerStatus) { s.Reached = true }) }

func (l *Link) update(change func(*deadletter.BrokerStatus)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.status)
}

func (l *Link) inboxStatus(queue string, draining bool, reason string) {
	l.update(func(s *deadletter.BrokerStatus) {
		for i := range s.Inboxes {
			if s.Inboxes[i].Queue == queue {
				s.Inboxes[i].Draining, s.Inboxes[i].Reason = draining, reason
			}
		}
	})
}

const (
	heartbeat   = 10 * time.Second // a half-open connection is noticed within three
	dialTimeout = 30 * time.Second // of connection and handshake together
	silence     = time.Minute      // without a delivery: consume anew on a fresh channel, as a 4.3 broker may cancel in silence
	stopWait    = 5 * time.Second  // for what is under way when dlo stops
	closeWait   = 2 * time.Second  // a broker under an alarm does not read from a connection that has published, so it may never answer a close
)

// cutAfter cuts a connection that is still there a while after ctx has ended. Calls of AMQP wait
// for their answer, whatever becomes of ctx, and a quorum queue that has just lost its leader gives
// none for a minute (3.10.8). That must not keep dlo from stopping: what is not settled by then is
// decided at the next start.
func cutAfter(ctx context.Context, conn *amqp.Connection) {
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	select {
	case <-closed:
		return
	case <-ctx.Done():
	}
	select {
	case <-closed:
	case <-time.After(stopWait):
		conn.CloseDeadline(time.Now())
	}
}

// backoff paces reconnects: 1 s, doubling to a minute, with jitter, so that a broker is asked at
// most about ten times a minute and many dlo do not ask in step.
type backoff struct{ failures int }

const (
	backoffFirst = time.Second
	backoffMax   = time.Minute
)

func (b *backoff) next() time.Duration {
	d := min(backoffFirst<<min(b.failures, 10), backoffMax)
	b.failures++
	return d/2 + rand.N(d/2+1)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// atLeast compares a version of RabbitMQ such as "4.0.5" or "4.1.0-beta.1".
func atLeast(version string, major, minor int) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (a > major || a == major && b >= minor)
}
