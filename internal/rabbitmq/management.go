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
	"slices"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Management asks RabbitMQ's HTTP API. Its figures lag 1 to 6 s, and fields may be absent: absent
// is unknown, never 0 (measured on 3.10.8, 4.0.5, 4.3.6).
type Management struct {
	base           string
	user, password string
	client         http.Client
	rest           atomic.Pointer[time.Time] // until when it is not asked, as it did not answer; nil = it is
	why            atomic.Value              // a text: why it did not answer then
}

// errSilent says that the API did not answer a moment ago: a plan over many queues of a broker that
// is away must not wait for each of them.
var errSilent = errors.New("the API did not answer a moment ago")

// errMayNot says that the API does not answer this user: its password is wrong, or it has no tag.
var errMayNot = errors.New("the API refuses the user")

const (
	managementWait = 5 * time.Second  // for an answer
	managementRest = 10 * time.Second // before it is asked again after none came
	refusedRest    = time.Second      // the same, where nobody listened: that costs no wait
)

func newManagement(raw string) (*Management, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the management URL cannot be read; it looks like http://user:password@host:15672, with ? # and / in a password percent-encoded")
	}
	m := &Management{user: u.User.Username(), client: http.Client{Timeout: managementWait}}
	m.password, _ = u.User.Password()
	u.User = nil
	m.base = u.String()
	return m, nil
}

// errNoQueue says that the broker knows no queue of that name.
var errNoQueue = errors.New("no such queue")

// errNotAsked says that the API cannot be asked about a queue of that name: nothing is known of it.
var errNotAsked = errors.New("the API has no address for this name")

// askable says whether a name can stand at the end of a path: the API reads paths as UTF-8, takes
// dots for folders, and lists all queues where there is no name. x-death may have any bytes.
func askable(name string) bool {
	return utf8.ValidString(name) && name != "" && name != "." && name != ".." && len(name) <= deadletter.MaxQueueName
}

// managedQueue is a queue as the API shows it.
type managedQueue struct {
	Name          string         `json:"name"`
	Type          string         `json:"type"`
	Consumers     *int           `json:"consumers"`
	Ready         *int           `json:"messages_ready"`
	Unacked       *int           `json:"messages_unacknowledged"`
	Arguments     queueArguments `json:"arguments"`
	Policy        *string        `json:"policy"`          // its name
	Operator      *string        `json:"operator_policy"` // its name
	Effective     policyInForce  `json:"effective_policy_definition"`
	DeliveryLimit limitInForce   `json:"delivery_limit"`
}

// limitInForce is the delivery limit that holds: a number, or the text "unlimited" (4.3.6, some
// seconds after the queue was declared). Anything else is unknown.
type limitInForce struct{ number *int64 }

// UnmarshalJSON never fails: what a queue says of its limit must not hide the rest.
func (l *limitInForce) UnmarshalJSON(text []byte) error {
	var n int64
	switch {
	case string(text) == `"unlimited"`:
		n = -1
		l.number = &n
	case string(text) != "null" && json.Unmarshal(text, &n) == nil:
		l.number = &n
	}
	return nil
}

type queueArguments struct {
	DeliveryLimit *int64  `json:"x-delivery-limit"`
	MaxLength     *int64  `json:"x-max-length"`
	MaxBytes      *int64  `json:"x-max-length-bytes"`
	MessageTTL    *int64  `json:"x-message-ttl"` // milliseconds
	Expires       *int64  `json:"x-expires"`     // milliseconds
	Exchange      *string `json:"x-dead-letter-exchange"`
	Key           *string `json:"x-dead-letter-routing-key"`
	SingleActive  bool    `json:"x-single-active-consumer"` // an argument only: a policy cannot set it
}

// policyInForce is what the policy and the operator policy of a queue make together: of two lengths
// the smaller. A fresh queue does not show it for 1 to 6 s, and then Known is false; without any
// policy it is an empty object.
type policyInForce struct {
	Known         bool    `json:"-"`
	DeliveryLimit *int64  `json:"delivery-limit"`
	MaxLength     *int64  `json:"max-length"`
	MaxBytes      *int64  `json:"max-length-bytes"`
	MessageTTL    *int64  `json:"message-ttl"`
	Expires       *int64  `json:"expires"`
	Exchange      *string `json:"dead-letter-exchange"`
	Key           *string `json:"dead-letter-routing-key"`
}

// UnmarshalJSON also takes the empty list as which Erlang may write an empty object.
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

// mayDelete says that the queue has a delivery limit, so that the broker deletes letters after lost
// connections. Any limit that is not negative wins over one that is, wherever it is set: as an
// argument, by a policy or by an operator policy. Without any, 4.0 and later have a limit of 20 and
// 3.x has none. A negative one means no limit on 4.0 and later, and 0 on 3.x (measured on 3.10.8,
// 4.0.5, 4.3.6).
func (q *managedQueue) mayDelete(version string) bool {
	if q.Type != "quorum" {
		return false
	}
	limits := slices.DeleteFunc([]*int64{q.Arguments.DeliveryLimit, q.Effective.DeliveryLimit, q.DeliveryLimit.number}, func(l *int64) bool { return l == nil })
	if atLeast(version, 4, 0) {
		return len(limits) == 0 || slices.ContainsFunc(limits, func(l *int64) bool { return *l >= 0 })
	}
	return len(limits) > 0
}

// deliveryLimit returns the delivery limit of a queue that has one (mayDelete), or of which nobody
// says it, as q is nil: the smallest that is set, or the one that a queue has by itself.
func (q *managedQueue) deliveryLimit() int {
	limit := int64(-1)
	if q != nil {
		for _, l := range []*int64{q.Arguments.DeliveryLimit, q.Effective.DeliveryLimit, q.DeliveryLimit.number} {
			if l != nil && *l >= 0 && (limit < 0 || *l < limit) {
				limit = *l
			}
		}
	}
	if limit < 0 {
		return defaultDeliveryLimit
	}
	return int(limit)
}

const defaultDeliveryLimit = 20 // of a quorum queue on 4.0 and later

// limit returns the bound that an argument and a policy make: the smaller one holds (the same on
// 3.10.8, 4.0.5, 4.3.6). 0 = none, -1 = unknown, which a bound of 0 is shown as, too.
func (q *managedQueue) limit(argument, policy *int64) int {
	switch {
	case argument != nil && policy != nil:
		return bound(min(*argument, *policy))
	case argument != nil:
		return bound(*argument)
	case policy != nil:
		return bound(*policy)
	case q.Effective.Known:
		return 0
	}
	return -1
}

func bound(n int64) int {
	if n <= 0 {
		return -1
	}
	return int(n)
}

// ttl is how long a message stays in the queue, as QueueFacts has it. Of an argument and a policy
// the smaller holds, and 0 lets a message expire at once.
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

// deadLetters says in words where the queue's dead letters go: an argument wins over a policy.
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

// Queue asks for one queue.
func (m *Management) Queue(ctx context.Context, vhost, name string) (*managedQueue, error) {
	if !askable(name) {
		return nil, fmt.Errorf("management: queue %s: %w", deadletter.Visible(name), errNotAsked)
	}
	var q managedQueue
	err := m.get(ctx, "/api/queues/"+url.PathEscape(vhost)+"/"+url.PathEscape(name), &q)
	if err != nil {
		return nil, fmt.Errorf("management: queue %s: %w", deadletter.Visible(name), err)
	}
	return &q, nil
}

// Own asks for the queues whose names begin as those of dlo do, at most 500 of them.
func (m *Management) Own(ctx context.Context, vhost string) ([]managedQueue, error) {
	var page struct {
		Items []managedQueue `json:"items"`
	}
	if err := m.get(ctx, "/api/queues/"+url.PathEscape(vhost)+`?page=1&page_size=500&use_regex=true&name=%5Edlo%5C.`, &page); err != nil {
		return nil, fmt.Errorf("management: queues of dlo: %w", err)
	}
	return page.Items, nil
}

// lag is how long the API may take to show a quorum queue in full: 10 s after a restart of the
// broker on 3.10.8 and 4.0.5, 5 s on 4.3.6; less after a declaration (see Management).
const lag = 15 * time.Second

// KnownQueue asks for a queue that is there until the API shows its type and, of a quorum queue,
// what its policies say, for as long as the API may lag. What a broker without statistics never
// shows is missing in the answer. A patient caller waits as long for an API that does not answer.
func (m *Management) KnownQueue(ctx context.Context, vhost, name string, patient bool) (*managedQueue, error) {
	for began := time.Now(); ; {
		q, err := m.Queue(ctx, vhost, name)
		over := time.Since(began) > lag || m.resting() && !patient
		switch {
		case err == nil && q.Type != "" && (over || q.Type != "quorum" || q.Effective.Known):
			return q, nil
		case err == nil:
			err = errors.New("it does not show the type of the queue yet")
		}
		if over {
			return nil, err
		}
		if err := sleep(ctx, lag/50); err != nil {
			return nil, err
		}
	}
}

// resting says that the API did not answer a moment ago.
func (m *Management) resting() bool {
	until := m.rest.Load()
	return until != nil && time.Now().Before(*until)
}

// maxAnswer bounds what is read of an answer, bytes.
const maxAnswer = 8 << 20

func (m *Management) get(ctx context.Context, path string, into any) error {
	if m.resting() {
		return fmt.Errorf("%w: %v", errSilent, m.why.Load())
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, m.base+path, nil)
	if err != nil {
		return err
	}
	r.SetBasicAuth(m.user, m.password)
	answer, err := m.client.Do(r)
	if err != nil {
		err = scrub(err)
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
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w: it answered %s", errMayNot, answer.Status)
	default:
		return fmt.Errorf("the API answered %s", answer.Status)
	}
	return json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(into)
}

// Facts returns what the broker says of a queue; unknown where there is no management API or it
// does not answer.
func (l *Link) Facts(ctx context.Context, queue string) deadletter.QueueFacts {
	if l.management == nil {
		return deadletter.UnknownQueue
	}
	q, err := l.management.Queue(ctx, l.vhost, queue)
	if errors.Is(err, errNoQueue) {
		return l.missing(queue)
	}
	if err != nil { // which the look at the queues of dlo makes a problem
		f := deadletter.UnknownQueue
		f.Silent = !errors.Is(err, errNotAsked)
		return f
	}
	f := deadletter.QueueFacts{
		Known: true, Exists: true, Consumers: -1, Ready: -1, Unacked: -1, TTL: q.ttl(), Stream: q.Type == "stream", SingleActive: q.Arguments.SingleActive, DeadLetters: q.deadLetters(), LeadsOn: l.leadsOn(q),
		MaxLength: q.limit(q.Arguments.MaxLength, q.Effective.MaxLength), MaxBytes: q.limit(q.Arguments.MaxBytes, q.Effective.MaxBytes),
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
