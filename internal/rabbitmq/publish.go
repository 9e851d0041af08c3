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

// message is one message that a running call of Publish sends.
type message struct {
	*deadletter.Publishing
	outcome *deadletter.Outcome
	confirm *amqp.DeferredConfirmation // nil = the message was not sent
}

// setOutcome sets the outcome of a message.
func (m *message) setOutcome(kind deadletter.OutcomeKind, detail string) {
	m.outcome.Kind, m.outcome.Detail = kind, detail
}

// Publish sends messages to the default exchange. A message with a Wait goes to the exchange of
// that Wait instead. Publish sets the flag mandatory and waits for the confirms, with at most
// Broker.InFlight messages unconfirmed. It returns one outcome for each message, in order.
// Confirmed means acked and not returned. A message without a reply is in doubt. A message that did
// not leave dlo is unsent.
//
// Each queue has its own channel. A broker stops replying on a channel that published to a quorum
// queue without a leader (3.10.8, 4.0.5, 4.3.6; silent_queue_test.go). A broker closes a channel if
// it rejects a message that was published on that channel. With a shared channel, both would put
// the messages for other queues in doubt.
//
// The parameter "session" is the number of a publishing connection. Publish sends nothing over
// another one: only over this connection, the caller knows that it may send (LockStore).
func (l *Link) Publish(ctx context.Context, session int64, ps []deadletter.Publishing) []deadletter.Outcome {
	outcomes := make([]deadletter.Outcome, len(ps))
	shared := map[string][]*message{} // the messages of each queue
	var sends sync.WaitGroup
	for i := range ps {
		m := &message{Publishing: &ps[i], outcome: &outcomes[i]}
		m.outcome.Token = m.Token
		m.setOutcome(deadletter.OutcomeUnsent, "the broker is not connected")
		if m.Alone {
			sends.Go(func() { l.send(ctx, session, []*message{m}, true) })
			continue
		}
		queue := m.Queue
		if m.Wait != nil {
			queue = m.Wait.Queue
		}
		shared[queue] = append(shared[queue], m)
	}
	for _, ms := range shared {
		sends.Go(func() { l.send(ctx, session, ms, false) })
	}
	sends.Wait()
	return outcomes
}

// send sends messages on one channel and sets their outcomes. If the parameter "alone" is true, it
// uses a channel that is neither shared nor used again.
func (l *Link) send(ctx context.Context, session int64, ms []*message, alone bool) {
	c, err := l.channel(session, alone)
	if err != nil {
		return
	}
	sent, broken := l.write(c, ms)
	usable := l.awaitConfirms(ctx, c, sent) && !broken
	for _, m := range ms {
		// the wait queue may not exist any more, so dlo declares it again
		if m.Wait != nil && m.outcome.Kind != deadletter.OutcomeConfirmed {
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

// write passes messages to the connection. If the connection accepts no more messages, write
// returns early, and the result "broken" is true.
func (l *Link) write(c *confirming, ms []*message) (sent []*message, broken bool) {
	for _, m := range ms {
		if m.Wait != nil && !l.hasWait(*m.Wait) {
			m.setOutcome(deadletter.OutcomeUnsent, "its wait queue is not there")
			continue
		}
		if err := whyNotEncodable(m.Publishing, c.frame); err != nil {
			m.setOutcome(deadletter.OutcomeRefused, "it cannot be encoded: "+deadletter.Visible(err.Error()))
			continue
		}
		exchange, mandatory := "", true
		if m.Wait != nil {
			// an exchange of the delay plugin routes later, and would return every mandatory
			// message
			exchange, mandatory = m.Wait.Exchange, !m.Wait.Delayed
		}
		var err error
		m.confirm, err = c.ch.PublishWithDeferredConfirm(
			exchange, m.Queue, mandatory, false, publishing(m.Properties, m.Body),
		)
		switch {
		case err == nil:
			m.setOutcome(deadletter.OutcomeInDoubt, "no answer")
			sent = append(sent, m)
			continue
		// When a send fails with ErrClosed, the AMQP client library closes the channel only some
		// time later. Therefore this code can check only the error, and not whether the channel is
		// closed.
		case errors.Is(err, amqp.ErrClosed):
			m.setOutcome(deadletter.OutcomeUnsent, "the connection ended before it was sent")
		default:
			m.setOutcome(
				deadletter.OutcomeInDoubt, "the connection ended while it was sent: "+deadletter.Visible(err.Error()),
			)
		}
		// The remaining messages were not sent. The function awaitConfirms waits for the messages
		// before them and finds the channel closed.
		return sent, true
	}
	return sent, false
}

// stopGrace is how long a dlo that stops waits for confirms. If a message has no confirm by then,
// the next dlo does not know whether the message has arrived.
const stopGrace = 5 * time.Second

// awaitConfirms waits for the confirms of the sent messages and reports whether the channel can be
// used again. It waits for each confirm separately, and does not use NotifyPublish of the AMQP
// client library. If one confirm is missing, NotifyPublish withholds the ones that follow
// (amqp091-go v1.16.0).
func (l *Link) awaitConfirms(ctx context.Context, c *confirming, sent []*message) bool {
	answered := make(chan *message, len(sent))
	for _, m := range sent {
		go func() { // ends at the latest when the channel ends
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
			collectReturns(returned, c.returns)
			if !m.confirm.Acked() && c.ch.IsClosed() { // a channel that closed looks like a nack too
				l.endUnanswered(sent, returned, <-c.closed)
				return false
			}
			m.setConfirmed(returned)
			waiting--
			timeout.Reset(l.broker.ConfirmTimeout)
		case <-stopping:
			stopping, grace = nil, time.After(stopGrace)
		case <-grace:
			setDoubtDetail(sent, "no confirm before the program stopped")
			return false
		case <-timeout.C:
			if l.Status().Blocked != "" {
				timeout.Reset(l.broker.ConfirmTimeout)
				continue
			}
			setDoubtDetail(sent, fmt.Sprintf("no confirm within %s", l.broker.ConfirmTimeout))
			// if the queue does not respond, the close takes a minute; it ends at the latest with
			// the connection
			go c.ch.Close()
			return false
		}
	}
	return true
}

// collectReturns collects the messages that the broker has returned so far. The broker returns a
// message before it confirms the message (200 of 200 runs on each of 3.10.8, 4.0.5, 4.3.6). If a
// message is confirmed, its return has therefore already arrived.
func collectReturns(returned map[deadletter.Token]string, returns <-chan amqp.Return) {
	for {
		select {
		case r, ok := <-returns:
			if !ok {
				return
			}
			token, _ := r.Headers[deadletter.HeaderToken].(string)
			returned[deadletter.Token(token)] = fmt.Sprintf(
				"the broker returned it: %d %s", r.ReplyCode, deadletter.Visible(r.ReplyText),
			)
		default:
			return
		}
	}
}

// setConfirmed sets the outcome of a message that the broker has acked or nacked.
func (m *message) setConfirmed(returned map[deadletter.Token]string) {
	detail, back := returned[m.Token]
	switch {
	case !m.confirm.Acked():
		m.setOutcome(deadletter.OutcomeNacked, "the queue refused it")
	case back:
		m.setOutcome(deadletter.OutcomeReturned, detail)
	default:
		m.setOutcome(deadletter.OutcomeConfirmed, "")
	}
}

// endUnanswered sets the outcomes of the messages that had no reply when the channel closed. Acks
// that arrived before still count.
//
// The broker does not say for which message it closed the channel. If only one message was sent,
// that message was the reason. Otherwise all messages without a reply are in doubt, which means
// that dlo does not know whether they have arrived. dlo then has to send each of them again alone.
func (l *Link) endUnanswered(sent []*message, returned map[deadletter.Token]string, err *amqp.Error) {
	for _, m := range sent {
		if m.outcome.Kind == deadletter.OutcomeInDoubt && m.confirm.Acked() {
			m.setConfirmed(returned)
		}
	}
	if err == nil {
		setDoubtDetail(sent, "the connection was closed")
		return
	}
	if !err.Server {
		setDoubtDetail(sent, "the connection broke: "+deadletter.Visible(err.Reason))
		return
	}
	detail := fmt.Sprintf("the broker closed the channel: %d %s", err.Code, deadletter.Visible(err.Reason))
	if err.Code == amqp.AccessRefused { // the permissions of the user are the reason, not a message
		l.mayNot(sent[0].Wait, err)
		if len(sent) == 1 {
			sent[0].setOutcome(deadletter.OutcomeUnsent, detail)
			return
		}
	}
	refusal := err.Code == amqp.NotFound || err.Code == amqp.PreconditionFailed
	if refusal && len(sent) == 1 {
		sent[0].setOutcome(deadletter.OutcomeRefused, detail)
		return
	}
	setDoubtDetail(sent, detail)
}

// mayNot records that the broker has refused a message because the user may not publish it. If the
// message was for a wait queue, dlo does not use the waiter of that queue for a while. Letters then
// wait in dlo's store for their retries. If the message was for any other queue, dlo publishes no
// messages until the user may publish.
func (l *Link) mayNot(wait *deadletter.Wait, err *amqp.Error) {
	if wait == nil {
		l.noteRight("write", defaultExchange, err)
		l.setRefused(true)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused[wait.Waiter] = refusedWaiter{time.Now().Add(waiterRest), explainWait(*wait, err).Error()}
	l.noteWaiters()
}

// setDoubtDetail sets the reason why messages are in doubt. A message is in doubt if the broker has
// neither confirmed nor refused it, so that it may or may not have arrived.
func setDoubtDetail(sent []*message, detail string) {
	for _, m := range sent {
		if m.outcome.Kind == deadletter.OutcomeInDoubt {
			m.outcome.Detail = detail
		}
	}
}
