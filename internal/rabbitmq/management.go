package rabbitmq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Management asks RabbitMQ's HTTP API. Its figures lag 1 to 6 s, and fields may be absent: absent is unknown, never 0 (measured on 3.10.8, 4.0.5, 4.3.6).
type Management struct {
	base           string
	user, password string
	client         http.Client
}

func newManagement(raw string) (*Management, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the management URL cannot be read; it looks like http://user:password@host:15672, with ? # and / in a password percent-encoded")
	}
	m := &Management{user: u.User.Username(), client: http.Client{Timeout: 5 * time.Second}}
	m.password, _ = u.User.Password()
	u.User = nil
	m.base = u.String()
	return m, nil
}

// errNoQueue says that the broker knows no queue of that name.
var errNoQueue = errors.New("no such queue")

// managedQueue is a queue as the API shows it.
type managedQueue struct {
	Type      string `json:"type"`
	Consumers *int   `json:"consumers"`
	Ready     *int   `json:"messages_ready"`
	Arguments struct {
		DeliveryLimit *int64 `json:"x-delivery-limit"`
	} `json:"arguments"`
	Policy struct {
		DeliveryLimit *int64 `json:"delivery-limit"`
	} `json:"effective_policy_definition"`
	DeliveryLimit *int64 `json:"delivery_limit"`
}

// deliveryLimit returns the limit that is set on the queue; false where none is, so that the broker's default holds.
func (q *managedQueue) deliveryLimit() (int64, bool) {
	for _, l := range []*int64{q.DeliveryLimit, q.Arguments.DeliveryLimit, q.Policy.DeliveryLimit} {
		if l != nil {
			return *l, true
		}
	}
	return 0, false
}

// Queue asks for one queue.
func (m *Management) Queue(ctx context.Context, vhost, name string) (*managedQueue, error) {
	var q managedQueue
	err := m.get(ctx, "/api/queues/"+url.PathEscape(vhost)+"/"+url.PathEscape(name), &q)
	if err != nil {
		return nil, fmt.Errorf("management: queue %s: %w", deadletter.Visible(name), err)
	}
	return &q, nil
}

// maxAnswer bounds what is read of an answer, bytes.
const maxAnswer = 8 << 20

func (m *Management) get(ctx context.Context, path string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, m.base+path, nil)
	if err != nil {
		return err
	}
	r.SetBasicAuth(m.user, m.password)
	answer, err := m.client.Do(r)
	if err != nil {
		return scrub(err)
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return errNoQueue
	default:
		return fmt.Errorf("the API answered %s", answer.Status)
	}
	return json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(into)
}

// Facts returns what the broker says of a queue; unknown where there is no management API or it does not answer.
func (l *Link) Facts(ctx context.Context, queue string) deadletter.QueueFacts {
	if l.management == nil {
		return deadletter.UnknownQueue
	}
	q, err := l.management.Queue(ctx, l.vhost, queue)
	if errors.Is(err, errNoQueue) {
		return deadletter.QueueFacts{Known: true, Consumers: -1, Ready: -1}
	}
	if err != nil {
		l.log.Warn("management API", "err", err)
		return deadletter.UnknownQueue
	}
	f := deadletter.QueueFacts{Known: true, Exists: true, Consumers: -1, Ready: -1}
	if q.Consumers != nil {
		f.Consumers = *q.Consumers
	}
	if q.Ready != nil {
		f.Ready = *q.Ready
	}
	return f
}
