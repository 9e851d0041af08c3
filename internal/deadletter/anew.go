package deadletter

import "time"

// Waiting is a letter that waits for its retry, as it was read to be decided again.
type Waiting struct {
	Letter
	Since  time.Time // when the death that it waits for reached dlo
	Chosen bool      // someone set its due time
}

// Again is what the rules in use decide on a letter that waits.
type Anew struct {
	Letter   ID
	Origin   Origin
	Left     string      // why it is left alone; "" = it is not
	Outcome  RuleOutcome // "" = nothing changes
	Rule     string
	Severity Severity
	Why      string
	DueAt    time.Time // of a retry
	ToldBy   time.Time // of a retry: as in Classified
	Channels []string  // where people are told of it, should it be dead now

	WasRule   string    // that decided before
	WasDueAt  time.Time // as it was read
	ChangedAt time.Time // as it was read: what has changed since is left alone
}

// LeftChanged says of a letter that it is not what it was when it was read.
const LeftChanged = "it has changed meanwhile"
