package topology

import (
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// keepsLetters checks that a queue does not delete the dead letters that end in it. A queue that
// dead-letters the messages that it removes is only a step on the path, and loses nothing. An inbox
// is checked in any case, because it must keep everything.
func (in *inspector) keepsLetters(v *view, inbox bool) {
	if v.Kind() == Stream {
		return
	}
	if !inbox && (len(v.Queues) > 0 || v.Set && (v.AnyKey || len(v.Unjudged) > 0)) {
		return
	}
	in.lettersDeleted(v, inbox)
	in.deliveryLimit(v, inbox)
}

// lettersDeleted reports the limits that make a dead-letter queue delete letters. If dlo does not
// drain the queue, the finding gets a low severity, so that nobody is paged, because the owners of
// the queue may want these limits.
func (in *inspector) lettersDeleted(v *view, inbox bool) {
	var ways []string
	limits := v.droppingLimits()
	if d, ok := v.Least("expires"); ok {
		limits = append(limits, Limit{"expires", d})
	}
	for _, d := range limits {
		ways = append(ways, textf("%s %d", d.Key, d.N))
	}
	if v.AutoDelete {
		ways = append(ways, "auto-delete")
	}
	if v.Exclusive {
		ways = append(ways, "exclusive")
	}
	if len(ways) == 0 {
		in.lettersRefused(v)
		return
	}
	f := Finding{
		Kind: LettersDeleted, Queue: v.Name, cause: policiesOf(limits),
		Title: textf("Dead-letter queue %s deletes letters", v.Name),
		Loses: "letters that wait too long, that exceed the limit of the queue, or that are in the queue when it is deleted",
		Why:   "The queue has " + strings.Join(ways, ", ") + ".",
		Cure:  "Remove these settings. An argument cannot be changed: let dlo drain the queue, or replace it by a queue without the argument.",
	}
	if !inbox {
		f.Severity = deadletter.SeverityNotify
	}
	in.add(f)
}

// lettersRefused reports a dead-letter queue that refuses new letters while it is full. The broker
// drops these letters, unless they come from a queue that dead-letters at least once.
func (in *inspector) lettersRefused(v *view) {
	limits := v.lengthLimits()
	var losing []string
	for _, from := range in.sources[v.Name] {
		if _, waits := from.atLeastOnce(); !waits {
			losing = append(losing, from.Name)
		}
	}
	if len(limits) == 0 || len(losing) == 0 {
		return
	}
	in.add(Finding{
		Kind: LettersDeleted, Queue: v.Name, Others: losing, Severity: deadletter.SeverityNotify,
		cause: "refused " + policiesOf(limits[:1]),
		Title: textf("Dead-letter queue %s refuses letters once it is full", v.Name),
		Loses: "each new letter of " + nameList(losing) + ", while the queue is full",
		Why: textf(
			"The queue has %s %d and overflow reject-publish. The broker drops a dead letter that its queue refuses, unless it died in a queue that dead-letters at least once.",
			limits[0].Key, limits[0].N,
		),
		Cure: "Remove the limit. An argument cannot be changed: let dlo drain the queue, or replace it by a queue without the argument.",
	})
}

// policiesOf returns the names of the policies that set some limits. It returns "" if an argument
// of a queue sets one of them, or if there are none.
func policiesOf(limits []Limit) string {
	var names []string
	for _, l := range limits {
		if l.Policy == "" {
			return ""
		}
		names = append(names, l.Policy)
	}
	return strings.Join(names, "\n")
}

// deliveryLimit reports a dead-letter queue that deletes a letter after too many deliveries. Such a
// queue can lose letters even if dlo rejects none of them, because a delivery also counts if the
// connection of the reader is lost.
func (in *inspector) deliveryLimit(v *view, inbox bool) {
	if v.Kind() != Quorum || in.s.Version == "" {
		return
	}
	limit, limited := v.DeliveryLimit(in.s.Version)
	if !limited {
		return
	}
	f := Finding{
		Kind: DeliveryLimit, Queue: v.Name, cause: limit.Policy,
		Title: textf("Dead-letter queue %s deletes a letter after %d deliveries", v.Name, max(limit.N, 0)+1),
		Loses: "letters that were delivered too often without being acknowledged; lost connections alone can cause this",
	}
	switch {
	case limit.From == "":
		f.cause = "default"
		f.Why = "Since RabbitMQ 4.0, a quorum queue has a delivery limit of 20 unless another limit is set."
		f.Cure = "Set a policy with delivery-limit -1 for the queue: -1 means no limit."
	case limit.N < 0:
		f.Why = textf(
			"%s sets the delivery limit %d. RabbitMQ 3.x reads a negative limit as 0.", limit.source(), limit.N,
		)
		f.Cure = "Remove the limit: on 3.x, a quorum queue has none by default."
	default:
		f.Why = textf("%s sets the delivery limit %d.", limit.source(), limit.N)
		f.Cure = "Remove the limit. On RabbitMQ 4.0 and later, set delivery-limit -1, which means no limit."
	}
	if !inbox {
		f.Severity = deadletter.SeverityDigest
	}
	in.add(f)
}
