package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
	amqp "github.com/rabbitmq/amqp091-go"
)

// Configured holds the names of objects that dlo uses in one vhost according to its configuration,
// such as its inboxes.
type Configured struct {
	Exchanges []string // exchanges to which policies lead dead letters
	Queues    []string // inboxes and queues of annotations
	Policies  []string // policies that dlo has set, and that it deletes before it leaves
}

// Leaving lists what Leave does in a vhost.
type Leaving struct {
	Removes []string  // objects to be removed, such as "queue dlo.letters"
	Keeps   []Remains // objects of the configuration that stay
	// Users lists the objects that send messages to those objects that the method Leave would
	// remove. As long as Users is not empty, Leave removes nothing.
	Users []string

	exchanges, queues []string // names of the objects to be removed
}

// Remains is an object that Leave removed from a vhost or left in it. Why is "" if the object was
// removed.
type Remains struct {
	What string // such as "queue dlo.letters"
	Why  string
}

// keptReason is the reason that Leave gives for keeping an object whose name is not reserved for
// dlo.
const keptReason = "its name does not begin with dlo., so others may use it; delete it yourself if nobody does"

// Leaving lists what Leave would do. It changes nothing. The error wraps ErrUnavailable if the
// vhost cannot be read.
func (l *Link) Leaving(ctx context.Context, c Configured) (Leaving, error) {
	s, err := l.Snapshot(ctx)
	switch {
	case errors.Is(err, errNoManagement):
		err = fmt.Errorf(
			"%w, so dlo cannot list what it declared. Set management, or delete these yourself once nothing uses them: exchange %s, queue %s, and all others with the prefix dlo. in their names",
			err, deadletter.Visible(strings.Join(c.Exchanges, ", ")), deadletter.Visible(strings.Join(c.Queues, ", ")),
		)
	case err == nil && len(s.Gaps) > 0:
		err = fmt.Errorf("%s: %s", s.Gaps[0].What, s.Gaps[0].Why)
	}
	if err != nil {
		return Leaving{}, fmt.Errorf("%w: %w", deadletter.ErrUnavailable, err)
	}
	return leavingOf(&s, c), nil
}

// leavingOf finds the objects of dlo in a vhost by their names. The prefix "dlo." is reserved for
// them.
func leavingOf(s *topology.Snapshot, c Configured) Leaving {
	var l Leaving
	note := func(kind, name string, removed *[]string, configured []string) {
		what := kind + " " + deadletter.Visible(name)
		switch {
		case deadletter.OwnQueue(name):
			l.Removes, *removed = append(l.Removes, what), append(*removed, name)
		case slices.Contains(configured, name):
			l.Keeps = append(l.Keeps, Remains{what, keptReason})
		}
	}
	for i := range s.Exchanges {
		note("exchange", s.Exchanges[i].Name, &l.exchanges, c.Exchanges)
	}
	for i := range s.Queues {
		if !s.Queues[i].Exclusive {
			note("queue", s.Queues[i].Name, &l.queues, c.Queues)
		}
	}
	l.Users = usersOf(s, c)
	return l
}

// usersOf returns the queues and exchanges that send messages to objects of dlo. Queues send them
// as dead letters, and exchanges send them through bindings or as alternate exchanges.
func usersOf(s *topology.Snapshot, c Configured) []string {
	var users []string
	add := func(format string, names ...any) {
		for i := range names {
			names[i] = deadletter.Visible(names[i].(string))
		}
		users = append(users, fmt.Sprintf(format, names...))
	}
	leads := func(exchange string) bool {
		return deadletter.OwnQueue(exchange) || exchange != "" && slices.Contains(c.Exchanges, exchange)
	}
	for _, d := range topology.ReportOn(s, topology.Options{}).All {
		from, own := d.Route.From, slices.IndexFunc(d.Route.Queues, deadletter.OwnQueue)
		switch {
		case d.Own || !d.Route.Set || slices.ContainsFunc(
			c.Policies, func(p string) bool { return from == topology.FromPolicy+" "+p },
		):
		case leads(d.Route.Exchange):
			add("queue %s, whose dead letters go to exchange %s", d.Name, d.Route.Exchange)
		case own >= 0:
			add("queue %s, whose dead letters go to queue %s", d.Name, d.Route.Queues[own])
		}
	}
	for _, b := range s.Bindings {
		if b.Source != "" && !leads(b.Source) && deadletter.OwnQueue(b.Destination) {
			add("exchange %s, which is bound to %s %s", b.Source, b.To, b.Destination)
		}
	}
	for _, x := range s.Exchanges {
		if to, ok := x.Arguments.Text("alternate-exchange"); ok && leads(to) && !leads(x.Name) {
			add("exchange %s, whose alternate exchange is %s", x.Name, to)
		}
	}
	for _, p := range s.Policies {
		if to, ok := p.Definition.Text("alternate-exchange"); ok && leads(to) {
			add("policy %s, which sets the alternate exchange %s", p.Name, to)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(users)))
}

// Leave removes dlo's exchanges and queues from the vhost of the link. A queue that holds messages
// stays. Only the queues of markers and marks are removed with their messages, because these
// messages are dlo's own. The error wraps ErrConflict if something still sends messages to an
// object of dlo. It wraps ErrUnavailable if the vhost cannot be read.
func (l *Link) Leave(ctx context.Context, c Configured) ([]Remains, error) {
	plan, err := l.Leaving(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := plan.InUse(); err != nil {
		return nil, err
	}
	conn, err := l.dial(ctx, "leave")
	if err != nil {
		return nil, err
	}
	defer conn.CloseDeadline(time.Now().Add(closeWait))
	var done []Remains
	for _, name := range plan.exchanges {
		done = append(
			done,
			remainsAfter(
				"exchange "+deadletter.Visible(name),
				onChannel(conn, func(ch *amqp.Channel) error { return ch.ExchangeDelete(name, false, false) }),
			),
		)
		l.crash("leave: exchange removed")
	}
	for _, name := range plan.queues {
		done = append(
			done,
			remainsAfter(
				"queue "+deadletter.Visible(name),
				onChannel(conn, func(ch *amqp.Channel) error { return deleteEmpty(ch, name) }),
			),
		)
		l.crash("leave: queue removed")
	}
	return append(done, plan.Keeps...), nil
}

// crash calls the function that tests have set to end dlo at a given point of its work.
func (l *Link) crash(point string) {
	if l.broker.Crash != nil {
		l.broker.Crash(point)
	}
}

// InUse returns an error that wraps ErrConflict if something still sends messages to the objects
// that Leave would remove, because these messages would be lost.
func (l *Leaving) InUse() error {
	if len(l.Users) == 0 {
		return nil
	}
	return fmt.Errorf(
		"%w: these still send messages to what dlo would remove, and the messages would be lost: %s",
		deadletter.ErrConflict, strings.Join(l.Users, "; "),
	)
}

// deleteEmpty deletes a queue of dlo that has no messages and no consumers. It cannot use the
// options if-empty and if-unused, because quorum queues support neither (540 on 3.10.8, 4.0.5,
// 4.3.6). No message can arrive between the check and the deletion, because nothing leads to the
// queue any more. A queue whose name begins with dlo.epoch. is deleted although it holds a message,
// because this message is dlo's own: the marker of an inbox, or the mark of a store.
func deleteEmpty(ch *amqp.Channel, name string) error {
	q, err := ch.QueueDeclarePassive(name, true, false, false, false, nil)
	switch {
	case err != nil:
		return err
	case q.Consumers > 0:
		return fmt.Errorf("it has %d consumers", q.Consumers)
	case q.Messages > 0 && !strings.HasPrefix(name, "dlo.epoch."):
		return fmt.Errorf("it holds %d messages", q.Messages)
	}
	_, err = ch.QueueDelete(name, false, false, false)
	return err
}

// remainsAfter says whether an object still exists after an attempt to delete it. The parameter
// "err" is the result of the attempt.
func remainsAfter(what string, err error) Remains {
	if err != nil && !isGone(err) {
		return Remains{what, errorText(err)}
	}
	return Remains{What: what}
}
