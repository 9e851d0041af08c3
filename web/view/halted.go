package view

import "github.com/deadletteroffice/dlo/internal/deadletter"

// haltedShown is the maximum number of operations that a page lists because they wait for a person.
const haltedShown = 5

// remains returns the number of letters that an operation has not finished. It counts the letters
// on which the operation has not acted yet. It also counts those that the operation has released
// for sending, but that dlo has not sent yet.
func remains(o deadletter.Operation) int {
	return o.Counts[deadletter.ResultPending] + o.Counts[deadletter.ResultReleased]
}
