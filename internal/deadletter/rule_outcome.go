package deadletter

// RuleOutcome is the action of a rule on a letter.
type RuleOutcome string

const (
	RuleRetry   RuleOutcome = "retry"   // sent again after a delay
	RuleDead    RuleOutcome = "dead"    // it needs a person
	RuleDiscard RuleOutcome = "discard" // it is known noise
)

// RuleOutcomes lists all outcomes, in the order used by pages and commands.
var RuleOutcomes = []RuleOutcome{RuleRetry, RuleDead, RuleDiscard}

// ruled holds the past form of each outcome, its trigger for a received letter, and its trigger for
// a letter that waits for its retry.
var ruled = map[RuleOutcome]struct {
	past              string
	received, waiting Trigger
}{
	RuleRetry:   {"retried", ClassifiedRetry, Timing},
	RuleDead:    {"dead", ClassifiedDead, DecidedDead},
	RuleDiscard: {"discarded", ClassifiedDiscard, Discarding},
}

// Past returns the past form of the outcome: "retried".
func (o RuleOutcome) Past() string { return ruled[o].past }

// OfReceived returns the trigger for a received letter.
func (o RuleOutcome) OfReceived() Trigger { return ruled[o].received }

// OfWaiting returns the trigger for a letter that waits for its retry, and on which changed rules
// decide again.
func (o RuleOutcome) OfWaiting() Trigger { return ruled[o].waiting }

// Ruled returns the rule outcome that led to a state. It returns "" if no rule has decided, for
// example for held letters.
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
