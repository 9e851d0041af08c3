package rabbitmq

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// lookEvery is the time between two checks of dlo's queues while a broker is connected.
const lookEvery = time.Minute

// beingDeclared is how long a session may take to bind an inbox that it has just declared.
const beingDeclared = 2 * time.Second

// lookAfter checks the queues that dlo drains or owns, until ctx ends. The checks are necessary
// because a policy can change how a queue behaves, whatever arguments dlo has declared it with. For
// a length or an expiry, the lower value of argument and policy applies, and policies that apply to
// all queues are common (measured on 3.10.8, 4.0.5, 4.3.6).
func (l *Link) lookAfter(ctx context.Context) {
	for ctx.Err() == nil {
		problems := l.checkOwnQueues(ctx, true)
		if ctx.Err() != nil {
			return
		}
		l.storeProblems(problems)
		l.lookAtRights(ctx)
		sleep(ctx, lookEvery)
	}
}

// storeProblems stores the problems of the last check, each with the time it was first seen, and
// logs the new ones.
func (l *Link) storeProblems(problems []deadletter.Problem) {
	l.updateStatus(func(s *deadletter.BrokerStatus) {
		for i := range problems {
			p := &problems[i]
			p.Since = time.Now()
			same := slices.IndexFunc(s.Queues, func(o deadletter.Problem) bool { return o.Kind == p.Kind && o.Queue == p.Queue && o.Text == p.Text })
			if same >= 0 {
				p.Since = s.Queues[same].Since
			} else {
				l.log.Warn("problem of a queue", "queue", p.Queue, "problem", p.Title, "text", p.Text, "cure", p.Cure)
			}
		}
		s.Queues = problems
	})
}

// checkOwnQueues queries the management API for everything that makes the broker lose messages of
// dlo's queues. If the parameter "mend" is true, it restores a missing binding.
func (l *Link) checkOwnQueues(ctx context.Context, mend bool) []deadletter.Problem {
	if l.management == nil {
		return nil
	}
	var problems []deadletter.Problem
	for i, inbox := range l.broker.Inboxes {
		q, err := l.management.Queue(ctx, l.vhost, inbox)
		switch {
		case errors.Is(err, errNoQueue):
			continue // the session of the inbox reports a missing queue
		case err != nil:
			return []deadletter.Problem{l.unmanagedProblem(err)}
		}
		if text, cure := l.inboxLoses(inbox, q); text != "" {
			problems = append(problems, deadletter.Problem{
				Kind: deadletter.ProblemInboxLoses, Severity: deadletter.SeverityPage, Broker: l.broker.Name, VHost: l.vhost, Inbox: inbox, Queue: inbox,
				Title: "The broker deletes letters from inbox " + deadletter.Visible(inbox) + ".", Text: text, Cure: cure,
			})
		}
		if mend && i == 0 && l.broker.Exchange != "" && !l.isBound(ctx, inbox) && sleep(ctx, beingDeclared) == nil && !l.isBound(ctx, inbox) {
			if p := l.rebind(ctx, inbox); p != nil {
				problems = append(problems, *p)
			}
		}
	}
	return append(problems, l.lookAtOwn(ctx)...)
}

// unmanagedProblem returns the problem that is reported if the management API gives no information.
func (l *Link) unmanagedProblem(err error) deadletter.Problem {
	p := deadletter.Problem{
		Kind: deadletter.ProblemManagement, Severity: deadletter.SeverityNotify, Broker: l.broker.Name, VHost: l.vhost,
		Title: "The management API of broker " + l.broker.Name + " does not answer.",
		Text:  "Depths, consumers and whether a policy deletes letters are not known: " + deadletter.Visible(err.Error()) + ".",
		Cure:  "Check whether the plugin rabbitmq_management is enabled, and whether the URL of the API is right.",
	}
	if errors.Is(err, errMayNot) {
		p.Cure = "Check the user and password in the URL. The user needs the tag management, and a permission in the vhost, even an empty one: rabbitmqctl set_user_tags " + quoted(l.management.user) + " management"
	}
	return p
}

// inboxLoses describes the settings that make the broker delete letters from an inbox, and how to
// remove these settings. If the configuration accepts the delivery limit of the inbox, inboxLoses
// does not mention this limit. If there are no such settings, the text is "".
func (l *Link) inboxLoses(inbox string, q *managedQueue) (text, cure string) {
	what, limited := q.losingText(), q.mayDelete(l.Status().Version) && !slices.Contains(l.broker.AcceptLimited, inbox)
	if what != "" {
		text = "The broker deletes letters that stay too long, or exceed a limit, before dlo takes them: " + what + "."
	}
	if limited {
		text = strings.TrimSpace(text + " Its delivery limit lets the broker delete letters after lost connections.")
	}
	return text, l.cureText(inbox, q, limited)
}

// lookAtOwn checks dlo's own queues other than inboxes. These are the queues of annotations, of
// inbox markers, of store marks, and of letters that wait in the broker.
func (l *Link) lookAtOwn(ctx context.Context) []deadletter.Problem {
	list, err := l.management.Own(ctx, l.vhost)
	if err != nil {
		return nil
	}
	var problems []deadletter.Problem
	for i := range list {
		q := &list[i]
		if slices.Contains(l.broker.Inboxes, q.Name) {
			continue
		}
		what := q.losingOwnText()
		if what == "" {
			continue
		}
		text := "Messages in it are deleted: " + what + "."
		switch {
		case deadletter.IsMarkQueue(q.Name):
			text = "The mark that proves that the store is not an older copy may be gone; then only the note beside the store can prove it: " + what + "."
		case strings.HasPrefix(q.Name, "dlo.epoch."):
			text = "dlo cannot tell a restart of the broker from the loss of the message in this queue: " + what + "."
		case strings.HasPrefix(q.Name, "dlo.wait."):
			text = "Letters that wait in it leave too soon, or are deleted and then sent from the store: " + what + "."
		}
		problems = append(problems, deadletter.Problem{
			Kind: deadletter.ProblemOwnQueue, Severity: deadletter.SeverityNotify, Broker: l.broker.Name, VHost: l.vhost, Queue: q.Name,
			Title: "A policy changes dlo's queue " + deadletter.Visible(q.Name) + ".", Text: text, Cure: l.cureText(q.Name, q, false),
		})
	}
	return problems
}

// isBound reports whether the exchange is bound to the given queue. It returns true if this is
// unknown.
func (l *Link) isBound(ctx context.Context, queue string) bool {
	var bindings []struct{}
	err := l.management.get(ctx, "/api/bindings/"+url.PathEscape(l.vhost)+"/e/"+url.PathEscape(l.broker.Exchange)+"/q/"+url.PathEscape(queue), &bindings)
	return err == nil && len(bindings) > 0 || err != nil && !errors.Is(err, errNoQueue)
}

// rebind declares the exchange and the binding of an inbox again, and records the event. If this
// fails, it returns a problem.
func (l *Link) rebind(ctx context.Context, inbox string) *deadletter.Problem {
	p := deadletter.Problem{
		Kind: deadletter.ProblemInboxUnbound, Severity: deadletter.SeverityPage, Broker: l.broker.Name, VHost: l.vhost, Inbox: inbox, Queue: inbox,
		Title: "Dead letters were not routed to inbox " + deadletter.Visible(inbox) + ".",
		Text:  "The exchange " + deadletter.Visible(l.broker.Exchange) + ", or its binding to the inbox, was gone: letters that died meanwhile are lost.",
		Cure:  "Both were declared again. Find out who deleted them.",
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := l.dial(ctx, "binding of "+inbox)
	if err == nil {
		defer conn.CloseDeadline(time.Now().Add(closeWait))
		_, _, err = l.declareOwn(conn, l.Status().Version, inbox, true)
	}
	if err != nil {
		p.Title = "Dead letters are not routed to inbox " + deadletter.Visible(inbox) + "."
		p.Cure = "The exchange or its binding could not be declared again: " + deadletter.Visible(err.Error())
		return &p
	}
	l.recordEvent(p)
	return nil
}

// losingSettings returns the settings of a queue that make the broker delete messages.
func (q *managedQueue) losingSettings() []setting {
	return []setting{
		{"max-length", "", q.Arguments.MaxLength, q.Effective.MaxLength},
		{"max-length-bytes", "bytes", q.Arguments.MaxBytes, q.Effective.MaxBytes},
		{"message-ttl", "ms", q.Arguments.MessageTTL, q.Effective.MessageTTL},
		{"expires", "ms", q.Arguments.Expires, q.Effective.Expires},
	}
}

// setting describes one way in which the configuration of a queue makes the broker delete messages,
// such as a length limit. It contains a name, a unit, the value as an argument of the queue, and
// the value in policies. A value that is not set is nil.
type setting struct {
	name, unit         string
	argument, policies *int64
}

func (s *setting) withSource(n int64, by string) string {
	return strings.TrimSpace(fmt.Sprintf("%s %d %s", s.name, n, s.unit)) + " (" + by + ")"
}

// losingText returns a text with the settings that make the broker delete messages from a queue. It
// returns "" if there are none.
func (q *managedQueue) losingText() string {
	var list []string
	for _, s := range q.losingSettings() {
		switch {
		case s.policies != nil && (s.argument == nil || *s.policies <= *s.argument):
			list = append(list, s.withSource(*s.policies, q.policyNames()))
		case s.argument != nil:
			list = append(list, s.withSource(*s.argument, "an argument of the queue"))
		}
	}
	return strings.Join(list, ", ")
}

// losingOwnText describes the settings that make the broker delete messages from a queue. dlo
// itself has declared the queue with limits. Therefore losingOwnText mentions a setting only if a
// policy sets a lower value than the argument of the queue.
func (q *managedQueue) losingOwnText() string {
	var list []string
	for _, s := range q.losingSettings() {
		if s.policies != nil && (s.argument == nil || *s.policies < *s.argument) {
			list = append(list, s.withSource(*s.policies, q.policyNames()))
		}
	}
	return strings.Join(list, ", ")
}

// policyNames returns a text with the names of the policies that apply to a queue.
func (q *managedQueue) policyNames() string {
	var list []string
	if q.Policy != nil && *q.Policy != "" {
		list = append(list, "policy "+deadletter.Visible(*q.Policy))
	}
	if q.Operator != nil && *q.Operator != "" {
		list = append(list, "operator policy "+deadletter.Visible(*q.Operator))
	}
	return strings.Join(list, " and ")
}

// cureText explains how to remove the settings that make the broker delete messages from a queue.
// The parameter "limited" is true if the delivery limit is one of these settings.
func (l *Link) cureText(queue string, q *managedQueue, limited bool) string {
	var arguments []string
	for _, s := range q.losingSettings() {
		if s.argument != nil && !deadletter.OwnQueue(queue) {
			arguments = append(arguments, "x-"+s.name)
		}
	}
	var cures []string
	if len(arguments) > 0 {
		cures = append(cures, "No policy removes an argument: declare the queue again without "+strings.Join(arguments, ", ")+".")
	}
	if limited { // the policy that withoutLimit proposes replaces any other
		return strings.Join(append(cures, withoutLimit(l.vhost, l.Status().Version, queue, q)+"."), " ")
	}
	operator := q.Operator != nil && *q.Operator != ""
	switch {
	case q.Policy == nil || *q.Policy == "":
	case operator && *q.Policy == ownPolicyName(queue): // the command was run, but the API does not show which of the two policies sets the values
		cures = append(cures, "The policy "+deadletter.Visible(*q.Policy)+" should have no key but overflow.")
	default:
		cures = append(cures, "Override the policy with one of higher priority: "+ownPolicy(l.vhost, queue))
	}
	if operator {
		cures = append(cures, "The operator policy "+deadletter.Visible(*q.Operator)+" can only be removed by its owner.")
	}
	return strings.Join(cures, " ")
}

// ownPolicy returns a command against a site's policy that deletes messages. The command protects
// all of dlo's queues, or one other queue. It sets a harmless policy with a higher priority. Only
// the policy with the highest priority applies to a queue, so the site's policy no longer applies
// there. RabbitMQ rejects an empty policy, so the policy needs a key that each type of queue
// supports. Otherwise the site's policy would continue to apply (3.10.8, 4.0.5, 4.3.6). The key
// overflow is supported by each type, and has no effect without a length limit.
func ownPolicy(vhost, queue string) string {
	pattern := "^" + regexp.QuoteMeta(queue) + "$"
	if deadletter.OwnQueue(queue) {
		pattern = `^dlo\.`
	}
	return setPolicy(vhost, 1000, ownPolicyName(queue), pattern, `{"overflow":"drop-head"}`)
}

func ownPolicyName(queue string) string {
	if deadletter.OwnQueue(queue) {
		return "dlo-own"
	}
	return "dlo-" + queue
}

func setPolicy(vhost string, priority int, name, pattern, definition string) string {
	return fmt.Sprintf("rabbitmqctl set_policy -p %s --priority %d --apply-to queues %s %s %s", quoted(vhost), priority, quoted(name), quoted(pattern), quoted(definition))
}

// quoted returns a text as a quoted word of a shell command.
func quoted(text string) string {
	return "'" + strings.ReplaceAll(deadletter.Visible(text), "'", `'\''`) + "'"
}
