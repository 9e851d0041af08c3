package rabbitmq

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	amqp "github.com/rabbitmq/amqp091-go"
)

const (
	epochQueues     = "dlo.epoch.*"       // queues for markers, locks and turns of inboxes
	defaultExchange = "amq.default"       // the name of the default exchange in the permissions of RabbitMQ
	rightAgain      = 10 * time.Second    // minimum wait before dlo checks a missing permission again
	preflightWait   = 5 * time.Second     // how long dlo waits for a reply that a broker under an alarm does not send
	nobody          = "dlo.epoch.nobody." // prefix of a queue name that does not exist; random text follows
)

// assumedRights returns the permissions that a link always needs. None of them has been checked
// yet.
func (l *Link) assumedRights() []deadletter.Right {
	list := []deadletter.Right{
		{
			Operation: "write",
			Resource:  defaultExchange,
			For:       "sending retries and requeues",
			Severity:  deadletter.SeverityPage,
		},
		{
			Operation: "configure",
			Resource:  epochQueues,
			For:       "noticing a restart of the broker, and keeping a second dlo out of the same inbox and store",
			Severity:  deadletter.SeverityNotify,
		},
		{
			Operation: "read",
			Resource:  epochQueues,
			For:       "reading an inbox only after its last session has ended",
			Severity:  deadletter.SeverityNotify,
		},
	}
	for _, q := range l.broker.Inboxes {
		list = append(list, deadletter.Right{
			Operation: "read",
			Resource:  q,
			For:       "taking letters in",
			Severity:  deadletter.SeverityPage,
		})
	}
	for i := range list {
		list[i].State, list[i].Since = deadletter.RightAssumed, time.Now()
	}
	return list
}

// noteRight records what the reply of the broker says about a permission, and returns whether the
// permission was refused. A reply that is neither nil nor ACCESS_REFUSED says nothing.
func (l *Link) noteRight(operation, resource string, err error) (refused bool) {
	refused = isCode(err, amqp.AccessRefused) && strings.Contains(err.Error(), "access to ")
	if err != nil && !refused {
		return false
	}
	state := deadletter.RightProved
	if refused {
		state = deadletter.RightRefused
	}
	l.updateStatus(func(s *deadletter.BrokerStatus) {
		i := slices.IndexFunc(
			s.Rights, func(r deadletter.Right) bool { return r.Operation == operation && r.Resource == resource },
		)
		if i < 0 || s.Rights[i].State == state {
			return
		}
		s.Rights = slices.Clone(s.Rights) // others may be reading the old slice
		s.Rights[i].State, s.Rights[i].Since = state, time.Now()
		if refused {
			l.log.Warn(
				"a right is missing", "user", s.User, "operation", operation, "resource", resource, "err",
				brokerReason(err), "cure", s.Grant,
			)
		} else {
			l.log.Info("a right is proved", "user", s.User, "operation", operation, "resource", resource)
		}
	})
	return refused
}

// addRight adds a permission that only some configurations need.
func (l *Link) addRight(r deadletter.Right) {
	l.updateStatus(func(s *deadletter.BrokerStatus) {
		if slices.ContainsFunc(
			s.Rights, func(o deadletter.Right) bool { return o.Operation == r.Operation && o.Resource == r.Resource },
		) {
			return
		}
		r.State, r.Since = deadletter.RightAssumed, time.Now()
		s.Rights = append(slices.Clone(s.Rights), r)
		s.Grant = l.grantCommand(s.Rights)
	})
}

// grantCommand returns the command that gives dlo's user all permissions that dlo can use. In
// RabbitMQ, a user has one regular expression each for configure, write and read in a vhost. The
// command replaces all three.
func (l *Link) grantCommand(rights []deadletter.Right) string {
	names := map[string][]string{"write": {`amq\.default`}}
	add := func(operation, name string) {
		if !deadletter.OwnQueue(name) && name != defaultExchange {
			names[operation] = append(names[operation], regexp.QuoteMeta(name))
		}
	}
	if l.broker.Exchange != "" && len(l.broker.Inboxes) > 0 { // dlo declares and binds the exchange and the first inbox
		for _, operation := range []string{"configure", "write", "read"} {
			add(operation, l.broker.Exchange)
			add(operation, l.broker.Inboxes[0])
		}
	}
	for _, r := range rights {
		add(r.Operation, r.Resource)
	}
	expression := func(operation string) string {
		list := append([]string{`dlo\..*`}, names[operation]...)
		slices.Sort(list)
		return quoted("^(" + strings.Join(slices.Compact(list), "|") + ")$")
	}
	return fmt.Sprintf(
		"rabbitmqctl set_permissions -p %s %s %s %s %s", quoted(l.vhost), quoted(l.user), expression("configure"),
		expression("write"), expression("read"),
	)
}

// mayWrite checks whether dlo may publish. It publishes a mandatory message to a queue that does
// not exist. If the user may publish, the broker returns the message. If not, the broker closes the
// channel (3.10.8, 4.0.5, 4.3.6). A broker under an alarm does not reply. In that case, it stays
// unknown whether dlo may publish.
func (l *Link) mayWrite(ctx context.Context, conn *amqp.Connection) bool {
	ch, err := conn.Channel()
	if err != nil {
		return true
	}
	defer func() { go ch.Close() }() // a broker under an alarm does not reply to the close
	closed, returned := ch.NotifyClose(make(chan *amqp.Error, 1)), ch.NotifyReturn(make(chan amqp.Return, 1))
	if err := ch.PublishWithContext(
		ctx, "", nobody+string(deadletter.NewToken()), true, false, amqp.Publishing{},
	); err != nil {
		return true
	}
	select {
	case <-returned:
		l.noteRight("write", defaultExchange, nil)
	case err := <-closed:
		return err == nil || !l.noteRight("write", defaultExchange, err)
	case <-time.After(preflightWait):
	case <-ctx.Done():
	}
	return true
}

// mayRead checks whether dlo may read a queue, and takes nothing from it. It consumes with an
// argument that is not valid. The broker checks the permission before it rejects the argument
// (3.10.8, 4.0.5, 4.3.6).
func (l *Link) mayRead(conn *amqp.Connection, queue string) error {
	err := onChannel(conn, func(ch *amqp.Channel) error {
		_, err := ch.Consume(queue, "rights", false, false, false, false, amqp.Table{"x-priority": "none"})
		return err
	})
	if isCode(err, amqp.PreconditionFailed) {
		err = nil
	}
	if l.noteRight("read", queue, err) {
		return newRefusal(
			deadletter.ErrUnavailable, "user %s may not read %s (%s). Grant it: %s", deadletter.Visible(l.user),
			deadletter.Visible(queue), brokerReason(err), l.Status().Grant,
		)
	}
	return nil
}

// lookAtRights checks again whether dlo may use the queues dlo.epoch.*, if the broker has refused
// this before. Without this check, dlo would notice a new permission only when the next session
// begins.
func (l *Link) lookAtRights(ctx context.Context) {
	if !slices.ContainsFunc(l.Status().Rights, func(r deadletter.Right) bool {
		return r.Resource == epochQueues && r.State == deadletter.RightRefused
	}) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := l.dial(ctx, "rights")
	if err != nil {
		return
	}
	defer conn.CloseDeadline(time.Now().Add(closeWait))
	l.askForEpochs(conn)
}

// askForEpochs checks whether dlo may use queues whose names begin with dlo.epoch. For this, it
// declares a queue with a unique name, which is deleted with the connection.
func (l *Link) askForEpochs(conn *amqp.Connection) {
	probe := nobody + string(deadletter.NewToken())
	configure := onChannel(conn, func(ch *amqp.Channel) error {
		_, err := ch.QueueDeclare(probe, false, true, true, false, nil)
		return err
	})
	if l.noteRight("configure", epochQueues, configure) || configure != nil {
		return
	}
	l.noteRight("read", epochQueues, onChannel(conn, func(ch *amqp.Channel) error {
		_, err := ch.Consume(probe, "rights", true, true, false, false, nil)
		return err
	}))
}
