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

// message is one of a Publish under way.
type message struct {
	*deadletter.Publishing
	outcome *deadletter.Outcome
	confirm *amqp.DeferredConfirmation // nil = it was not sent
}

// end sets what became of a message.
func (m *message) end(kind deadletter.OutcomeKind, detail string) {
	m.outcome.Kind, m.outcome.Detail = kind, detail
}

// Publish sends messages to the default exchange, or to where they wait first, mandatory, and waits
// for their confirms: at most as many as Broker.InFlight allows. There is one outcome for each, in
// order: confirmed means acked and not returned. A message whose answer is lost is in doubt; one
// that did not leave is unsent.
//
// Each queue has a channel of its own. A broker answers nothing more on a channel that published to
// a quorum queue without a leader (3.10.8, 4.0.5, 4.3.6; silent_queue_test.go), and closes a
// channel whose message it refuses: either would put the messages of other queues in doubt.
func (l *Link) Publish(ctx context.Context, ps []deadletter.Publishing) []deadletter.Outcome {
	outcomes := make([]deadletter.Outcome, len(ps))
	shared := map[string][]*message{} // by queue
	var sends sync.WaitGroup
	for i := range ps {
		m := &message{Publishing: &ps[i], outcome: &outcomes[i]}
		m.outcome.Token = m.Token
		m.end(deadletter.OutcomeUnsent, "the broker is not connected")
		if m.Alone {
			sends.Go(func() { l.send(ctx, []*message{m}, true) })
			continue
		}
		queue := m.Queue
		if m.Wait != nil {
			queue = m.Wait.Queue
		}
		shared[queue] = append(shared[queue], m)
	}
	for _, ms := range shared {
		sends.Go(func() { l.send(ctx, ms, false) })
	}
	sends.Wait()
	return outcomes
}

// send sends messages on one channel and settles their outcomes; alone asks for a channel that
// nobody shares or uses again.
func (l *Link) send(ctx context.Context, ms []*message, alone bool) {
	c, err := l.channel(alone)
	if err != nil {
		return
	}
	sent, broken := l.write(c, ms)
	usable := l.answers(ctx, c, sent) && !broken
	for _, m := range ms {
		if m.Wait != nil && m.outcome.Kind != deadletter.OutcomeConfirmed { // it may be gone: declare it again
			l.mu.Lock()
			clear(l.publish.stands)
			l.mu.Unlock()
			break
		}
	}
	if usable && alone {
		c.ch.Close()
	} else if usable {
		l.release(c)
	}
}

// write hands messages to the connection until it takes no more, which is what broken says.
func (l *Link) write(c *confirming, ms []*message) (sent []*message, broken bool) {
	for _, m := range ms {
		if m.Wait != nil && !l.stands(*m.Wait) {
			m.end(deadletter.OutcomeUnsent, "its wait queue is not there")
			continue
		}
		if err := encodable(m.Publishing, c.frame); err != nil {
			m.end(deadletter.OutcomeRefused, "it cannot be encoded: "+deadletter.Visible(err.Error()))
			continue
		}
		exchange, mandatory := "", true
		if m.Wait != nil {
			exchange, mandatory = m.Wait.Exchange, !m.Wait.Delayed // an exchange that delays routes later, and would return all that is mandatory
		}
		var err error
		m.confirm, err = c.ch.PublishWithDeferredConfirm(exchange, m.Queue, mandatory, false, publishing(m.Properties, m.Body))
		switch {
		case err == nil:
			m.end(deadletter.OutcomeInDoubt, "no answer")
			sent = append(sent, m)
			continue
		// The client closes the channel some time after the error, so only the error can be asked.
		case errors.Is(err, amqp.ErrClosed):
			m.end(deadletter.OutcomeUnsent, "the connection ended before it was sent")
		default:
			m.end(deadletter.OutcomeInDoubt, "the connection ended while it was sent: "+deadletter.Visible(err.Error()))
		}
		return sent, true // The rest did not leave. Those before are waited for, and find the channel closed.
	}
	return sent, false
}

// stopGrace is how long confirms are waited for once the program is to stop. What has none then is
// in doubt at the next start.
const stopGrace = 5 * time.Second

// answers waits for the confirms of what was sent and says whether the channel is good for more.
// It waits for each confirm by itself, as NotifyPublish of the client holds those that come after a
// missing one back (amqp091-go v1.16.0).
func (l *Link) answers(ctx context.Context, c *confirming, sent []*message) bool {
	answered := make(chan *message, len(sent))
	for _, m := range sent {
		go func() { // ends with the channel at the latest
			<-m.confirm.Done()
			answered <- m
		}()
	}
	returned := map[deadletter.Token]string{}
	var grace <-chan time.Time
	stopping := ctx.Done()
	timeout := time.NewTimer(l.broker.ConfirmTimeout)
	defer timeout.Stop()
	for waiting := len(sent); waiting > 0; {
		select {
		case m := <-answered:
			note(returned, c.returns)
			if !m.confirm.Acked() && c.ch.IsClosed() { // the end of a channel reads as a nack too
				l.lost(sent, returned, <-c.closed)
				return false
			}
			m.confirmed(returned)
			waiting--
			timeout.Reset(l.broker.ConfirmTimeout)
		case <-stopping:
			stopping, grace = nil, time.After(stopGrace)
		case <-grace:
			doubt(sent, "no confirm before the program stopped")
			return false
		case <-timeout.C:
			if l.Status().Blocked != "" {
				timeout.Reset(l.broker.ConfirmTimeout)
				continue
			}
			doubt(sent, fmt.Sprintf("no confirm within %s", l.broker.ConfirmTimeout))
			go c.ch.Close() // which a silent queue holds up for a minute; it ends with the connection at the latest
			return false
		}
	}
	return true
}

// note takes the returns that have come. A return precedes its confirm on the wire (200 of 200 runs
// on each of 3.10.8, 4.0.5, 4.3.6), so that of a message that was confirmed is here already.
func note(returned map[deadletter.Token]string, returns <-chan amqp.Return) {
	for {
		select {
		case r, ok := <-returns:
			if !ok {
				return
			}
			token, _ := r.Headers[deadletter.HeaderToken].(string)
			returned[deadletter.Token(token)] = fmt.Sprintf("the broker returned it: %d %s", r.ReplyCode, deadletter.Visible(r.ReplyText))
		default:
			return
		}
	}
}

// confirmed settles a message that the broker has answered.
func (m *message) confirmed(returned map[deadletter.Token]string) {
	detail, back := returned[m.Token]
	switch {
	case !m.confirm.Acked():
		m.end(deadletter.OutcomeNacked, "the queue refused it")
	case back:
		m.end(deadletter.OutcomeReturned, detail)
	default:
		m.end(deadletter.OutcomeConfirmed, "")
	}
}

// lost settles what is left when the channel closed: what was acked counts. The broker does not say
// which message it closed for: a message that was sent by itself is that one, of more all without
// an answer are in doubt, and have to be sent again alone.
func (l *Link) lost(sent []*message, returned map[deadletter.Token]string, err *amqp.Error) {
	for _, m := range sent {
		if m.outcome.Kind == deadletter.OutcomeInDoubt && m.confirm.Acked() {
			m.confirmed(returned)
		}
	}
	if err == nil {
		doubt(sent, "the connection was closed")
		return
	}
	if !err.Server {
		doubt(sent, "the connection broke: "+deadletter.Visible(err.Reason))
		return
	}
	detail := fmt.Sprintf("the broker closed the channel: %d %s", err.Code, deadletter.Visible(err.Reason))
	if err.Code == amqp.AccessRefused { // of the user, and not of a message
		l.mayNot(sent[0].Wait, err)
		if len(sent) == 1 {
			sent[0].end(deadletter.OutcomeUnsent, detail)
			return
		}
	}
	refusal := err.Code == amqp.NotFound || err.Code == amqp.PreconditionFailed
	if refusal && len(sent) == 1 {
		sent[0].end(deadletter.OutcomeRefused, detail)
		return
	}
	doubt(sent, detail)
}

// mayNot keeps further messages back that the user may not publish: to a wait queue for a while, so
// that they wait in the store, and all others until it may.
func (l *Link) mayNot(wait *deadletter.Wait, err *amqp.Error) {
	if wait == nil {
		l.right("write", defaultExchange, err)
		l.refuses(true)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused[wait.Waiter] = refusedWaiter{time.Now().Add(waiterRest), explainWait(*wait, err).Error()}
	l.noteWaiters()
}

// doubt gives the reason to each message that has no answer.
func doubt(sent []*message, detail string) {
	for _, m := range sent {
		if m.outcome.Kind == deadletter.OutcomeInDoubt {
			m.outcome.Detail = detail
		}
	}
}
