package topology

import (
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// whileAway is a text that findings contain. It says what happens to publishers if a queue
// dead-letters at least once and has the overflow reject-publish.
const whileAway = "While the dead-letter queue is away, dead letters then stay in this queue. If it also has a length limit, publishers are refused once it is full."

// checkGuarantee checks whether a quorum queue can lose dead letters on the way to the next queue.
func (in *inspector) checkGuarantee(v *view) {
	if !v.Set || v.Kind() != Quorum {
		return
	}
	in.checkStuck(v)
	if !v.Exists {
		return
	}
	asked, works := v.atLeastOnce()
	if works {
		return
	}
	_, _, hindered := v.atLeastOnceHindrance()
	f := Finding{
		Kind: AtMostOnce, Queue: v.Name, Plannable: v.Exchange.From != FromArgument && !hindered,
		cause: "policy " + v.policyName(), // it could set what is missing
		Title: textf("%s can lose dead letters in a crash", v.Name),
		Loses: "dead letters that are on their way when a node fails or the dead-letter queue is not available",
		Why:   "Quorum queues dead-letter at most once unless the strategy at-least-once is set.",
		Cure:  "Set dead-letter-strategy at-least-once and overflow reject-publish in the policy. " + whileAway,
	}
	if asked {
		f.Kind = OverflowDrops
		f.Title = textf("%s asks for at-least-once dead-lettering and does not get it", v.Name)
		f.Why = "The strategy at-least-once works only with overflow reject-publish. With drop-head, the default, the broker uses at-most-once."
		f.Cure = "Set overflow reject-publish in the same policy. " + whileAway +
			" If the queue was declared with the argument x-overflow, declare it again without that argument."
	}
	in.add(f)
}

// checkStuck reports dead letters that at-least-once dead-lettering holds back, and what they wait
// for.
func (in *inspector) checkStuck(v *view) {
	if v.Stuck.N <= 0 {
		return
	}
	why, others := "The target is full or not available, or the letters are only on their way.", []string(nil)
	missing := []Kind{ExchangeMissing, QueueMissing, NoBinding}
	if i := slices.IndexFunc(in.found, func(f Finding) bool {
		return f.Queue == v.Name && slices.Contains(missing, f.Kind) && f.Severity == deadletter.SeverityPage
	}); i >= 0 {
		why, others = in.found[i].Title+".", in.found[i].Others
	}
	full := slices.DeleteFunc(
		slices.Clone(v.Queues),
		func(name string) bool { _, _, full := in.views[name].reachedLimit(); return !full || name == v.Name },
	)
	if len(full) > 0 {
		others, why = full, textf("Queue %s is full, and refuses letters.", nameList(full))
	}
	in.add(Finding{
		Kind: Stuck, Queue: v.Name, Others: others, Sure: Likely, cause: v.Exchange.Text + "\n" + v.Key.Text,
		Title: textf("%s holds %d dead letters that it cannot pass on", v.Name, v.Stuck.N),
		Loses: "nothing yet: the letters wait in the queue, and count towards its length limit",
		Why:   "With at-least-once, a dead letter waits until its target confirms it. " + why,
		Cure:  "Check that the dead-letter exchange exists, that it is bound, and that its queue accepts messages. The broker then tries again within three minutes.",
	})
}
