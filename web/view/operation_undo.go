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

// undoableCount returns, as text, the number of letters for which the operation can be undone.
func (p OperationPage) undoableCount() string {
	return Count(p.Undoable) + map[bool]string{true: "", false: " or more"}[p.UndoExact]
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
	return "Of these, " + p.undoableCount() + some
}
