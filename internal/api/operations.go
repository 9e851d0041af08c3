package api

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Operation is an action on letters, in GET /operations and as every call that starts or steers one
// answers it.
type Operation struct {
	ID          string                    `json:"id"`
	Action      deadletter.Verb           `json:"action"`
	State       deadletter.OperationState `json:"state"`
	Phase       deadletter.OperationPhase `json:"phase"`
	PhaseUntil  time.Time                 `json:"phase_until,omitzero"`
	Why         string                    `json:"why"`
	By          string                    `json:"by"`
	Through     string                    `json:"through"`
	Reason      string                    `json:"reason"`
	Query       string                    `json:"query"`
	Except      int                       `json:"except"`  // letters of the query that were left out
	Changed     int                       `json:"changed"` // letters of the query that had changed
	To          string                    `json:"to"`
	DueAt       time.Time                 `json:"due_at,omitzero"`
	Reset       bool                      `json:"reset_attempts,omitempty"`
	Restored    bool                      `json:"include_restored,omitempty"`
	CreatedAt   time.Time                 `json:"created_at"`
	SentAt      time.Time                 `json:"sent_at,omitzero"`
	FinishedAt  time.Time                 `json:"finished_at,omitzero"`
	Total       int                       `json:"total"` // letters
	Sent        int                       `json:"sent"`  // letters that the broker has confirmed
	Twice       int                       `json:"twice"` // letters that may have been sent twice
	Rate        float64                   `json:"rate"`  // letters per second, now
	Pace        Pace                      `json:"pace"`
	Counts      map[string]int            `json:"counts"` // letters by result; the sum is total
	Verdict     Verdict                   `json:"verdict"`
	NewFailures *NewFailures              `json:"new_failures,omitempty"` // lists do not have it
	Queues      []OperationQueue          `json:"queues"`
}

// Pace is how a requeue is sent, in GET /operations and in a plan.
type Pace struct {
	Rate       float64  `json:"rate"`   // letters per second
	Canary     int      `json:"canary"` // letters that go first; 0: none
	CanaryWait Duration `json:"canary_wait"`
	StopAt     float64  `json:"stop_at"`   // per cent that came back; 0: it never stops by itself
	MaxDepth   int      `json:"max_depth"` // messages in a target queue; 0: no limit
	Order      string   `json:"order"`
	Hold       Duration `json:"hold"`
}

// Verdict is what became of the letters of an operation, in GET /operations: letters by result.
type Verdict struct {
	Final      bool `json:"final"` // it is known of all
	Quiet      int  `json:"quiet"`
	Unverified int  `json:"unverified"`
	CameBack   int  `json:"came_back"`
	Returned   int  `json:"returned"`
	Failed     int  `json:"failed"`
	InDoubt    int  `json:"in_doubt"`
	Skipped    int  `json:"skipped"`
	Watched    int  `json:"watched"` // of these it is not known yet
}

// NewFailures is how many letters of the groups of an operation were received since it was asked
// for, in GET /operations/{id}.
type NewFailures struct {
	Count int  `json:"count"`
	Exact bool `json:"exact"` // false: there are more
}

// OperationQueue is a queue of an operation, in GET /operations: letters by result.
type OperationQueue struct {
	Broker string         `json:"broker"`
	VHost  string         `json:"vhost"`
	Queue  string         `json:"queue"`
	Counts map[string]int `json:"counts"`
}

// OperationLetter is a letter of an operation, in GET /operations/{id}.
type OperationLetter struct {
	Letter deadletter.ID `json:"letter"`
	Queue  string        `json:"queue"`
	Result string        `json:"result"`
	Reason string        `json:"reason"`
	Twice  bool          `json:"twice"` // it may have been sent twice

	State     deadletter.State `json:"state"`                // now
	DueAt     *time.Time       `json:"due_at,omitempty"`     // of a scheduled letter: when it leaves
	Group     string           `json:"group,omitempty"`      // now; absent: it has none
	Error     string           `json:"error"`                // of its latest death; the title of its group where nobody reported one
	SameError *bool            `json:"same_error,omitempty"` // of one that came back: it died of what it had died of before; absent: not known
}

// Operations is a page of GET /operations.
type Operations struct {
	Operations []Operation `json:"operations"`
	Next       string      `json:"next"`
}

// OperationLetters is the answer of GET /operations/{id}: the operation, and a page of its letters.
type OperationLetters struct {
	Operation
	Letters []OperationLetter `json:"letters"`
	Next    string            `json:"next"`
}

// RateChange is the body of PATCH /operations/{id}.
type RateChange struct {
	Rate *float64 `json:"rate"` // letters per second
}
