package topology

import (
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Difference says in one line how the settings of a queue that the broker reports differ from those
// that dlo computes. It returns "" if they do not differ, or if the broker reports nothing.
func (e *Effect) Difference() string {
	const but = ", but the broker reports "
	if e.policy.differs {
		return policyWords(e.policy.ignored) + but + policyWords(e.policy.winner)
	}
	if e.reported == nil || len(e.policy.unsure)+len(e.operator.unsure) > 0 {
		return ""
	}
	want := e.policy.winner.definition().With(e.operator.winner.definition())
	if len(want) == len(e.reported) && len(e.unknownKeys()) == 0 {
		return ""
	}
	return policyWords(e.policy.winner) + " and operator " + policyWords(e.operator.winner) + ", which set " +
		want.words() + but + e.reported.words()
}

func policyWords(p *Policy) string {
	if p == nil {
		return "no policy"
	}
	return "policy " + safeName(p.Name)
}

func (d Definition) words() string {
	if len(d) == 0 {
		return "nothing"
	}
	return safeName(deadletter.Cut(compact(d), 500))
}

// Doubtful reports whether the policies of a queue need another look: the broker has not said which
// policy applies, or it says something else than dlo computes.
func (e *Effect) Doubtful() bool {
	return e.Difference() != "" || e.Queue.Policy == nil && (e.policy.winner != nil || len(e.policy.unsure) > 0)
}

// policiesDiffer reports queues to which the broker applies other settings than dlo computes.
func (in *inspector) policiesDiffer() {
	for _, v := range in.all {
		difference := v.Difference()
		if difference == "" {
			continue
		}
		f := Finding{
			Kind: PolicyIgnored, Queue: v.Name, cause: difference, Severity: deadletter.SeverityNotify,
			Title: textf("RabbitMQ does not apply to %s what its policies say", v.Name),
			Loses: "nothing by itself: the other findings judge what the broker reports",
			Why: textf(
				"By pattern, priority and keys it would be: %s. RabbitMQ ignores a whole policy if the type of the queue does not support one of its keys.",
				difference,
			),
			Cure: "Compare with `rabbitmqctl list_queues name type policy`. " + oneForEachType,
		}
		if in.losesByDifference(v) {
			f.Severity, f.Loses, f.Plannable = severities[PolicyIgnored], losesAll(v), true
		}
		in.add(f)
	}
}

// oneForEachType says what to do about a policy with a key that the type of a queue does not
// support.
const oneForEachType = "Take the key that the type does not support out of the policy, for example by a policy for each type of queue."

// losesByDifference reports whether a queue has no dead-letter exchange although the policies that
// dlo computes set one.
func (in *inspector) losesByDifference(v *view) bool {
	if v.Difference() == "" || v.Set || !v.isDurableWork() || deadletter.OwnQueue(v.Name) || in.isInbox(v.Name) {
		return false
	}
	return v.policy.ignored.setsExchange() || !v.policy.differs && v.policy.winner.setsExchange()
}

// setsExchange reports whether a policy sets a dead-letter exchange. The policy may be nil.
func (p *Policy) setsExchange() bool {
	_, ok := p.definition().Text("dead-letter-exchange")
	return ok
}

// unfitPolicy reports a policy that sets the dead-letter exchange of a queue, but that RabbitMQ
// does not apply to the queue because of one of its keys.
func (in *inspector) unfitPolicy(v *view, p *Policy) {
	version := in.s.behaves()
	key := p.unsupported(version, v.Kind())
	in.add(Finding{
		Kind: PolicyIgnored, Queue: v.Name, cause: p.Name, Plannable: true, Loses: losesAll(v),
		Title: textf("%s has no dead-letter exchange, because RabbitMQ does not apply policy %s to it", v.Name, p.Name),
		Why: textf(
			"Policy %s has the key %s, which queues of the type %s do not support on RabbitMQ %s. RabbitMQ then applies no key of the policy to them.",
			p.Name, key, v.Kind(), version,
		),
		Cure: oneForEachType,
	})
}

// Unknown returns a policy or an operator policy that may set a key for the queue, if dlo cannot
// evaluate its pattern and the broker does not say which keys apply. It returns nil if there is
// none.
func (e *Effect) Unknown(key string) *Policy {
	for _, p := range slices.Concat(e.operator.unsure, e.policy.unsure) {
		if _, sets := p.Definition[key]; sets && e.reported == nil {
			return p
		}
	}
	return nil
}
