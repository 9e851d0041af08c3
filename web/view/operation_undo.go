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

// restorableSentence returns a sentence with the number of discarded letters that can be restored.
func (p OperationPage) restorableSentence() string {
	switch n := progressOf(p.Operation.Counts).Good; {
	case n == 0:
		return ""
	case p.Undoable == 0:
		return "None of them is discarded any more, so there is nothing to restore."
	case p.Undoable == n:
		return "They can be restored until retention purges them."
	}
	return "Of these, " + p.undoableCount() + " can still be restored, until retention purges them."
}

// releasableSentence returns a sentence with the number of held letters that can be released.
func (p OperationPage) releasableSentence() string {
	switch n := progressOf(p.Operation.Counts).Good; {
	case n == 0:
		return ""
	case p.Undoable == 0:
		return "None of them is held any more, so there is nothing to release."
	case p.Undoable == n:
		return "Release lets them go on."
	}
	return "Of these, " + p.undoableCount() + " are still held. Release lets them go on."
}
