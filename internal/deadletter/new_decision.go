package deadletter

import "time"

// Waiting is a letter that waits for its retry, as read for a new decision.
type Waiting struct {
	Letter
	Since  time.Time // when dlo received the death that caused the wait
	Chosen bool      // someone set its due time
}

// NewDecision is the decision that the current rules make on a waiting letter.
type NewDecision struct {
	Letter   ID
	Origin   Origin
	Left     string      // why the letter is left alone; "" = it is not left alone
	Outcome  RuleOutcome // "" = nothing changes
	Rule     string
	Severity Severity
	Why      string
	DueAt    time.Time // of a retry
	ToldBy   time.Time // for a retry: as in Classified
	Channels []string  // channels that are notified if the letter is now dead

	WasRule   string    // rule that decided before
	WasDueAt  time.Time // due time of the letter when it was read
	ChangedAt time.Time // time of the letter's last change when it was read; a letter that has changed since is left alone
}

// LeftChanged is the reason for leaving a letter alone: it changed after it was read.
const LeftChanged = "it has changed meanwhile"
