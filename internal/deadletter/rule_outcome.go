package deadletter

// RuleOutcome says what a rule does with a letter.
type RuleOutcome string

const (
	RuleRetry   RuleOutcome = "retry"   // the letter is sent again after a delay
	RuleDead    RuleOutcome = "dead"    // the letter needs a person
	RuleDiscard RuleOutcome = "discard" // the letter is known noise
)

// RuleOutcomes lists all outcomes, in the order in which pages and commands show them.
var RuleOutcomes = []RuleOutcome{RuleRetry, RuleDead, RuleDiscard}

// ruled contains three values for each outcome: its past form, its trigger for a received letter,
// and its trigger for a letter that waits for its retry.
var ruled = map[RuleOutcome]struct {
	past              string
	received, waiting Trigger
}{
	RuleRetry:   {"retried", ClassifiedRetry, Timing},
	RuleDead:    {"dead", ClassifiedDead, DecidedDead},
	RuleDiscard: {"discarded", ClassifiedDiscard, Discarding},
}

// Past returns the past form of the outcome, such as "retried".
func (o RuleOutcome) Past() string { return ruled[o].past }

// OfReceived returns the trigger that the outcome has for a received letter.
func (o RuleOutcome) OfReceived() Trigger { return ruled[o].received }

// OfWaiting returns the trigger that the outcome has for a letter that waits for its retry. It is
// used when changed rules decide about the letter again.
func (o RuleOutcome) OfWaiting() Trigger { return ruled[o].waiting }

// Ruled returns the outcome of the rule because of which a letter is in this state. If no rule has
// decided, for example about a held letter, it returns "".
func (s State) Ruled() RuleOutcome {
	switch s {
	case StateScheduled, StatePublishing, StateRequeued, StateSettled:
		return RuleRetry
	case StateDead:
		return RuleDead
	case StateDiscarded:
		return RuleDiscard
	}
	return ""
}
