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
	"github.com/deadletteroffice/dlo/internal/topology"
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
		select {
		case <-l.lookNow:
		case <-time.After(lookEvery):
		case <-ctx.Done():
		}
	}
}

// storeProblems stores the problems of the last check, each with the time it was first seen, and
// logs the new ones.
func (l *Link) storeProblems(problems []deadletter.Problem) {
	l.updateStatus(func(s *deadletter.BrokerStatus) {
		for i := range problems {
			p := &problems[i]
			p.Since = time.Now()
			same := slices.IndexFunc(
				s.Queues,
				func(o deadletter.Problem) bool { return o.Kind == p.Kind && o.Queue == p.Queue && o.Text == p.Text },
			)
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
// dlo's queues. If the parameter "mend" is true, it restores a missing binding, and ends the
// session of an inbox that may no longer be drained as it is.
func (l *Link) checkOwnQueues(ctx context.Context, mend bool) []deadletter.Problem {
	if l.management.Load() == nil {
		return []deadletter.Problem{l.unknownLimits()}
	}
	names := []string{`dlo\.`}
	for _, inbox := range l.broker.Inboxes {
		names = append(names, regexp.QuoteMeta(inbox)+"$")
	}
	s, err := l.management.Load().settings(ctx, l.vhost, "^("+strings.Join(names, "|")+")")
	if err != nil {
		return []deadletter.Problem{l.unmanagedProblem(err)}
	}
	var problems []deadletter.Problem
	for i := range s.Queues {
		e := s.EffectOf(&s.Queues[i])
		if inbox := e.Queue.Name; slices.Contains(l.broker.Inboxes, inbox) {
			problems = append(problems, l.inboxProblems(inbox, &e)...)
			if mend {
				l.recheck(inbox, &e)
			}
		} else if deadletter.OwnQueue(inbox) {
			problems = append(problems, l.ownProblems(&e)...)
		}
	}
	if !mend || l.broker.Exchange == "" || len(l.broker.Inboxes) == 0 {
		return problems
	}
	inbox := l.broker.Inboxes[0]
	// the session of the inbox reports a missing queue
	exists := slices.ContainsFunc(s.Queues, func(q topology.Queue) bool { return q.Name == inbox })
	if exists && !l.isBound(ctx, inbox) && sleep(ctx, beingDeclared) == nil && !l.isBound(ctx, inbox) {
		if p := l.rebind(ctx, inbox); p != nil {
			problems = append(problems, *p)
		}
	}
	return problems
}

// unknownLimits returns the problem that there is no management API to ask which policies apply to
// the inboxes.
func (l *Link) unknownLimits() deadletter.Problem {
	return deadletter.Problem{
		Kind:     deadletter.ProblemLimitsUnknown,
		Severity: deadletter.SeverityNotify,
		Broker:   l.broker.Name,
		VHost:    l.vhost,
		Title:    "Whether broker " + l.broker.Name + " deletes letters from dlo's inboxes is not known.",
		Text:     "A policy can limit their length, age or deliveries, and no management API is configured that would say so. dlo drains the inbox that it has declared itself all the same, and no quorum queue of others.",
		Cure:     "Set management of the broker to the URL of its management API.",
	}
}

// inboxProblems returns the problems that the settings of an inbox cause.
func (l *Link) inboxProblems(inbox string, e *topology.Effect) []deadletter.Problem {
	var problems []deadletter.Problem
	add := func(kind deadletter.ProblemKind, severity deadletter.Severity, title, text, cure string) {
		problems = append(problems, deadletter.Problem{
			Kind:     kind,
			Severity: severity,
			Broker:   l.broker.Name,
			VHost:    l.vhost,
			Inbox:    inbox,
			Queue:    inbox,
			Title:    title,
			Text:     text,
			Cure:     cure,
		})
	}
	if text, cure := l.inboxLoses(inbox, e); text != "" {
		add(
			deadletter.ProblemInboxLoses, deadletter.SeverityPage,
			"The broker deletes letters from inbox "+deadletter.Visible(inbox)+".", text, cure,
		)
	}
	if delay, from := e.DelayedRetry(); delay > 0 {
		add(
			deadletter.ProblemDelayedRetry, deadletter.SeverityPage,
			"The broker holds letters of inbox "+deadletter.Visible(inbox)+" back after a lost connection.",
			fmt.Sprintf("Its delayed retry of type %s (%s) keeps what a connection gives back for up to %s, behind newer letters. dlo drains the inbox more slowly, and after each lost connection it waits until nothing is held back.",
				from.Text, settingBy(from), delay), l.withoutDelay(inbox, e)+".",
		)
	}
	for _, key := range []string{"max-length", "max-length-bytes", "message-ttl", "expires", "delivery-limit"} {
		if p := e.Unknown(key); p != nil {
			add(
				deadletter.ProblemLimitsUnknown, deadletter.SeverityNotify,
				"Whether a policy deletes letters from inbox "+deadletter.Visible(inbox)+" is not known.",
				"dlo cannot evaluate the pattern of policy "+deadletter.Visible(p.Name)+", which sets "+key+".",
				"Write a simpler pattern, without features of PCRE that are rarely used.",
			)
			break
		}
	}
	if unknown := slices.DeleteFunc(
		e.Keys(), func(key string) bool { return slices.Contains(topology.KnownKeys, key) },
	); len(unknown) > 0 {
		add(
			deadletter.ProblemUnknownSetting, deadletter.SeverityNotify,
			"Inbox "+deadletter.Visible(inbox)+" has settings that this version of dlo does not know.",
			"dlo cannot tell what they do to its letters: "+deadletter.Visible(strings.Join(unknown, ", "))+".",
			"Read what they do in the documentation of RabbitMQ, or take them off the inbox.",
		)
	}
	return problems
}

// withoutDelay explains how to turn off the delayed retry of an inbox.
func (l *Link) withoutDelay(queue string, e *topology.Effect) string {
	if p := e.Operator(); p != nil {
		if _, sets := p.Definition["delayed-retry-type"]; sets {
			return fmt.Sprintf(
				"No policy overrides operator policy %s: its owner has to narrow its pattern so that it does not match %s",
				deadletter.Visible(p.Name), deadletter.Visible(queue),
			)
		}
	}
	return "Give it a policy of higher priority that turns it off (" +
		setPolicy(
			l.vhost, 1002, "dlo-no-delayed-retry", "^"+regexp.QuoteMeta(queue)+"$",
			`{"delayed-retry-type":"disabled","delivery-limit":-1}`,
		) + ")"
}

// unmanagedProblem returns the problem that is reported if the management API gives no information.
func (l *Link) unmanagedProblem(err error) deadletter.Problem {
	p := deadletter.Problem{
		Kind: deadletter.ProblemManagement, Severity: deadletter.SeverityPage, Broker: l.broker.Name, VHost: l.vhost,
		Title: "The management API of broker " + l.broker.Name + " does not answer.",
		Text: "Depths, consumers and whether a policy deletes letters are not known: " +
			deadletter.Visible(err.Error()) +
			". dlo drains the inbox that it has declared itself all the same, and no quorum queue of others.",
		Cure: "Check whether the plugin rabbitmq_management is enabled, and whether the URL of the API is right.",
	}
	if user := l.management.Load().user; user != "" && errors.Is(err, errMayNot) {
		p.Cure = "Check the user and password in the URL. The user needs the tag management, and a permission in the vhost, even an empty one: rabbitmqctl set_user_tags " +
			quoted(user) + " management"
	}
	return p
}

// inboxLoses describes the settings that make the broker delete letters from an inbox, and how to
// remove these settings. If the configuration accepts the delivery limit of the inbox, inboxLoses
// does not mention this limit. If there are no such settings, the text is "".
func (l *Link) inboxLoses(inbox string, e *topology.Effect) (text, cure string) {
	what := losingText(e, false)
	_, limited := e.DeliveryLimit(l.Status().Version)
	limited = limited && !slices.Contains(l.broker.AcceptLimited, inbox)
	if what != "" {
		text = "The broker deletes letters that stay too long, or exceed a limit, before dlo takes them: " + what + "."
	}
	if limited {
		text = strings.TrimSpace(text + " Its delivery limit lets the broker delete letters after lost connections.")
	}
	return text, l.cureText(inbox, e, limited)
}

// ownProblems returns the problem that a policy causes for a queue of dlo other than an inbox: a
// queue of annotations, of an inbox marker, of a store mark, or of letters that wait in the broker.
func (l *Link) ownProblems(e *topology.Effect) []deadletter.Problem {
	what, queue := losingText(e, true), e.Queue.Name
	if what == "" {
		return nil
	}
	text := "Messages in it are deleted: " + what + "."
	switch {
	case deadletter.IsMarkQueue(queue):
		text = "The mark that proves that the store is not an older copy may be gone; then only the note beside the store can prove it: " + what + "."
	case strings.HasPrefix(queue, "dlo.epoch."):
		text = "dlo cannot tell a restart of the broker from the loss of the message in this queue: " + what + "."
	case strings.HasPrefix(queue, "dlo.wait."):
		text = "Letters that wait in it leave too soon, or are deleted and then sent from the store: " + what + "."
	}
	return []deadletter.Problem{{
		Kind:     deadletter.ProblemOwnQueue,
		Severity: deadletter.SeverityNotify,
		Broker:   l.broker.Name,
		VHost:    l.vhost,
		Queue:    queue,
		Title:    "A policy changes dlo's queue " + deadletter.Visible(queue) + ".",
		Text:     text,
		Cure:     l.cureText(queue, e, false),
	}}
}

// isBound reports whether the exchange is bound to the given queue. It returns true if this is
// unknown.
func (l *Link) isBound(ctx context.Context, queue string) bool {
	var bindings []struct{}
	err := l.management.Load().get(
		ctx,
		"/api/bindings/"+url.PathEscape(l.vhost)+"/e/"+url.PathEscape(l.broker.Exchange)+"/q/"+url.PathEscape(queue),
		&bindings,
	)
	return err == nil && len(bindings) > 0 || err != nil && !errors.Is(err, errNoQueue)
}

// rebind declares the exchange and the binding of an inbox again, and records the event. If this
// fails, it returns a problem.
func (l *Link) rebind(ctx context.Context, inbox string) *deadletter.Problem {
	p := deadletter.Problem{
		Kind:     deadletter.ProblemInboxUnbound,
		Severity: deadletter.SeverityPage,
		Broker:   l.broker.Name,
		VHost:    l.vhost,
		Inbox:    inbox,
		Queue:    inbox,
		Title:    "Dead letters were not routed to inbox " + deadletter.Visible(inbox) + ".",
		Text: "The exchange " + deadletter.Visible(l.broker.Exchange) +
			", or its binding to the inbox, was gone: letters that died meanwhile are lost.",
		Cure: "Both were declared again. Find out who deleted them.",
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

// losing lists the settings that make the broker delete messages from a queue, with their units.
var losing = [][2]string{{"max-length", ""}, {"max-length-bytes", " bytes"}, {"message-ttl", " ms"}, {"expires", " ms"}}

// losingText returns a text with the settings that make the broker delete messages from a queue. It
// returns "" if there are none. If the parameter "own" is true, dlo itself has declared the queue
// with limits, and only the policies count that set a lower value than its arguments.
func losingText(e *topology.Effect, own bool) string {
	var list []string
	for _, s := range losing {
		if v, ok := e.Least(s[0]); ok && !(own && v.From == topology.FromArgument) {
			list = append(list, fmt.Sprintf("%s %d%s (%s)", s[0], v.N, s[1], settingBy(v)))
		}
	}
	return strings.Join(list, ", ")
}

func settingBy(s topology.Setting) string {
	return strings.TrimSpace(s.From + " " + deadletter.Visible(s.Policy))
}

// cureText explains how to remove the settings that make the broker delete messages from a queue.
// The parameter "limited" is true if the delivery limit is one of these settings.
func (l *Link) cureText(queue string, e *topology.Effect, limited bool) string {
	var arguments []string
	for _, s := range losing {
		if _, ok := e.Queue.Arguments["x-"+s[0]]; ok && !deadletter.OwnQueue(queue) {
			arguments = append(arguments, "x-"+s[0])
		}
	}
	var cures []string
	if len(arguments) > 0 {
		cures = append(
			cures, "No policy removes an argument: declare the queue again without "+strings.Join(arguments, ", ")+".",
		)
	}
	if limited { // the policy that withoutLimit proposes replaces any other
		return strings.Join(append(cures, withoutLimit(l.vhost, l.Status().Version, queue, e)+"."), " ")
	}
	switch p, operator := e.Policy(), e.Operator(); {
	case p == nil:
	case operator != nil && p.Name == ownPolicyName(queue):
		// the command was run, and the operator policy still sets the values
		cures = append(cures, "The policy "+deadletter.Visible(p.Name)+" should have no key but overflow.")
	default:
		cures = append(cures, "Override the policy with one of higher priority: "+ownPolicy(l.vhost, queue))
	}
	if e.Operator() != nil {
		cures = append(
			cures, "The operator policy "+deadletter.Visible(e.Operator().Name)+" can only be removed by its owner.",
		)
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
	return fmt.Sprintf(
		"rabbitmqctl set_policy -p %s --priority %d --apply-to queues %s %s %s", quoted(vhost), priority, quoted(name),
		quoted(pattern), quoted(definition),
	)
}

// quoted returns a text as a word of a shell command.
func quoted(text string) string { return deadletter.ShellWord(deadletter.Visible(text)) }
