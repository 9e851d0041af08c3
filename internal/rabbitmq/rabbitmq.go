// Package rabbitmq speaks AMQP 0-9-1 and the management API. It drains inboxes in windows, which
// are batches of letters, and it publishes with confirms. It stores no letters and makes no
// decisions about them.
//
// dlo can end any session and begin a new one. After a close or a cancel, it drops all objects of
// the old session and begins another one. If a session receives nothing for a minute, it consumes
// again on a new channel.
package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// Broker is one configured broker and vhost.
type Broker struct {
	Name string
	URL  string // amqp or amqps, with user and password
	// file with the password of URL, read before each connection; "" = the password does not change
	PasswordFile string
	Management   string // http or https with user and password; "" = none
	// file with the password of Management, read before each request; "" = the password does not
	// change
	APIPassword    string
	Exchange       string // dead-letter exchange that is declared and bound to the first inbox; "" declares nothing
	Inboxes        []string
	AcceptLimited  []string           // inboxes that dlo drains although the broker may delete letters from them
	InFlight       int                // maximum number of unconfirmed publishes over all channels
	ConfirmTimeout time.Duration      // how long a confirm may take
	Crash          func(point string) // called at named points, for tests; nil in production
}

// Link manages the connections to one broker: one for publishing, and one for each inbox.
type Link struct {
	broker     Broker
	vhost      string
	user       string
	log        *slog.Logger
	management atomic.Pointer[Management] // nil = none is configured, and none was found
	looks      atomic.Pointer[Management] // the same API, for snapshots and policies

	mu        sync.Mutex
	status    deadletter.BrokerStatus
	cluster   string               // the name of the broker's cluster; "" = not connected since dlo was started
	events    []deadletter.Problem // events on queues within the last day
	publish   publisher
	sessions  int64                    // number of publishing connections so far
	refused   map[string]refusedWaiter // waiters that could not be declared on the broker, by their names
	declaring bool                     // wait queues are being declared
	changed   chan struct{}            // closed and replaced when the publishing connection changes
	tries     tries
	watched   map[string]watched // the sessions of inboxes, by inbox
	lookNow   chan struct{}      // requests a look at dlo's queues

	marking  sync.Mutex // protects the marks: only one is read or written at a time
	marked   int64      // number of commits in the mark that was last written
	markedIn int64      // the session in which that mark was written
	locking  *locking   // the request for the lock of the store without a reply; nil = none
}

// Connect returns a Link to the broker b. It does not wait for the broker: the Link opens
// connections when they are needed, and retries. The error says what is wrong with the URLs, or
// with the files of certificates that they name. It contains no passwords.
func Connect(b Broker, log *slog.Logger) (*Link, error) {
	u, err := amqp.ParseURI(b.URL)
	if err != nil {
		return nil, fmt.Errorf(
			"broker %s: the AMQP URL cannot be read (%w); a password with ? # or / must be percent-encoded", b.Name,
			withoutURL(err),
		)
	}
	if u.Scheme == "amqps" {
		if _, err := tlsConfig(u); err != nil {
			return nil, fmt.Errorf("broker %s: %w", b.Name, err)
		}
	}
	l := &Link{
		broker:  b,
		vhost:   u.Vhost,
		user:    u.Username,
		log:     log.With("broker", b.Name),
		changed: make(chan struct{}),
		tries:   newTries(),
		refused: map[string]refusedWaiter{},
		watched: map[string]watched{},
		lookNow: make(chan struct{}, 1),
	}
	l.status = deadletter.BrokerStatus{
		Name:     b.Name,
		VHost:    u.Vhost,
		Exchange: b.Exchange,
		Reason:   "not connected yet",
		Since:    time.Now(),
	}
	l.status.User, l.status.Rights = l.user, l.assumedRights()
	l.status.Grant = l.grantCommand(l.status.Rights)
	for _, q := range b.Inboxes {
		l.status.Inboxes = append(l.status.Inboxes, deadletter.InboxStatus{Queue: q, Reason: "not connected yet"})
	}
	if b.Management != "" {
		management, looks, err := managementOf(b.Management, b.APIPassword)
		if err != nil {
			return nil, fmt.Errorf("broker %s: %w", b.Name, err)
		}
		l.management.Store(management)
		l.looks.Store(looks)
		l.status.Managed = true
	}
	return l, nil
}

// withoutURL removes the URL, and with it the password, from a net/url error.
func withoutURL(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// Serves reports whether the link was made for the broker b, with the same settings.
func (l *Link) Serves(b *Broker) bool {
	was, is := l.broker, *b
	was.Crash, is.Crash = nil, nil
	return reflect.DeepEqual(was, is)
}

// Managed reports whether dlo has a management API of the broker, configured or found.
func (l *Link) Managed() bool { return l.management.Load() != nil }

// VHost returns the vhost of the link.
func (l *Link) VHost() string { return l.vhost }

// Status returns what is currently known about the broker.
func (l *Link) Status() deadletter.BrokerStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.status
	s.Inboxes = slices.Clone(s.Inboxes)
	s.Queues = slices.Concat(s.Queues, l.recentEvents(""))
	return s
}

// Reached records that the inboxes have existed at least once since the store was created.
func (l *Link) Reached() { l.updateStatus(func(s *deadletter.BrokerStatus) { s.Reached = true }) }

func (l *Link) updateStatus(change func(*deadletter.BrokerStatus)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.status)
}

func (l *Link) inboxStatus(queue string, draining bool, reason string) {
	l.updateStatus(func(s *deadletter.BrokerStatus) {
		for i := range s.Inboxes {
			if s.Inboxes[i].Queue == queue {
				s.Inboxes[i].Draining, s.Inboxes[i].Reason = draining, reason
			}
		}
	})
}

const (
	heartbeat   = 10 * time.Second // a half-open connection is noticed within three heartbeats
	dialTimeout = 30 * time.Second // for connection and handshake together
	// if no delivery arrives for this long, a new channel consumes, because a 4.3 broker may cancel
	// silently
	silence  = time.Minute
	stopWait = 5 * time.Second // how long work in progress may take when dlo stops
	// a broker under an alarm does not read from a connection that has published, so it may never
	// confirm a close
	closeWait = 2 * time.Second
)

// cutAfter waits until ctx has ended. If the connection is still open 5 s (stopWait) later,
// cutAfter closes it. This is necessary because AMQP calls wait for their reply even after ctx
// ends. For example, a quorum queue that has just lost its leader does not reply for a minute
// (3.10.8), and dlo must be able to stop earlier. Messages may then be without a confirm. dlo
// decides about such messages when it starts the next time.
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

// backoff computes the waits between reconnects. The wait is 1 s at first and doubles up to a
// minute, with jitter. A broker gets at most about ten attempts a minute, and many dlo processes do
// not reconnect at the same time.
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

// atLeast reports whether a RabbitMQ version such as "4.0.5" or "4.1.0-beta.1" is at least the
// given one.
func atLeast(version string, major, minor int) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (a > major || a == major && b >= minor)
}
