package view

import "github.com/deadletteroffice/dlo/internal/deadletter"

// haltedShown is how many operations that wait for a person a page lists.
const haltedShown = 5

// remains is how many letters an operation keeps.
func remains(o deadletter.Operation) int {
	return o.Counts[deadletter.ResultPending] + o.Counts[deadletter.ResultReleased]
}
