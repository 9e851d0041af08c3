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

// ruled contains three values for each outcome: a word for what happened to the letter, the trigger
// for a received letter, and the trigger for a letter that waits for its retry.
var ruled = map[RuleOutcome]struct {
	past              string
	received, waiting Trigger
}{
	RuleRetry:   {"retried", ClassifiedRetry, Timing},
	RuleDead:    {"dead", ClassifiedDead, DecidedDead},
	RuleDiscard: {"discarded", ClassifiedDiscard, Discarding},
}

// Past says in one word what a rule with this outcome has done with a letter, such as "retried".
func (o RuleOutcome) Past() string { return ruled[o].past }

// OfReceived returns the trigger that moves a received letter when a rule has this outcome.
func (o RuleOutcome) OfReceived() Trigger { return ruled[o].received }

// OfWaiting returns the trigger that moves a letter that waits for its retry. It is used when
// changed rules have this outcome for the letter.
func (o RuleOutcome) OfWaiting() Trigger { return ruled[o].waiting }

// Ruled returns the outcome of the rule that brought a letter into this state. If no rule has
// decided about letters in this state, for example held letters, it returns "".
func (s State) Ruled() RuleOutcome {
	switch s {
	case StateScheduled, StatePublishing, StateRequeued, StateQuiet:
		return RuleRetry
	case StateDead:
		return RuleDead
	case StateDiscarded:
		return RuleDiscard
	}
	return ""
}
