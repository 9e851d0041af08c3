package api

import (
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Operation is an action on letters. The response to GET /operations contains it. So does the
// response to every call that starts or controls an operation.
type Operation struct {
	deadletter.Operation
	Sent int `json:"sent"` // number of letters that the broker has confirmed
	// new letters in the groups of the operation, which dlo received after the operation was
	// requested; not in lists
	NewFailures *Count `json:"new_failures,omitzero"`
}

// NewOperation returns an operation in the form of the API. Its counts have every result.
func NewOperation(o deadletter.Operation) Operation {
	o.Counts = everyResult(o.Counts)
	o.Queues = slices.Clone(o.Queues)
	for i := range o.Queues {
		o.Queues[i].Counts = everyResult(o.Queues[i].Counts)
	}
	return Operation{Operation: o, Sent: o.Sent()}
}

func everyResult(counts map[deadletter.Result]int) map[deadletter.Result]int {
	all := make(map[deadletter.Result]int, len(deadletter.Results))
	for _, r := range deadletter.Results {
		all[r] = counts[r]
	}
	return all
}

// OperationLetter is one letter of an operation. The response to GET /operations/{id} contains it.
type OperationLetter struct {
	deadletter.OperationLetter
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
