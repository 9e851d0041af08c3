package classify

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// foregone applies what was decided on a letter before it was read, and says whether anything
// was. An imported letter stays what it was, and a suspect is held. No rule changes that, nor that
// the letter cannot be read: a suspect that anybody could requeue as dead might be sent twice.
func foregone(l *deadletter.Letter, v *deadletter.Classified) bool {
	switch {
	case l.Imported != "":
		v.DueAt, v.Why = time.Time{}, importedWhy+string(l.Imported)+" where it comes from"
		v.To = map[deadletter.State]deadletter.Trigger{deadletter.StateDiscarded: deadletter.ClassifiedDiscard, deadletter.StateHeld: deadletter.ClassifiedHold}[l.Imported]
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

// guard keeps a letter from being sent where it may not go, against what its rule decided. A letter
// that a person released from a guard is not held by one again: it needs a person. question is what
// is not known of where it died.
func (c *Classifier) guard(l *deadletter.Letter, v *deadletter.Classified, decided deadletter.RuleOutcome, question string) {
	switch err := c.o.Targets.AllowLetter(v.Origin, v.Rule); {
	case l.Unguarded && err != nil && decided == deadletter.RuleRetry: // nothing can send it by itself
		v.To, v.Why, v.DueAt = deadletter.ClassifiedDead, "no target: "+err.Error(), time.Time{}
	case l.Unguarded && v.Unpublishable != "" && decided == deadletter.RuleRetry:
		v.To, v.Why, v.DueAt = deadletter.ClassifiedDead, v.Unpublishable, time.Time{}
	case l.Unguarded:
	case decided == deadletter.RuleDiscard: // it needs no target
	case question != "":
		v.To, v.Why, v.DueAt = deadletter.ClassifiedHold, question, time.Time{}
	case v.Origin.Queue == "":
		v.To, v.Why, v.DueAt = deadletter.ClassifiedHold, "no origin: nothing says which queue it died in", time.Time{}
	case err != nil:
		v.To, v.Why, v.DueAt = deadletter.ClassifiedHold, "no target: "+err.Error(), time.Time{}
	}
}
