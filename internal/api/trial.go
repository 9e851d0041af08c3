package api

import "github.com/deadletteroffice/dlo/internal/deadletter"

// Trial says how far a test letter of dlo has come. GET /trial and POST /trial return it. The time
// of a step is missing until the letter has reached the step.
type Trial struct {
	deadletter.Trial
	Queue string `json:"queue"`
	Type  string `json:"type"` // type of the letter's body
}

// NewTrial returns a trial in the form of the API.
func NewTrial(t deadletter.Trial) Trial {
	return Trial{t, deadletter.TrialQueue, deadletter.TrialType}
}

// TrialRequest is the body of POST /trial.
type TrialRequest struct {
	Broker string `json:"broker,omitzero"`
}
