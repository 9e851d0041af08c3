package api

import (
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Operation is an action on letters. The response to GET /operations contains it, and so does the
// response to every call that starts or controls an operation.
type Operation struct {
	ID          string                    `json:"id"`
	Action      deadletter.Verb           `json:"action"`
	State       deadletter.OperationState `json:"state"`
	Phase       deadletter.OperationPhase `json:"phase"`
	PhaseUntil  Time                      `json:"phase_until,omitzero"`
	Why         string                    `json:"why"`
	By          string                    `json:"by"`
	Through     string                    `json:"through"`
	Reason      string                    `json:"reason"`
	Query       string                    `json:"query"`
	Except      int                       `json:"except"`  // letters excluded from the query
	Changed     int                       `json:"changed"` // matching letters that had changed
	To          string                    `json:"to"`
	DueAt       Time                      `json:"due_at,omitzero"`
	Reset       bool                      `json:"reset_attempts,omitempty"`
	Restored    bool                      `json:"include_restored,omitempty"`
	CreatedAt   Time                      `json:"created_at"`
	SentAt      Time                      `json:"sent_at,omitzero"`
	FinishedAt  Time                      `json:"finished_at,omitzero"`
	Total       int                       `json:"total"` // number of letters
	Sent        int                       `json:"sent"`  // letters confirmed by the broker
	Twice       int                       `json:"twice"` // letters that may have been sent twice
	Rate        float64                   `json:"rate"`  // current letters per second
	Pace        Pace                      `json:"pace"`
	Counts      map[string]int            `json:"counts"` // letters by result; they add up to total
	Verdict     Verdict                   `json:"verdict"`
	NewFailures *NewFailures              `json:"new_failures,omitempty"` // missing in lists
	Queues      []OperationQueue          `json:"queues"`
}

// Pace describes how a requeue is sent. A plan and the response to GET /operations contain it.
type Pace struct {
	Rate       float64  `json:"rate"`   // letters per second
	Canary     int      `json:"canary"` // letters sent first; 0 = none
	CanaryWait Duration `json:"canary_wait"`
	StopAt     float64  `json:"stop_at"`   // per cent that came back; 0 = never stop automatically
	MaxDepth   int      `json:"max_depth"` // messages in a target queue; 0 = no limit
	Order      string   `json:"order"`
	Hold       Duration `json:"hold"`
}

// Verdict counts the letters of an operation by result. The response to GET /operations contains
// it.
type Verdict struct {
	Final      bool `json:"final"` // the result of every letter is known
	Quiet      int  `json:"quiet"`
	Unverified int  `json:"unverified"`
	CameBack   int  `json:"came_back"`
	Returned   int  `json:"returned"`
	Failed     int  `json:"failed"`
	InDoubt    int  `json:"in_doubt"`
	Skipped    int  `json:"skipped"`
	Watched    int  `json:"watched"` // letters whose result is not known yet
}

// NewFailures counts the letters that were received in the operation's groups after the operation
// was requested. The response to GET /operations/{id} contains it.
type NewFailures struct {
	Count int  `json:"count"`
	Exact bool `json:"exact"` // false = there are more
}

// OperationQueue counts the letters that an operation has in one queue, by result. The response to
// GET /operations contains it.
type OperationQueue struct {
	Broker string         `json:"broker"`
	VHost  string         `json:"vhost"`
	Queue  string         `json:"queue"`
	Counts map[string]int `json:"counts"`
}

// OperationLetter is a letter of an operation. The response to GET /operations/{id} contains it.
type OperationLetter struct {
	Letter deadletter.ID `json:"letter"`
	Queue  string        `json:"queue"`
	Result string        `json:"result"`
	Reason string        `json:"reason"`
	Twice  bool          `json:"twice"` // may have been sent twice

	State     deadletter.State `json:"state"`            // now
	DueAt     *Time            `json:"due_at,omitempty"` // when a scheduled letter is sent
	Group     string           `json:"group,omitempty"`  // current group; missing = none
	Error     string           `json:"error"`            // error of its latest death; title of its group if no error was reported
	SameError *bool            `json:"same_error"`       // whether it came back with the same error as before; null: unknown
}

// Operations is a page of GET /operations.
type Operations struct {
	Operations []Operation `json:"operations"`
	Next       string      `json:"next"`
}

// OperationLetters is the response to GET /operations/{id}: the operation and one page of its
// letters.
type OperationLetters struct {
	Operation
	Letters []OperationLetter `json:"letters"`
	Next    string            `json:"next"`
}

// RateChange is the body of PATCH /operations/{id}.
type RateChange struct {
	Rate *float64 `json:"rate"` // letters per second
}
