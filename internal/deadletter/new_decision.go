package deadletter

import "time"

// Waiting is a letter that waits for its retry. The rules are to decide about this letter again.
type Waiting struct {
	Letter
	Since  time.Time // time at which dlo received the death because of which the letter waits
	Chosen bool      // a person chose the due time
}

// NewDecision is what the present rules decide about a waiting letter.
type NewDecision struct {
	Letter   ID
	Origin   Origin
	Left     string      // reason why the letter stays as it is; "" = it may change
	Outcome  RuleOutcome // "" = nothing changes
	Rule     string
	Severity Severity
	Why      string
	DueAt    time.Time // due time of the retry
	// for a retry: time by which all retries should be over; people are notified if the letter
	// still waits then
	ToldBy   time.Time
	Channels []string // channels on which people are notified if the letter is now dead

	WasRule  string    // rule that decided about the letter before
	WasDueAt time.Time // due time when the letter was read
	// time of the last change when the letter was read; if the letter has changed since then, it
	// stays as it is
	ChangedAt time.Time
}

// LeftChanged is the reason why a new decision was not applied to a letter: the letter has changed
// since it was read.
const LeftChanged = "it has changed meanwhile"
