package topology

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// difference compares what dlo computes for a queue with what the broker reports. It returns both
// in words, or "" if they are equal, or if the broker reports nothing.
func (e *Effect) difference() (computed, reported string) {
	if e.policy.differs {
		return policyWords(e.policy.ignored), policyWords(e.policy.winner)
	}
	if e.reported == nil || len(e.policy.unsure)+len(e.operator.unsure) > 0 {
		return "", ""
	}
	want := e.policy.winner.definition().With(e.operator.winner.definition())
	if maps.EqualFunc(want, e.reported, func(any, any) bool { return true }) {
		return "", ""
	}
	return policyWords(e.policy.winner) + " and operator " + policyWords(e.operator.winner) + ", which set " +
		keyWords(want), keyWords(e.reported)
}

func policyWords(p *Policy) string {
	if p == nil {
		return "no policy"
	}
	return "policy " + safeName(p.Name)
}

func keyWords(d Definition) string {
	if len(d) == 0 {
		return "no key"
	}
	return "the keys " + deadletter.Visible(strings.Join(slices.Sorted(maps.Keys(d)), ", "))
}

// Difference says in one line how the settings of a queue that the broker reports differ from those
// that dlo computes. It returns "" if they do not differ.
func (e *Effect) Difference() string {
	computed, reported := e.difference()
	if computed == "" {
		return ""
	}
	return computed + ", but " + reported
}

// Doubtful reports whether the policies of a queue need another look: the broker has not said which
// policy applies, or it says something else than dlo computes.
func (e *Effect) Doubtful() bool {
	return e.Difference() != "" || e.Queue.Policy == nil && (e.policy.winner != nil || len(e.policy.unsure) > 0)
}

// policiesDiffer reports queues to which the broker applies other settings than dlo computes. The
// queues for which dlo and the broker say the same are one finding.
func (in *inspector) policiesDiffer() {
	at := map[[2]string]int{}
	for i := range in.s.Queues {
		v := in.views[in.s.Queues[i].Name]
		computed, reported := v.difference()
		if computed == "" {
			continue
		}
		if n, ok := at[[2]string{computed, reported}]; ok {
			in.found[n].Others = append(in.found[n].Others, v.Name)
			continue
		}
		at[[2]string{computed, reported}] = len(in.found)
		in.add(Finding{
			Kind: PolicyIgnored, Queue: v.Name,
			Title: fmt.Sprintf("RabbitMQ does not apply to %s what its policies say", safeName(v.Name)),
			Loses: "what the settings that do not apply would keep: without a dead-letter exchange, every reject",
			Why: fmt.Sprintf("By pattern, priority and keys it would be: %s. The broker reports: %s. RabbitMQ ignores a whole policy if the type of the queue does not support one of its keys.",
				computed, reported),
			Cure: "Compare with `rabbitmqctl list_queues name type policy`. Take the key that the type does not support out of the policy, for example by a policy for each type of queue.",
		})
	}
}

// Unknown returns an operator policy that may set a key for the queue, if dlo cannot evaluate its
// pattern and the broker does not say which keys apply. It returns nil if there is none.
func (e *Effect) Unknown(key string) *Policy {
	at := slices.IndexFunc(
		e.operator.unsure, func(p *Policy) bool { _, sets := p.Definition[key]; return sets && e.reported == nil },
	)
	if at < 0 {
		return nil
	}
	return e.operator.unsure[at]
}
