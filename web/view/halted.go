package view

import "github.com/deadletteroffice/dlo/internal/deadletter"

// haltedShown is the maximum number of operations that a page lists because they wait for a person.
const haltedShown = 5

// remains returns the number of letters on which an operation has not acted yet, or which it has
// released and dlo has not sent yet.
func remains(o deadletter.Operation) int {
	return o.Counts[deadletter.ResultPending] + o.Counts[deadletter.ResultReleased]
}
