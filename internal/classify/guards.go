package classify

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// applyEarlierDecision applies a decision that was made about a letter before the letter was read,
// and reports whether there was such a decision. An imported letter keeps its state, and a
// suspected duplicate is held. In both cases, it does not matter what the rules say or whether the
// letter can be read. If a suspected duplicate became dead, anybody could requeue it, and it might
// be sent twice.
func applyEarlierDecision(l *deadletter.Letter, v *deadletter.Classified) bool {
	switch {
	case l.Imported != "":
		v.DueAt, v.Why = time.Time{}, importedWhy+string(l.Imported)+" where it comes from"
		v.To = map[deadletter.State]deadletter.Trigger{
			deadletter.StateDiscarded: deadletter.ClassifiedDiscard, deadletter.StateHeld: deadletter.ClassifiedHold,
		}[l.Imported]
		if v.To == "" {
			v.To = deadletter.ClassifiedDead
		}
	case l.Doubt != "":
		v.To, v.Why, v.DueAt = deadletter.ClassifiedHold, l.Why, time.Time{}
	default:
		return false
	}
	return true
}

// noOrigin is the reason that people see if a letter is held because it has no origin.
const noOrigin = "no origin: nothing says which queue it died in. Redirect it to a queue, or discard it; brokers[].origins can name the queue for further letters of its inbox"

// guard overrides a rule's decision if the letter must not be sent to its target. Once a person has
// released a letter, no guard holds it again. If such a letter is to be retried but cannot be sent,
// it becomes dead and waits for a person. The parameter "question" is the open question about where
// the letter died, or "" if there is none.
func (c *Classifier) guard(
	l *deadletter.Letter, v *deadletter.Classified, decided deadletter.RuleOutcome, question string,
) {
	switch err := c.o.Targets.AllowLetter(v.Origin, v.Rule); {
	case l.Unguarded && err != nil && decided == deadletter.RuleRetry: // dlo cannot send the letter automatically
		v.To, v.Why, v.DueAt = deadletter.ClassifiedDead, "no target: "+err.Error(), time.Time{}
	case l.Unguarded && v.Unpublishable != "" && decided == deadletter.RuleRetry:
		v.To, v.Why, v.DueAt = deadletter.ClassifiedDead, v.Unpublishable, time.Time{}
	case l.Unguarded:
	case decided == deadletter.RuleDiscard: // a discarded letter needs no target
	case question != "":
		v.To, v.Why, v.DueAt = deadletter.ClassifiedHold, question, time.Time{}
	case v.Origin.Queue == "":
		v.To, v.Why, v.DueAt = deadletter.ClassifiedHold, noOrigin, time.Time{}
	case err != nil:
		v.To, v.Why, v.DueAt = deadletter.ClassifiedHold, "no target: "+err.Error(), time.Time{}
	}
}
