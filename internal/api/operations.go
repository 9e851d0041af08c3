package api

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

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
	Except      int                       `json:"except"`
	Changed     int                       `json:"changed"`
	To          string                    `json:"to"`
	DueAt       time.Time                 `json:"due_at,omitzero"`
	Reset       bool                      `json:"reset_attempts,omitempty"`
	CreatedAt   time.Time                 `json:"created_at"`
	SentAt      time.Time                 `json:"sent_at,omitzero"`
	FinishedAt  time.Time                 `json:"finished_at,omitzero"`
	Total       int                       `json:"total"`
	Sent        int                       `json:"sent"`
	Twice       int                       `json:"twice"`
	Rate        float64                   `json:"rate"`
	Pace        Pace                      `json:"pace"`
	Counts      map[string]int            `json:"counts"` // by result; the sum is total
	Verdict     Verdict                   `json:"verdict"`
	NewFailures *NewFailures              `json:"new_failures,omitempty"` // of one operation; lists do not have it
	Queues      []OperationQueue          `json:"queues"`
}

// Pace is how a requeue is sent. Durations are texts such as 2m0s, which the request takes as well.
type Pace struct {
	Rate       float64 `json:"rate"`
	Canary     int     `json:"canary"`
	CanaryWait string  `json:"canary_wait"`
	StopAt     float64 `json:"stop_at"`
	MaxDepth   int     `json:"max_depth"`
	Order      string  `json:"order"`
	Hold       string  `json:"hold"`
}

// Verdict is what became of the letters, as far as it is known. Watched are those of which it is not known yet.
type Verdict struct {
	Final      bool `json:"final"`
	Quiet      int  `json:"quiet"`
	Unverified int  `json:"unverified"`
	CameBack   int  `json:"came_back"`
	Returned   int  `json:"returned"`
	Failed     int  `json:"failed"`
	InDoubt    int  `json:"in_doubt"`
	Skipped    int  `json:"skipped"`
	Watched    int  `json:"watched"`
}

type NewFailures struct {
	Count int  `json:"count"`
	Exact bool `json:"exact"`
}

type OperationQueue struct {
	Broker string         `json:"broker"`
	VHost  string         `json:"vhost"`
	Queue  string         `json:"queue"`
	Counts map[string]int `json:"counts"`
}

type OperationLetter struct {
	Letter deadletter.ID `json:"letter"`
	Queue  string        `json:"queue"`
	Result string        `json:"result"`
	Reason string        `json:"reason"`
	Twice  bool          `json:"twice"`
}

type Operations struct {
	Operations []Operation `json:"operations"`
	Next       string      `json:"next"`
}

type OperationLetters struct {
	Operation
	Letters []OperationLetter `json:"letters"`
	Next    string            `json:"next"`
}

type RateChange struct {
	Rate *float64 `json:"rate"` // letters per second
}
