package api

import (
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Operation is an action on letters. The response to GET /operations contains it. So does the
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
	Except      int                       `json:"except"`  // number of letters that match the query but were excluded
	Changed     int                       `json:"changed"` // number of letters that match the query but had changed
	To          string                    `json:"to"`
	DueAt       Time                      `json:"due_at,omitzero"`
	Reset       bool                      `json:"reset_attempts,omitzero"`
	Restored    bool                      `json:"include_restored,omitzero"`
	CreatedAt   Time                      `json:"created_at"`
	SentAt      Time                      `json:"sent_at,omitzero"`
	FinishedAt  Time                      `json:"finished_at,omitzero"`
	Total       int                       `json:"total"` // number of letters
	Sent        int                       `json:"sent"`  // number of letters that the broker has confirmed
	Twice       int                       `json:"twice"` // number of letters that may have been sent twice
	Rate        float64                   `json:"rate"`  // current letters per second
	Pace        Pace                      `json:"pace"`
	Counts      map[string]int            `json:"counts"` // number of letters with each result; the sum is total
	Verdict     Verdict                   `json:"verdict"`
	NewFailures *NewFailures              `json:"new_failures,omitzero"` // not in lists
	Queues      []OperationQueue          `json:"queues"`
}

// Pace says how fast and how carefully a requeue sends letters. A plan and the response to GET
// /operations contain it.
type Pace struct {
	Rate       float64  `json:"rate"`   // letters per second
	Canary     int      `json:"canary"` // number of letters that are sent first; 0 = none
	CanaryWait Duration `json:"canary_wait"`
	// percentage of returned letters at which the operation stops; 0 = it never stops by itself
	StopAt   float64  `json:"stop_at"`
	MaxDepth int      `json:"max_depth"` // maximum number of messages in a target queue; 0 = no limit
	Order    string   `json:"order"`
	Hold     Duration `json:"hold"`
}

// Verdict counts the letters of an operation by their results. The response to GET /operations
// contains it.
type Verdict struct {
	Final      bool `json:"final"` // the result of every letter is known
	Quiet      int  `json:"quiet"`
	Unverified int  `json:"unverified"`
	CameBack   int  `json:"came_back"`
	Returned   int  `json:"returned"`
	Failed     int  `json:"failed"`
	InDoubt    int  `json:"in_doubt"`
	Skipped    int  `json:"skipped"`
	Watched    int  `json:"watched"` // number of letters whose result is not known yet
}

// NewFailures counts new letters in the groups of an operation. A letter is new if dlo received it
// after the operation was requested. The response to GET /operations/{id} contains it.
type NewFailures struct {
	Count int  `json:"count"`
	Exact bool `json:"exact"` // false = there are more letters
}

// OperationQueue counts the letters of an operation in one queue by their results. The response to
// GET /operations contains it.
type OperationQueue struct {
	Broker string         `json:"broker"`
	VHost  string         `json:"vhost"`
	Queue  string         `json:"queue"`
	Counts map[string]int `json:"counts"`
}

// OperationLetter is one letter of an operation. The response to GET /operations/{id} contains it.
type OperationLetter struct {
	Letter deadletter.ID `json:"letter"`
	Queue  string        `json:"queue"`
	Result string        `json:"result"`
	Reason string        `json:"reason"`
	Twice  bool          `json:"twice"` // the letter may have been sent twice

	State deadletter.State `json:"state"`           // current state
	DueAt *Time            `json:"due_at,omitzero"` // if the letter is scheduled, when it is sent
	Group string           `json:"group,omitzero"`  // the current group; missing = none
	// the error of the latest death; if there is none, the title of the group
	Error string `json:"error"`
	// the letter came back with the same error as before; null = unknown
	SameError *bool `json:"same_error"`
}

// Operations is a page of GET /operations.
type Operations struct {
	Operations []Operation `json:"operations"`
	Next       string      `json:"next"`
}

// OperationLetters is the response to GET /operations/{id}. It contains the operation and one page
// of its letters.
type OperationLetters struct {
	Operation
	Letters []OperationLetter `json:"letters"`
	Next    string            `json:"next"`
}

// RateChange is the body of PATCH /operations/{id}.
type RateChange struct {
	Rate *float64 `json:"rate"` // letters per second
}
