package deadletter

// RuleOutcome is what becomes of a letter by a rule.
type RuleOutcome string

const (
	RuleRetry   RuleOutcome = "retry"   // it is sent again after a delay
	RuleDead    RuleOutcome = "dead"    // it needs a person
	RuleDiscard RuleOutcome = "discard" // it is known noise
)

// RuleOutcomes lists all of them, in the order in which pages and commands name them.
var RuleOutcomes = []RuleOutcome{RuleRetry, RuleDead, RuleDiscard}

// ruled says what each outcome is called when it has happened, and which trigger it is for a letter
// that was received and for one that waits for its retry.
var ruled = map[RuleOutcome]struct {
	past              string
	received, waiting Trigger
}{
	RuleRetry:   {"retried", ClassifiedRetry, Timing},
	RuleDead:    {"dead", ClassifiedDead, DecidedDead},
	RuleDiscard: {"discarded", ClassifiedDiscard, Discarding},
}

// Past returns what became of a letter: "retried".
func (o RuleOutcome) Past() string { return ruled[o].past }

// OfReceived returns the trigger of a letter that was received.
func (o RuleOutcome) OfReceived() Trigger { return ruled[o].received }

// OfWaiting returns the trigger of a letter that waits for its retry, and about which rules that
// have changed decide again.
func (o RuleOutcome) OfWaiting() Trigger { return ruled[o].waiting }

// Ruled returns what a rule made of the letters in a state; "" where no rule has decided, for
// example of what is held.
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
