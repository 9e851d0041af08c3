package topology

import (
	"slices"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// deadLetterKeys are the keys of a policy that decide where dead letters go.
var deadLetterKeys = []string{"dead-letter-exchange", "dead-letter-routing-key"}

// checkPolicies reports policies that do not have the effect on a queue that they seem to have.
func (in *inspector) checkPolicies(v *view) {
	in.argumentWins(v)
	in.policyTied(v)
	in.patternUnknown(v)
	in.operatorCaps(v)
	in.hiddenChanged(v)
}

// patternUnknown reports policies that may apply to a queue, but whose patterns dlo cannot
// evaluate.
func (in *inspector) patternUnknown(v *view) {
	for _, p := range slices.Concat(v.policy.unsure, v.operator.unsure) {
		f := Finding{
			Kind: PatternUnknown, Queue: v.Name, Sure: Likely, cause: p.Name + "\n" + p.Pattern,
			Title: textf("dlo cannot tell whether policy %s applies to %s", p.Name, v.Name),
			Loses: "nothing by itself",
			Why: textf(
				"Its pattern %s uses a feature of PCRE that dlo does not have, or needs too long.",
				deadletter.Cut(p.Pattern, 500),
			),
			Cure: "Run `rabbitmqctl list_queues name policy` to see which policy applies.",
		}
		if hidden := v.policy.winner; slices.Contains(v.policy.unsure, p) && !p.setsExchange() &&
			hidden.setsExchange() && p.Priority >= hidden.Priority && v.Exchange.From == FromPolicy {
			f.Severity = deadletter.SeverityNotify
			f.Loses = "every dead letter, if the policy applies: it hides policy " + safeName(hidden.Name) +
				", and sets no dead-letter exchange"
		}
		in.add(f)
	}
}

// argumentWins reports that an argument of a queue overrides the dead-letter exchange of its
// policy.
func (in *inspector) argumentWins(v *view) {
	if v.Exchange.From != FromArgument || !v.Set {
		return
	}
	for _, p := range []*Policy{v.operator.winner, v.policy.winner} {
		exchange, ok := p.definition().Text("dead-letter-exchange")
		if !ok || exchange == v.Exchange.Text {
			continue
		}
		in.add(Finding{
			Kind: ArgumentWins, Queue: v.Name, cause: p.Name,
			Title: textf("%s ignores the dead-letter exchange of policy %s", v.Name, p.Name),
			Loses: "nothing by itself: dead letters go where the argument says",
			Why: textf(
				"The queue was declared with x-dead-letter-exchange %s. An argument overrides a policy, which sets %s.",
				v.Exchange.Text, exchange,
			),
			Cure: "Empty and delete the queue, and declare it again without the argument. Or have dlo drain the queue that the argument leads to.",
		})
		return
	}
}

// policyTied reports policies that have the same priority and route dead letters to different
// places.
func (in *inspector) policyTied(v *view) {
	for _, other := range v.policy.tied {
		winner := v.policy.winner
		if !slices.ContainsFunc(deadLetterKeys, func(key string) bool {
			a, hasA := winner.Definition.Text(key)
			b, hasB := other.Definition.Text(key)
			return a != b || hasA != hasB
		}) {
			continue
		}
		in.add(Finding{
			Kind: PolicyTied, Queue: v.Name, Plannable: v.Queue.Policy != nil, cause: winner.Name + "\n" + other.Name,
			Title: textf(
				"Policies %s and %s both match %s with priority %d", winner.Name, other.Name, v.Name, winner.Priority,
			),
			Loses: tieLoses(winner, other),
			Why:   "RabbitMQ does not define which of two policies of equal priority applies, and the choice can change when either is set again.",
			Cure: textf(
				"Give one of them another priority. Only one policy applies, so it needs the keys of both: %s.",
				nameList([]string{winner.Name, other.Name}),
			),
		})
	}
}

// tieLoses says what is lost if two policies have the same priority.
func tieLoses(a, b *Policy) string {
	to, has := a.Definition.Text(deadLetterKeys[0])
	other, otherHas := b.Definition.Text(deadLetterKeys[0])
	switch {
	case has != otherHas:
		return "every dead letter, if the broker picks the policy without the exchange"
	case to != other:
		return textf(
			"nothing by itself: dead letters go to exchange %s or to exchange %s, depending on the policy that the broker picks",
			to, other,
		)
	default:
		return "nothing by itself: the policies have different routing keys, and dead letters get the key of the policy that the broker picks"
	}
}

// operatorCaps reports limits of a queue that an operator policy lowers.
func (in *inspector) operatorCaps(v *view) {
	p := v.operator.winner
	if p == nil {
		return
	}
	without := Effect{Queue: v.Queue, policy: v.policy}
	var capped []string
	for _, key := range []string{"message-ttl", "max-length", "max-length-bytes", "expires", "delivery-limit"} {
		asked, set := without.Least(key)
		low, _ := v.Least(key)
		was := strconv.FormatInt(asked.N, 10)
		if key == "delivery-limit" {
			low, _ = v.DeliveryLimit(in.s.Version)
			if asked, limited := without.DeliveryLimit(in.s.Version); limited {
				was = strconv.FormatInt(max(asked.N, 0), 10)
			}
		}
		if set && low.From == FromOperator && was != strconv.FormatInt(max(low.N, 0), 10) {
			capped = append(capped, textf("%s from %s to %d", key, was, max(low.N, 0)))
		}
	}
	if len(capped) == 0 {
		return
	}
	in.add(Finding{
		Kind: OperatorCaps, Queue: v.Name, cause: p.Name,
		Title: textf("Operator policy %s lowers limits of %s", p.Name, v.Name),
		Loses: "messages above the lower limit: they become dead letters, or are deleted if the queue has no dead-letter exchange",
		Why: textf(
			"It lowers %s. If an argument, a policy and an operator policy set different limits, the smallest one applies.",
			strings.Join(capped, " and "),
		),
		Cure: "Ask the operators of the broker, if the lower limit is not intended.",
	})
}

// policiesTwice reports two policies that have the same name. Only a definitions file can contain
// them.
func (in *inspector) policiesTwice() {
	seen := map[string]int{}
	for _, p := range in.s.Policies {
		if seen[p.Name]++; seen[p.Name] == 2 {
			in.add(Finding{
				Kind:  PolicyTwice,
				Title: textf("Two policies have the name %s", p.Name),
				Loses: "the dead letters of the queues that only the first one matches",
				Why:   "A second policy of the same name replaces the first when the file is imported.",
				Cure:  "Give each policy its own name.",
			})
		}
	}
}

// policiesChanged reports policies that dlo has set and that somebody has since changed or deleted.
func (in *inspector) policiesChanged() {
	for _, applied := range in.o.Applied {
		f := Finding{
			Kind:  PolicyChanged,
			Loses: "nothing by itself: if a queue of the policy loses its dead letters now, that is a finding of its own",
		}
		at := slices.IndexFunc(in.s.Policies, func(p Policy) bool { return p.Name == applied.Name })
		switch {
		case at < 0:
			f.Title = textf("Policy %s, which dlo has set, was deleted", applied.Name)
			f.Why = "dlo set: " + applied.Words() + "."
			f.Cure = textf(
				"If that is intended, run `dlo topology undo` for its queues, so that dlo forgets it. If not, plan and apply again. Its name was %s.",
				applied.Name,
			)
		case !in.s.Policies[at].Same(&applied.Policy):
			f.Title = textf("Policy %s, which dlo has set, was changed by somebody else", applied.Name)
			f.Why = textf("dlo set: %s. It is now: %s.", applied.Words(), in.s.Policies[at].Words())
			f.Cure = "dlo leaves it alone. Set it back, or delete it and run `dlo topology undo` for its queues, so that dlo forgets it."
		default:
			continue
		}
		in.add(f)
	}
}

// hiddenChanged reports a queue if somebody has changed one of its policies, but the change has no
// effect. Only one policy applies to a queue. When dlo sets its own policy, that policy therefore
// repeats the keys of the policy that applied before. If somebody later changes the earlier policy,
// the change has no effect on the queue.
func (in *inspector) hiddenChanged(v *view) {
	winner := v.policy.winner
	setByDlo := func(p *Policy) int {
		return slices.IndexFunc(in.o.Applied, func(a Planned) bool { return a.Name == p.Name })
	}
	if winner == nil || setByDlo(winner) < 0 || len(v.policy.unsure) > 0 {
		return
	}
	applied, hidden := &in.o.Applied[setByDlo(winner)], Policy{}
	if !applied.Same(winner) {
		return
	}
	for _, p := range v.policy.losers {
		if setByDlo(p) < 0 { // while a queue leaves a policy of dlo, there are two of them
			hidden = *p
			break
		}
	}
	changed := changes(applied.replaced(), hidden.Definition)
	if len(changed) == 0 {
		return
	}
	var words []string
	for _, c := range changed {
		words = append(words, deadletter.Visible(deadletter.Cut(c.Words(), 200)))
	}
	was, is := "no policy applied to the queue", "no other policy applies to it"
	if applied.Hides != "" {
		was = textf("policy %s applied to the queue", applied.Hides)
	}
	if hidden.Name != "" {
		is = textf("policy %s would apply without it", hidden.Name)
	}
	in.add(Finding{
		Kind: HiddenChanged, Queue: v.Name, cause: applied.Name,
		Title: textf(
			"A change of another policy has no effect on %s, because policy %s of dlo hides it", v.Name, applied.Name,
		),
		Loses: "nothing by itself: the queue keeps its old settings",
		Why: textf(
			"When dlo set its policy, %s, and dlo repeated the keys. Now %s. The difference: %s.", was, is,
			strings.Join(words, "; "),
		),
		Cure: "If the change is meant for this queue, let the queue leave dlo and adopt it again: run `dlo topology leave` and then `dlo topology apply`, each with the name of the queue. Dead letters do not reach dlo between the two commands.",
	})
}
