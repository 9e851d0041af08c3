package topology

import (
	"slices"
	"strings"
)

// checkPath checks that the dead letters of a queue reach another queue.
func (in *inspector) checkPath(v *view) {
	exchange := v.Exchange.Text
	switch {
	case !v.Set:
		in.noExchange(v)
		return
	case !v.Exists:
		in.add(Finding{
			Kind: ExchangeMissing, Queue: v.Name, Plannable: v.Exchange.From == FromPolicy, cause: exchange,
			Title: textf("%s dead-letters to exchange %s, which does not exist", v.Name, exchange),
			Loses: "every dead letter of this queue",
			Why: textf(
				"%s names exchange %s. The broker drops a dead letter without a trace if its exchange does not exist.",
				v.Exchange.source(), exchange,
			),
			Cure: textf("Declare the exchange %s and bind a queue to it, or dead-letter to an exchange that exists.", exchange),
		})
	case in.unknownTarget(v):
	case exchange == "" && v.Fixed && len(v.Queues) == 0:
		in.add(Finding{
			Kind: QueueMissing, Queue: v.Name, Others: []string{v.Key.Text}, Plannable: v.Key.From == FromPolicy,
			cause: v.Key.Text,
			Title: textf("%s dead-letters to queue %s, which does not exist", v.Name, v.Key.Text),
			Loses: "every dead letter of this queue",
			Why:   "The default exchange delivers to the queue that the routing key names. The broker drops a dead letter whose queue does not exist.",
			Cure:  textf("Declare the queue %s, or dead-letter to an exchange with a binding.", v.Key.Text),
		})
	case v.Dangles && in.s.ReadAt.IsZero():
		loses := "every dead letter of this queue"
		if len(v.Queues) > 0 {
			loses = "those dead letters that match no other binding"
		}
		in.add(Finding{
			Kind: QueueMissing, Queue: v.Name, Others: v.Missing, Loses: loses, cause: strings.Join(v.Missing, "\n"),
			Title: textf("%s dead-letters to exchange %s, whose queue is missing", v.Name, exchange),
			Why:   textf("Exchange %s is bound to %s, which the file does not declare.", exchange, nameList(v.Missing)),
			Cure:  "Declare the queue that the binding names, or remove the binding.",
		})
	case !v.Bound:
		in.noBinding(v, "has no binding", Finding{
			Loses: "every dead letter of this queue",
			Why:   "The broker drops a message without a trace if the exchange cannot route it.",
			Cure:  textf("Bind a dead-letter queue to the exchange %s.", exchange),
		})
	case len(v.Lost) > 0:
		sure := Certain
		if !v.Fixed {
			sure = Likely
		}
		in.noBinding(v, "has no binding for key "+nameList(v.Lost), Finding{
			Sure: sure, Loses: "dead letters with these routing keys: " + nameList(v.Lost),
			Why:  "A dead letter keeps its routing key unless the queue sets another one. The broker drops a message without a trace if the exchange cannot route it.",
			Cure: "Bind the dead-letter queue with these keys, or set a dead-letter routing key that is bound.",
		})
	case len(v.LostReasons) > 0:
		in.reasonsLost(v)
	case v.Again && in.leadsToInbox(v):
		// the letter reaches a queue when it dies for the first time
		in.add(Finding{
			Kind: SecondDeathLost, Queue: v.Name, Plannable: in.replaceable(v), cause: exchange,
			Title: textf("%s loses a requeued letter that dies again", v.Name),
			Loses: "letters that were requeued and failed again",
			Why: textf(
				"A requeued letter has the name of its queue as its routing key. Exchange %s routes only other keys, and the broker drops what it cannot route.",
				exchange,
			),
			Cure: "Bind the dead-letter queue with the name of the queue as a key as well, or set a dead-letter routing key that is bound.",
		})
	case len(v.Unjudged) > 0:
		in.routeUnknown(v)
	case len(v.droppingLimits()) > 0:
		// messages that only wait in this queue come with the keys that are meant to go on, which may
		// be the names of queues
	case len(v.Partly) > 0:
		in.noBinding(v, "routes only some of the keys "+nameList(v.Partly), Finding{
			Sure: Likely, Severity: severities[NoExchange],
			Loses: "dead letters with those routing keys that the exchange does not route",
			Why:   "Messages come with any key that fits the pattern, and a dead letter keeps its key. The exchange has bindings for some of these keys only, and the broker drops what it cannot route.",
			Cure:  "If other keys come, bind the dead-letter queue with the same pattern, or set a dead-letter routing key that is bound.",
		})
	case v.OnlyName:
		in.noBinding(v, "probably routes only requeued letters", Finding{
			Sure: Likely, Severity: severities[NoExchange],
			Loses: "dead letters with other routing keys than the name of the queue",
			Why:   "Messages reach the queue through an exchange that does not look at routing keys, so dlo does not know their keys. The dead-letter exchange routes only names of queues as keys. A dead letter keeps its key, and the broker drops it if no binding has that key.",
			Cure:  "Set a dead-letter routing key that is bound, or dead-letter to a fanout exchange.",
		})
	}
	in.targetsFull(v)
}

// noBinding completes and records a finding about the bindings of a dead-letter exchange. The
// parameter "which" says in its title what is wrong with the exchange.
func (in *inspector) noBinding(v *view, which string, f Finding) {
	f.Kind, f.Queue, f.Plannable = NoBinding, v.Name, in.replaceable(v)
	f.cause = strings.Join([]string{v.Exchange.Text, v.Key.Text, f.Why}, "\n")
	f.Title = textf("%s dead-letters to exchange %s, which %s", v.Name, v.Exchange.Text, which)
	in.add(f)
}

// unknownTarget reports whether dead letters seem to reach no queue, but may reach a queue that the
// snapshot lacks. This can happen if a part of the vhost could not be read, or if the queue was
// declared while dlo read the vhost. In the second case, the snapshot shows a binding to a queue
// that it does not contain. A broker never has a binding to a missing queue, but a definitions file
// may have one.
func (in *inspector) unknownTarget(v *view) bool {
	return v.Bound && len(v.Queues) == 0 && (in.s.lacksQueues() || v.Dangles && !in.s.ReadAt.IsZero())
}

// replaceable reports whether a new policy may route the dead letters of a queue to dlo. There are
// two conditions. The exchange must come from a policy and not from an argument. All queues that
// the dead letters reach now must be inboxes of dlo.
func (in *inspector) replaceable(v *view) bool {
	return v.Exchange.From == FromPolicy &&
		!slices.ContainsFunc(v.Queues, func(name string) bool { return !in.isInbox(name) })
}

// reasonWords says which messages die for the reasons of deaths that RabbitMQ names.
var reasonWords = map[string]string{
	"rejected": "rejected messages", "expired": "expired messages",
	"maxlen": "messages above a length limit", "delivery_limit": "messages beyond the delivery limit",
}

// lostReasons says in words which dead letters of a queue reach no queue because of their reason.
func (v *view) lostReasons() string {
	var words []string
	for _, reason := range v.LostReasons {
		words = append(words, reasonWords[reason])
	}
	return strings.Join(words, " and ")
}

// deathsLost reports whether deaths that happen in a queue are lost because of their reason.
// Rejections need a consumer. So they may never happen in a queue in which messages wait until they
// expire or are too many, unless dlo sees a consumer. If nobody has read the queue for some time,
// it is certain that messages expire.
func (in *inspector) deathsLost(v *view) bool {
	waits := len(v.droppingLimits()) > 0 && v.Consumers.N == 0
	rejected, expired := slices.Contains(v.LostReasons, "rejected"), slices.Contains(v.LostReasons, "expired")
	_, idle := in.idleSince(v)
	return rejected && (!waits || expired) || expired && idle
}

// reasonsLost reports a headers exchange that routes dead letters of some reasons only.
func (in *inspector) reasonsLost(v *view) {
	f := Finding{
		Sure: Likely, Loses: v.lostReasons(),
		Why:  "The exchange routes by the reason of a death, and has no binding for " + v.lostReasons() + ".",
		Cure: "If these messages should not be lost, bind a dead-letter queue to the exchange for their reasons too.",
	}
	if !in.deathsLost(v) {
		f.Severity = severities[NoExchange]
		f.Why += " dlo does not know whether messages die for these reasons here."
	}
	in.noBinding(v, "does not route "+v.lostReasons(), f)
}

// routeUnknown reports an exchange on the path of dead letters that dlo cannot judge.
func (in *inspector) routeUnknown(v *view) {
	x := in.net.exchanges[v.Unjudged[0]]
	why := textf("Exchange %s has the type %s, which dlo does not know.", x.Name, x.Type)
	switch x.routing() {
	case "headers":
		why = textf("Exchange %s routes by headers of the messages, which dlo does not know.", x.Name)
	case "direct", "fanout", "topic":
		why = textf("It is not known which policy, and so which alternate exchange, exchange %s has.", x.Name)
	}
	in.add(Finding{
		Kind: RouteUnknown, Queue: v.Name, Sure: Likely, cause: x.Name,
		Title: textf("It is not known where the dead letters of %s go, because of exchange %s", v.Name, x.Name),
		Loses: "nothing that dlo can see",
		Why:   why,
		Cure:  "Reject a test message, and look where it arrives. A dead-letter exchange of the type fanout takes every message.",
	})
}

// noExchange reports a queue without a dead-letter exchange. If a policy was meant to set an
// exchange for the queue, it also reports that policy.
func (in *inspector) noExchange(v *view) {
	if slices.ContainsFunc(slices.Concat(v.policy.unsure, v.operator.unsure, v.policy.tied), (*Policy).setsExchange) ||
		in.losesByDifference(v) {
		return // the findings PatternUnknown, PolicyTied and PolicyIgnored report this
	}
	if i := slices.IndexFunc(v.policy.unfit, (*Policy).setsExchange); i >= 0 {
		in.unfitPolicy(v, v.policy.unfit[i])
		return
	}
	if i := slices.IndexFunc(v.policy.losers, (*Policy).setsExchange); i >= 0 {
		loser, winner := v.policy.losers[i], v.policy.winner
		exchange, _ := loser.Definition.Text("dead-letter-exchange")
		in.add(Finding{
			Kind: PolicyShadowed, Queue: v.Name, Plannable: true, Loses: losesAll(v), cause: winner.Name,
			Title: textf(
				"%s has no dead-letter exchange, because policy %s hides policy %s", v.Name, winner.Name, loser.Name,
			),
			Why: textf(
				"Only the matching policy of the highest priority applies to a queue. Policy %s has priority %d and sets no exchange. Policy %s sets %s, but has priority %d.",
				winner.Name, winner.Priority, loser.Name, exchange, loser.Priority,
			),
			Cure: textf(
				"Add the dead-letter keys to policy %s, or set a policy of higher priority with the keys of both.",
				winner.Name,
			),
		})
		return
	}
	in.add(Finding{
		Kind: NoExchange, Queue: v.Name, Plannable: true, Loses: losesAll(v), cause: "policy " + v.policyName(),
		Title: safeName(v.Name) + " has no dead-letter exchange",
		Why:   "If a queue has no dead-letter exchange, the broker deletes each message that a consumer rejects without requeue.",
		Cure:  "Set a policy with a dead-letter exchange. The queue stays as it is: no argument changes, so no consumer gets a 406 when it declares the queue.",
	})
}

// losesAll says what a queue without a dead-letter exchange loses.
func losesAll(v *view) string {
	loses := "every message that a consumer rejects"
	var keys []string
	for _, limit := range v.droppingLimits() {
		keys = append(keys, limit.Key)
	}
	if len(keys) > 0 {
		loses += ", and every message that its " + strings.Join(keys, " and ") + " removes"
	}
	return loses
}

// targetsFull reports each queue that gets the dead letters of v and that has reached a length
// limit. It leaves out one case, which the finding Stuck reports: v dead-letters at least once, and
// the other queue refuses new messages. In this case, v keeps its letters.
func (in *inspector) targetsFull(v *view) {
	_, waits := v.atLeastOnce()
	for _, name := range v.Queues {
		target := in.views[name]
		if name == v.Name || waits && !target.dropsOld() {
			continue
		}
		limit, holds, full := target.reachedLimit()
		if !full {
			continue
		}
		loses, what := "one dead letter for each new one", "Each new dead letter pushes out the oldest one."
		if !target.dropsOld() {
			loses, what = "each new dead letter", "It refuses new dead letters, and the broker drops them."
		}
		in.add(Finding{
			Kind: QueueFull, Queue: v.Name, Others: []string{name}, Loses: loses, cause: name,
			Title: textf("%s dead-letters to queue %s, which is full", v.Name, name),
			Why:   textf("%s holds %s, its limit (%s). %s", name, holds, limit.source(), what),
			Cure:  textf("Empty %s, and remove its length limit.", name),
		})
	}
}

// reachedLimit returns the length limit that a queue has reached, and how much the queue holds. The
// result "reached" is false if the queue has reached no limit.
func (v *view) reachedLimit() (limit Limit, holds string, reached bool) {
	for _, limit := range v.lengthLimits() {
		has, unit := v.Ready, "messages"
		if limit.Key == "max-length-bytes" {
			has, unit = v.Bytes, "bytes"
		}
		if has.Known && limit.N > 0 && has.N >= limit.N {
			return limit, textf("%d %s", has.N, unit), true
		}
	}
	return Limit{}, "", false
}

// source says what sets a setting. Its result, such as "An argument of the queue", can be the
// beginning of a sentence.
func (s Setting) source() string {
	switch {
	case s.From == FromArgument:
		return "An argument of the queue"
	case s.Policy == "":
		return "A policy that dlo cannot find"
	}
	return textf("The %s %s", s.From, s.Policy)
}

// setBy returns words that say what sets a setting, such as "it was declared with the argument
// x-max-length". In a sentence, they come before the value of the setting.
func (s Setting) setBy(key string) string {
	if s.From == FromArgument {
		return "it was declared with the argument x-" + key
	}
	return textf("the %s %s sets %s", s.From, s.Policy, key)
}
