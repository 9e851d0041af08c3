package view

import "github.com/deadletteroffice/dlo/internal/deadletter"

// cancelledUnsent reports whether the operation was cancelled before it changed or sent anything.
func (p OperationPage) cancelledUnsent() bool {
	return p.Operation.State == deadletter.OperationCancelled &&
		p.count(deadletter.ResultCancelled)+p.count(deadletter.ResultSkipped) == p.Operation.Total
}

// reverseVerb returns the verb that reverses an operation, or "" if there is no such verb.
func reverseVerb(v deadletter.Verb) deadletter.Verb {
	switch v {
	case deadletter.VerbDiscard:
		return deadletter.VerbRestore
	case deadletter.VerbHold:
		return deadletter.VerbRelease
	}
	return ""
}

// orMore returns " or more" after a count that is not exact.
func orMore(exact bool) string {
	if exact {
		return ""
	}
	return " or more"
}

// reversibleSentence returns a sentence with the number of discarded or held letters that can be
// restored or released.
func (p OperationPage) reversibleSentence() string {
	none, all, some := "None of them is held any more, so there is nothing to release.", "Release lets them go on.",
		" are still held. Release lets them go on."
	if p.Operation.Action == deadletter.VerbDiscard {
		none, all, some = "None of them is discarded any more, so there is nothing to restore.",
			"They can be restored until retention purges them.",
			" can still be restored, until retention purges them."
	}
	switch n := progressOf(p.Operation.Counts).Good; {
	case n == 0:
		return ""
	case p.Undoable == 0:
		return none
	case p.Undoable == n:
		return all
	}
	return "Of these, " + Count(p.Undoable) + orMore(p.UndoExact) + some
}
