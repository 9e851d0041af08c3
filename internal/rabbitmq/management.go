package rabbitmq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Management queries RabbitMQ's HTTP API. The numbers that it returns are 1 to 6 s old. If a number
// is absent in a response, it is unknown and must not be read as 0 (measured on 3.10.8, 4.0.5,
// 4.3.6).
type Management struct {
	base     string
	user     string
	password secret
	client   http.Client
	// no requests are sent until this time, because a request got no response; nil = requests are
	// sent
	rest atomic.Pointer[time.Time]
	why  atomic.Value // a string: the reason why the API did not respond

	mu sync.Mutex
	// what the statistics of a queue say differently from its policies, by vhost and queue
	differs map[string]difference
}

// errSilent means that the management API did not respond to a request a moment ago. dlo then sends
// no further request. Otherwise, a plan for many queues of an unreachable broker would wait for
// each queue.
var errSilent = errors.New("the API did not answer a moment ago")

// errMayNot means that the management API rejects this user. The password is wrong, or the user
// lacks the tag management.
var errMayNot = errors.New("the API refuses the user")

const (
	managementWait = 5 * time.Second  // how long dlo waits for a response
	managementRest = 10 * time.Second // pause after a request without a response
	refusedRest    = time.Second      // pause if nothing listened at the address, because such an attempt costs no time
)

func newManagement(raw string) (*Management, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf(
			"the management URL cannot be read; it looks like http://user:password@host:15672, with ? # and / in a password percent-encoded",
		)
	}
	m := &Management{user: u.User.Username(), client: http.Client{Timeout: managementWait}}
	m.password.text, _ = u.User.Password()
	u.User = nil
	config, err := managementTLS(u)
	if err != nil {
		return nil, fmt.Errorf("the management URL: %w", err)
	}
	if config != nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.TLSClientConfig = config
		m.client.Transport = transport
	}
	m.base = u.String()
	return m, nil
}

// errNoQueue means that the broker has no queue with that name.
var errNoQueue = errors.New("no such queue")

// errBadRequest means that the management API refuses a request as invalid, for example if it asks
// for a page after the last one.
var errBadRequest = errors.New("the API answered 400 Bad Request")

// errNotAsked means that the management API has no URL for the name of a queue. dlo can therefore
// learn nothing about this queue.
var errNotAsked = errors.New("the API has no address for this name")

// canAsk reports whether dlo can ask the management API about a queue with the given name. The name
// would be the last segment of a URL path. The API reads paths as UTF-8, treats dots as
// directories, and lists all queues if the name is empty. Because a name in x-death may contain any
// bytes, it may be unsuitable.
func canAsk(name string) bool {
	return utf8.ValidString(name) && name != "" && name != "." && name != ".." && len(name) <= deadletter.MaxQueueName
}

// managedQueue is a queue as the management API shows it.
type managedQueue struct {
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	Durable    bool           `json:"durable"`
	AutoDelete bool           `json:"auto_delete"`
	Exclusive  bool           `json:"exclusive"`
	Consumers  *int           `json:"consumers"`
	Ready      *int           `json:"messages_ready"`
	Unacked    *int           `json:"messages_unacknowledged"`
	Delayed    *int           `json:"messages_delayed"` // messages that delayed retry holds back (4.3)
	Arguments  queueArguments `json:"arguments"`
	Effective  policyInForce  `json:"effective_policy_definition"`
}

type queueArguments struct {
	MaxLength    *int64  `json:"x-max-length"`
	MaxBytes     *int64  `json:"x-max-length-bytes"`
	MessageTTL   *int64  `json:"x-message-ttl"` // in milliseconds
	Exchange     *string `json:"x-dead-letter-exchange"`
	Key          *string `json:"x-dead-letter-routing-key"`
	SingleActive bool    `json:"x-single-active-consumer"` // only an argument can set it, not a policy

	all map[string]any
}

// UnmarshalJSON parses the arguments of a queue, and keeps those that dlo does not know as well.
func (a *queueArguments) UnmarshalJSON(text []byte) error {
	type plain queueArguments
	return errors.Join(json.Unmarshal(text, (*plain)(a)), json.Unmarshal(text, &a.all))
}

// policyInForce holds the settings that result from a queue's policy and operator policy together.
// Of two length limits, the smaller one applies. For a new queue, the management API does not show
// these settings for 1 to 6 s. Until then, Known is false. If the queue has no policy, the API
// shows an empty object.
type policyInForce struct {
	Known      bool    `json:"-"`
	MaxLength  *int64  `json:"max-length"`
	MaxBytes   *int64  `json:"max-length-bytes"`
	MessageTTL *int64  `json:"message-ttl"`
	Exchange   *string `json:"dead-letter-exchange"`
	Key        *string `json:"dead-letter-routing-key"`
}

// UnmarshalJSON parses the policy settings of a queue. It takes an empty list for an empty object,
// because Erlang may encode an empty object in that way.
func (p *policyInForce) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case "null":
		return nil
	case "[]":
		p.Known = true
		return nil
	}
	type plain policyInForce
	err := json.Unmarshal(text, (*plain)(p))
	p.Known = err == nil
	return err
}

// limit returns the limit that results from the argument and the policy of a queue. The smaller one
// applies (measured on 3.10.8, 4.0.5, 4.3.6). The result 0 means that there is no limit. The result
// -1 means that the limit is unknown, or that the limit is 0.
func (q *managedQueue) limit(argument, policy *int64) int {
	switch {
	case argument != nil && policy != nil:
		return positiveOrUnknown(min(*argument, *policy))
	case argument != nil:
		return positiveOrUnknown(*argument)
	case policy != nil:
		return positiveOrUnknown(*policy)
	case q.Effective.Known:
		return 0
	}
	return -1
}

func positiveOrUnknown(n int64) int {
	if n <= 0 {
		return -1
	}
	return int(n)
}

// ttl returns how long a message stays in the queue. The smaller value of argument and policy
// applies. The result is 0 if there is no time-to-live, and -1 if it is unknown. A time-to-live of
// 0, with which messages expire immediately, is returned as 1 ms.
func (q *managedQueue) ttl() time.Duration {
	argument, policy := q.Arguments.MessageTTL, q.Effective.MessageTTL
	if argument == nil && policy == nil {
		return time.Duration(q.limit(nil, nil))
	}
	least := int64(math.MaxInt64 / time.Millisecond)
	for _, ms := range []*int64{argument, policy} {
		if ms != nil {
			least = min(least, max(1, *ms))
		}
	}
	return time.Duration(least) * time.Millisecond
}

// deadLetters describes where the queue's dead letters go. An argument overrides a policy.
func (q *managedQueue) deadLetters() string {
	exchange, key := q.deadLetterTo()
	switch {
	case exchange == nil && !q.Effective.Known:
		return ""
	case exchange == nil:
		return deadletter.DeadLettersNowhere
	case *exchange != "" && key != nil:
		return fmt.Sprintf("exchange %s with key %s", deadletter.Visible(*exchange), deadletter.Visible(*key))
	case *exchange != "":
		return "exchange " + deadletter.Visible(*exchange)
	case key != nil:
		return "queue " + deadletter.Visible(*key)
	}
	return "the queue that its routing key names"
}

// Queue fetches one queue.
func (m *Management) Queue(ctx context.Context, vhost, name string) (*managedQueue, error) {
	if !canAsk(name) {
		return nil, fmt.Errorf("management: queue %s: %w", deadletter.Visible(name), errNotAsked)
	}
	var q managedQueue
	err := m.get(ctx, "/api/queues/"+url.PathEscape(vhost)+"/"+url.PathEscape(name), &q)
	if err != nil {
		return nil, fmt.Errorf("management: queue %s: %w", deadletter.Visible(name), err)
	}
	return &q, nil
}

// lag is the maximum time that the management API needs to show a quorum queue completely. After a
// broker restart, it needs 10 s on 3.10.8 and 4.0.5, and 5 s on 4.3.6. After a declaration, it
// needs less (see Management).
const lag = 15 * time.Second

// isResting reports whether dlo sends the management API no requests for now. This is so for a
// short time after the API did not respond to a request.
func (m *Management) isResting() bool {
	until := m.rest.Load()
	return until != nil && time.Now().Before(*until)
}

// maxAnswer is the maximum number of bytes that are read from one response. It is enough for about
// 250,000 bindings of a vhost, which the management API returns in one response.
const maxAnswer = 64 << 20

func (m *Management) get(ctx context.Context, path string, into any) error {
	if m.isResting() {
		return fmt.Errorf("%w: %v", errSilent, m.why.Load())
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, m.base+path, nil)
	if err != nil {
		return err
	}
	r.SetBasicAuth(m.user, m.password.read())
	answer, err := m.client.Do(r)
	if err != nil {
		err = withoutURL(err)
		if ctx.Err() == nil {
			rest := managementRest
			if errors.Is(err, syscall.ECONNREFUSED) {
				rest = refusedRest
			}
			m.why.Store(err.Error())
			until := time.Now().Add(rest)
			m.rest.Store(&until)
		}
		return err
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return errNoQueue
	case http.StatusBadRequest:
		return errBadRequest
	case http.StatusUnauthorized, http.StatusForbidden:
		var why struct{ Reason string } // "Login failed" or "Not management user" (3.10.8, 4.0.5, 4.3.6)
		_ = json.NewDecoder(io.LimitReader(answer.Body, 4096)).Decode(&why)
		text := answer.Status
		if why.Reason != "" {
			text += ": " + deadletter.Cut(deadletter.Visible(why.Reason), 200)
		}
		if m.user == "" {
			text += ". The URL has no user; it looks like http://user:password@host:15672"
		}
		return fmt.Errorf("%w: it answered %s", errMayNot, text)
	default:
		return fmt.Errorf("the API answered %s", answer.Status)
	}
	return json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(into)
}

// Facts returns what the broker reports about a queue. All facts are unknown if there is no
// management API or if it does not respond.
func (l *Link) Facts(ctx context.Context, queue string) deadletter.QueueFacts {
	if l.management.Load() == nil {
		return deadletter.UnknownQueue
	}
	q, err := l.management.Load().Queue(ctx, l.vhost, queue)
	if errors.Is(err, errNoQueue) {
		return l.missingFacts(queue)
	}
	if err != nil { // the check of dlo's own queues reports this as a problem
		f := deadletter.UnknownQueue
		f.Silent = !errors.Is(err, errNotAsked)
		return f
	}
	f := deadletter.QueueFacts{
		Known:        true,
		Exists:       true,
		Consumers:    -1,
		Ready:        -1,
		Unacked:      -1,
		TTL:          q.ttl(),
		Stream:       q.Type == "stream",
		SingleActive: q.Arguments.SingleActive,
		DeadLetters:  q.deadLetters(),
		LeadsOn:      l.leadsOn(q),
		MaxLength:    q.limit(q.Arguments.MaxLength, q.Effective.MaxLength),
		MaxBytes:     q.limit(q.Arguments.MaxBytes, q.Effective.MaxBytes),
		Form:         fmt.Sprint(q.Type, q.Durable, q.AutoDelete, q.Exclusive, q.Arguments.all),
	}
	if q.Consumers != nil {
		f.Consumers = *q.Consumers
	}
	if q.Ready != nil {
		f.Ready = *q.Ready
	}
	if q.Unacked != nil {
		f.Unacked = *q.Unacked
	}
	return f
}
