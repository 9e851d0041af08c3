package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

// publisher is the publishing connection and its idle channels.
type publisher struct {
	conn    *amqp.Connection
	blocked bool
	idle    []*confirming
	stands  map[deadletter.Wait]bool // wait queues that were declared since it stands
}

// confirming is a channel in confirm mode that one Publish at a time uses. The client's deferred confirmations are no use here: when a channel closes they read as nacks
// (amqp091-go v1.16.0), and an unknown outcome is not a nack.
type confirming struct {
	ch       *amqp.Channel
	confirms chan amqp.Confirmation // buffered for all in flight, so that the client's reader never blocks
	returns  chan amqp.Return
	closed   chan *amqp.Error
}

// steady is how long a connection has to stand before its end counts as the first failure again.
const steady = 10 * time.Second

// Run keeps the publishing connection until ctx ends.
func (l *Link) Run(ctx context.Context) error {
	var b backoff
	for ctx.Err() == nil {
		conn, err := l.dial(ctx, "publisher")
		if err == nil {
			began := time.Now()
			l.log.Info("publisher connected", "version", l.Status().Version)
			err = l.hold(ctx, conn)
			if time.Since(began) > steady {
				b.failures = 0
			}
		}
		if ctx.Err() != nil {
			break
		}
		wait := b.next()
		l.update(func(s *deadletter.BrokerStatus) {
			if s.Connected || s.Reason == "" {
				s.Since = time.Now()
			}
			s.Connected, s.Blocked, s.Reason, s.NextTry = false, "", err.Error(), time.Now().Add(wait)
		})
		l.log.Warn("publisher not connected", "err", err, "next_try", wait)
		sleep(ctx, wait)
	}
	return nil
}

// hold offers a connection for publishing until it ends, and returns why it ended.
func (l *Link) hold(ctx context.Context, conn *amqp.Connection) error {
	closed := conn.NotifyClose(make(chan *amqp.Error, 1))
	blocked := conn.NotifyBlocked(make(chan amqp.Blocking, 8))
	set := func(p publisher, status func(*deadletter.BrokerStatus)) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.publish = p
		status(&l.status)
		close(l.changed)
		l.changed = make(chan struct{})
	}
	set(publisher{conn: conn, stands: map[deadletter.Wait]bool{}}, func(s *deadletter.BrokerStatus) {
		s.Connected, s.Reason, s.Blocked, s.Since, s.NextTry = true, "", "", time.Now(), time.Time{}
	})
	defer func() {
		set(publisher{}, func(s *deadletter.BrokerStatus) {
			s.Connected, s.Since, s.Reason = false, time.Now(), "the connection ended"
		})
		conn.CloseDeadline(time.Now().Add(closeWait))
	}()
	for {
		select {
		case err := <-closed:
			return closeError(err)
		case b, ok := <-blocked:
			if !ok {
				return amqp.ErrClosed
			}
			l.mu.Lock()
			l.publish.blocked = b.Active
			l.status.Blocked = ""
			if b.Active {
				l.status.Blocked = deadletter.Visible(b.Reason)
			}
			close(l.changed)
			l.changed = make(chan struct{})
			l.mu.Unlock()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Ready waits until the broker is connected and takes messages.
func (l *Link) Ready(ctx context.Context) error {
	for {
		l.mu.Lock()
		ready, changed := l.publish.conn != nil && !l.publish.blocked, l.changed
		l.mu.Unlock()
		if ready {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// channel takes an idle channel or opens one; alone asks for one that nobody shares or uses again.
func (l *Link) channel(alone bool) (*confirming, error) {
	l.mu.Lock()
	conn := l.publish.conn
	if n := len(l.publish.idle); n > 0 && !alone {
		c := l.publish.idle[n-1]
		l.publish.idle = l.publish.idle[:n-1]
		l.mu.Unlock()
		return c, nil
	}
	l.mu.Unlock()
	if conn == nil {
		return nil, errors.New("the broker is not connected")
	}
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	if err := ch.Confirm(false); err != nil {
		return nil, err
	}
	return &confirming{
		ch: ch, confirms: ch.NotifyPublish(make(chan amqp.Confirmation, l.broker.InFlight)), returns: ch.NotifyReturn(make(chan amqp.Return, l.broker.InFlight)),
		closed: ch.NotifyClose(make(chan *amqp.Error, 1)),
	}, nil
}

// release gives a channel back for the next Publish, if it is still the connection's.
func (l *Link) release(c *confirming) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.publish.conn == nil || c.ch.IsClosed() {
		return
	}
	l.publish.idle = append(l.publish.idle, c)
}

// Publish sends messages to the default exchange, or where they wait first, mandatory, and waits for their confirms: at most as many as Broker.InFlight allows. There is one outcome for each, in order:
// confirmed means acked and not returned. A message whose answer is lost is in doubt; one that did not leave is unsent.
func (l *Link) Publish(ctx context.Context, ps []deadletter.Publishing) []deadletter.Outcome {
	outcomes := make([]deadletter.Outcome, 0, len(ps))
	var together []deadletter.Publishing
	for _, p := range ps {
		if !p.Alone {
			together = append(together, p)
		}
	}
	var mu sync.Mutex
	byToken := map[deadletter.Token]deadletter.Outcome{}
	send := func(ps []deadletter.Publishing, alone bool) {
		got := l.publishOn(ctx, ps, alone)
		mu.Lock()
		defer mu.Unlock()
		for _, o := range got {
			byToken[o.Token] = o
		}
	}
	var wg sync.WaitGroup
	for _, p := range ps {
		if p.Alone {
			wg.Go(func() { send([]deadletter.Publishing{p}, true) })
		}
	}
	send(together, false)
	wg.Wait()
	for _, p := range ps {
		outcomes = append(outcomes, byToken[p.Token])
	}
	return outcomes
}

// sending is one Publish under way: what is known of each message, by its place.
type sending struct {
	outcomes []deadletter.Outcome
	byTag    map[uint64]int
	returned map[deadletter.Token]string
}

func (l *Link) publishOn(ctx context.Context, ps []deadletter.Publishing, alone bool) []deadletter.Outcome {
	if len(ps) == 0 {
		return nil
	}
	s := sending{outcomes: make([]deadletter.Outcome, len(ps)), byTag: make(map[uint64]int, len(ps)), returned: map[deadletter.Token]string{}}
	for i, p := range ps {
		s.outcomes[i] = deadletter.Outcome{Token: p.Token, Kind: deadletter.OutcomeUnsent, Detail: "the broker is not connected"}
	}
	c, err := l.channel(alone)
	if err != nil {
		return s.outcomes
	}
	var broken error // why the connection took no more
	for i, p := range ps {
		exchange, mandatory := "", true
		if w := p.Wait; w != nil {
			if !l.stands(*w) {
				s.outcomes[i].Detail = "its wait queue is not there"
				continue
			}
			exchange, mandatory = w.Exchange, !w.Delayed // an exchange that delays routes later, and would return all that is mandatory
		}
		if err := encodable(&p); err != nil {
			s.outcomes[i].Kind, s.outcomes[i].Detail = deadletter.OutcomeRefused, "it cannot be encoded: "+deadletter.Visible(err.Error())
			continue
		}
		tag := c.ch.GetNextPublishSeqNo()
		if broken = c.ch.PublishWithContext(context.WithoutCancel(ctx), exchange, p.Queue, mandatory, false, publishing(p.Properties, p.Body)); broken != nil {
			// The client closes the channel some time after the error, so only the error itself can be asked.
			if errors.Is(broken, amqp.ErrClosed) {
				s.outcomes[i].Detail = "the connection ended before it was sent"
			} else {
				s.outcomes[i].Kind, s.outcomes[i].Detail = deadletter.OutcomeInDoubt, "the connection ended while it was sent: "+deadletter.Visible(broken.Error())
			}
			break // The rest did not leave. Those before are waited for, and find the channel closed.
		}
		s.outcomes[i].Kind, s.outcomes[i].Detail = deadletter.OutcomeInDoubt, "no answer"
		s.byTag[tag] = i
	}
	usable := l.answers(ctx, c, &s) && broken == nil
	for i, p := range ps {
		if p.Wait != nil && s.outcomes[i].Kind != deadletter.OutcomeConfirmed { // it may be gone: declare it anew
			l.mu.Lock()
			clear(l.publish.stands)
			l.mu.Unlock()
			break
		}
	}
	if usable {
		if alone {
			c.ch.Close()
		} else {
			l.release(c)
		}
	}
	return s.outcomes
}

// stopGrace is how long confirms are waited for once the program is to stop. What has none then is in doubt at the next start.
const stopGrace = 5 * time.Second

// answers waits for the confirms of a sending and says whether the channel is good for another.
func (l *Link) answers(ctx context.Context, c *confirming, s *sending) bool {
	waiting := len(s.byTag)
	var grace <-chan time.Time
	stopping := ctx.Done()
	timeout := time.NewTimer(l.broker.ConfirmTimeout)
	defer timeout.Stop()
	for waiting > 0 {
		select {
		case r, ok := <-c.returns:
			if ok {
				s.note(&r)
			}
		case confirm, ok := <-c.confirms:
			if !ok {
				s.closed(<-c.closed, waiting)
				return false
			}
			// A return precedes its confirm on the wire (200 of 200 runs on each of 3.10.8, 4.0.5, 4.3.6), so it is here already.
			for more := true; more; {
				select {
				case r, ok := <-c.returns:
					if more = ok; ok {
						s.note(&r)
					}
				default:
					more = false
				}
			}
			if i, ok := s.byTag[confirm.DeliveryTag]; ok {
				s.confirmed(i, confirm.Ack)
				delete(s.byTag, confirm.DeliveryTag)
				waiting--
			}
			timeout.Reset(l.broker.ConfirmTimeout)
		case <-stopping:
			stopping, grace = nil, time.After(stopGrace)
		case <-grace:
			s.doubt("no confirm before the program stopped")
			return false
		case <-timeout.C:
			if l.Status().Blocked != "" {
				timeout.Reset(l.broker.ConfirmTimeout)
				continue
			}
			s.doubt(fmt.Sprintf("no confirm within %s", l.broker.ConfirmTimeout))
			c.ch.Close()
			return false
		}
	}
	return true
}

func (s *sending) note(r *amqp.Return) {
	token, _ := r.Headers[deadletter.HeaderToken].(string)
	s.returned[deadletter.Token(token)] = fmt.Sprintf("the broker returned it: %d %s", r.ReplyCode, deadletter.Visible(r.ReplyText))
}

func (s *sending) confirmed(i int, ack bool) {
	o := &s.outcomes[i]
	detail, returned := s.returned[o.Token]
	switch {
	case !ack:
		o.Kind, o.Detail = deadletter.OutcomeNacked, "the queue refused it"
	case returned:
		o.Kind, o.Detail = deadletter.OutcomeReturned, detail
	default:
		o.Kind, o.Detail = deadletter.OutcomeConfirmed, ""
	}
}

// closed settles what is left when the channel closed. The broker does not say which message it closed for: with one waiting it is that one, with more all are in doubt and
// have to be sent again alone.
func (s *sending) closed(err *amqp.Error, waiting int) {
	if err == nil {
		s.doubt("the connection was closed")
		return
	}
	if !err.Server {
		s.doubt("the connection broke: " + deadletter.Visible(err.Reason))
		return
	}
	detail := fmt.Sprintf("the broker closed the channel: %d %s", err.Code, deadletter.Visible(err.Reason))
	refusal := err.Code == amqp.AccessRefused || err.Code == amqp.NotFound || err.Code == amqp.PreconditionFailed
	if refusal && waiting == 1 && len(s.outcomes) == 1 {
		for _, i := range s.byTag {
			s.outcomes[i].Kind, s.outcomes[i].Detail = deadletter.OutcomeRefused, detail
		}
		return
	}
	s.doubt(detail)
}

func (s *sending) doubt(detail string) {
	for _, i := range s.byTag {
		s.outcomes[i].Kind, s.outcomes[i].Detail = deadletter.OutcomeInDoubt, detail
	}
}
