package view

import (
	"cmp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// mark shows a state or a result with a word, an icon and a colour. Its meaning never depends on
// the colour alone.
type mark struct{ Word, Icon, Tone string }

// markOf returns the coloured mark that a table contains for a value. If the table lacks the value,
// the mark shows the value itself.
func markOf[K ~string](table map[K]mark, k K) mark {
	if m, ok := table[k]; ok {
		return m
	}
	return mark{line(string(k), 20), "info", ""}
}

var stateMarks = map[deadletter.State]mark{
	deadletter.StateReceived:   {"Received", "down", ""},
	deadletter.StateScheduled:  {"Scheduled", "clock", "wait"},
	deadletter.StateDead:       {"Dead", "x", "bad"},
	deadletter.StateHeld:       {"Held", "pause", "warn"},
	deadletter.StatePublishing: {"Publishing", "play", "accent"},
	deadletter.StateRequeued:   {"Requeued", "return", "good"},
	deadletter.StateQuiet:      {"Quiet", "check", "good"},
	deadletter.StateDiscarded:  {"Discarded", "trash", ""},
	deadletter.StatePurged:     {"Purged", "stop", ""},
}

func stateMark(s deadletter.State) mark { return markOf(stateMarks, s) }

// StateWord returns the name of a state as pages show it.
func StateWord(s deadletter.State) string { return stateMark(s).Word }

var resultMarks = map[deadletter.Result]mark{
	deadletter.ResultPending:    {"To go", "clock", ""},
	deadletter.ResultReleased:   {"On its way", "play", "accent"},
	deadletter.ResultConfirmed:  {"Requeued", "return", "good"},
	deadletter.ResultQuiet:      {"Quiet", "check", "good"},
	deadletter.ResultUnverified: {"Quiet, unverified", "check", ""},
	deadletter.ResultCameBack:   {"Came back", "regress", "warn"},
	deadletter.ResultReturned:   {"Returned", "x", "bad"},
	deadletter.ResultFailed:     {"Failed", "x", "bad"},
	deadletter.ResultInDoubt:    {"In doubt", "warn", "warn"},
	deadletter.ResultChanged:    {"Done", "check", "good"},
	deadletter.ResultSkipped:    {"Skipped", "right", ""},
	deadletter.ResultCancelled:  {"Cancelled", "stop", ""},
}

func resultMark(r deadletter.Result) mark { return markOf(resultMarks, r) }

var operationMarks = map[deadletter.OperationState]mark{
	deadletter.OperationRunning:   {"Running", "play", "accent"},
	deadletter.OperationPaused:    {"Paused", "pause", "warn"},
	deadletter.OperationStopped:   {"Stopped automatically", "stop", "bad"},
	deadletter.OperationDone:      {"Done", "check", "good"},
	deadletter.OperationCancelled: {"Cancelled", "x", "warn"},
}

func operationMark(s deadletter.OperationState) mark { return markOf(operationMarks, s) }

// operationPhaseMark returns a coloured mark with the state of an operation. If the operation is
// running, the mark also says that sending has not begun, that dlo only watches the letters, or
// that no letter can be sent now.
func operationPhaseMark(o deadletter.Operation) mark {
	if o.State == deadletter.OperationRunning {
		switch {
		case o.Phase == deadletter.PhaseHolding, o.Phase == deadletter.PhaseSelecting && o.Pace.Hold > 0:
			return mark{"Not begun", "clock", "wait"}
		case o.Phase == deadletter.PhaseWatching:
			return mark{"Watching", "clock", "accent"}
		case o.Away != "":
			return mark{"Waiting for the broker", "clock", "warn"}
		}
	}
	return operationMark(o.State)
}

var outcomeMarks = map[deadletter.OutcomeKind]mark{
	deadletter.OutcomeOpen:      {"Open", "clock", "accent"},
	deadletter.OutcomeConfirmed: {"Confirmed by the broker", "check", "good"},
	deadletter.OutcomeReturned:  {"Returned: no such queue", "x", "bad"},
	deadletter.OutcomeNacked:    {"Refused by the queue", "x", "warn"},
	deadletter.OutcomeRefused:   {"Refused by the broker", "x", "bad"},
	deadletter.OutcomeInDoubt:   {"In doubt: no answer", "warn", "warn"},
	deadletter.OutcomeUnsent:    {"Not sent", "info", ""},
	deadletter.OutcomeCameBack:  {"Came back", "regress", "bad"},
}

func outcomeMark(o deadletter.OutcomeKind) mark { return markOf(outcomeMarks, o) }

var verbWords = map[deadletter.Verb]string{
	deadletter.VerbRequeue:    "Requeue",
	deadletter.VerbEdit:       "Edit and requeue",
	deadletter.VerbRetryNow:   "Retry now",
	deadletter.VerbReschedule: "Reschedule",
	deadletter.VerbDiscard:    "Discard",
	deadletter.VerbRestore:    "Restore",
	deadletter.VerbHold:       "Hold",
	deadletter.VerbRelease:    "Release",
	deadletter.VerbPurge:      "Purge",
	deadletter.VerbCancel:     "Cancel",
}

// VerbWord returns a verb as buttons show it.
func VerbWord(v deadletter.Verb) string { return cmp.Or(verbWords[v], line(string(v), 20)) }

var verbIcons = map[deadletter.Verb]string{
	deadletter.VerbRequeue:    "return",
	deadletter.VerbEdit:       "return",
	deadletter.VerbRetryNow:   "clock",
	deadletter.VerbReschedule: "clock",
	deadletter.VerbDiscard:    "trash",
	deadletter.VerbRestore:    "up",
	deadletter.VerbHold:       "pause",
	deadletter.VerbRelease:    "play",
	deadletter.VerbPurge:      "stop",
}

func verbIcon(v deadletter.Verb) string { return cmp.Or(verbIcons[v], "check") }

func severityMark(s deadletter.Severity) (word string, bars int) {
	switch s {
	case deadletter.SeverityPage:
		return "Page", 3
	case deadletter.SeverityNotify:
		return "Notify", 2
	case deadletter.SeverityDigest:
		return "Digest", 1
	}
	return "", 0
}

// deathWords describes the reason that RabbitMQ gives for a death. RabbitMQ may give reasons that
// are not listed here.
func deathWords(reason string) string { return cmp.Or(deathReasons[reason], "Died in ") }

var deathReasons = map[string]string{
	"rejected":       "Rejected by a consumer of ",
	"expired":        "Expired in ",
	"maxlen":         "Pushed out of a full ",
	"delivery_limit": "Returned too often to ",
}
