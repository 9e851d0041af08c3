package api

import (
	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Trial says how far a test letter of dlo has come. GET /trial and POST /trial return it. The time
// of a step is missing until the letter has reached the step.
type Trial struct {
	Broker     string                `json:"broker"`
	VHost      string                `json:"vhost"`
	Queue      string                `json:"queue"`
	By         string                `json:"by"`
	State      deadletter.TrialState `json:"state"`
	Problem    string                `json:"problem"` // why the trial was not completed
	Cure       string                `json:"cure"`    // a command that solves the problem
	Letter     deadletter.ID         `json:"letter,omitzero"`
	Type       string                `json:"type"`    // type of the letter's body
	Summary    string                `json:"summary"` // summary of the letter's body, decoded
	StartedAt  Time                  `json:"started_at"`
	RejectedAt Time                  `json:"rejected_at,omitzero"`
	ArrivedAt  Time                  `json:"arrived_at,omitzero"`
	DecodedAt  Time                  `json:"decoded_at,omitzero"`
	RequeuedAt Time                  `json:"requeued_at,omitzero"`
	AcceptedAt Time                  `json:"accepted_at,omitzero"`
	SettledAt  Time                  `json:"settled_at,omitzero"`
}

// TrialRequest is the body of POST /trial.
type TrialRequest struct {
	Broker string `json:"broker,omitzero"`
}
