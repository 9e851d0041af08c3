package view

import "github.com/deadletteroffice/dlo/internal/deadletter"

// mark is how a state or a result looks: a word, an icon and a colour, so that no meaning hangs on colour alone.
type mark struct{ Word, Icon, Tone string }

func stateMark(s deadletter.State) mark {
	switch s {
	case deadletter.StateReceived:
		return mark{"Received", "down", ""}
	case deadletter.StateScheduled:
		return mark{"Scheduled", "clock", "wait"}
	case deadletter.StateDead:
		return mark{"Dead", "x", "bad"}
	case deadletter.StateHeld:
		return mark{"Held", "pause", "warn"}
	case deadletter.StatePublishing:
		return mark{"Publishing", "play", "accent"}
	case deadletter.StateRequeued:
		return mark{"Requeued", "return", "good"}
	case deadletter.StateSettled:
		return mark{"Settled", "check", "good"}
	case deadletter.StateDiscarded:
		return mark{"Discarded", "trash", ""}
	case deadletter.StatePurged:
		return mark{"Purged", "stop", ""}
	}
	return mark{line(string(s), 20), "info", ""}
}

// StateWord returns the name of a state as pages write it.
func StateWord(s deadletter.State) string { return stateMark(s).Word }

func resultMark(r deadletter.Result) mark {
	switch r {
	case deadletter.ResultPending:
		return mark{"To go", "clock", ""}
	case deadletter.ResultReleased:
		return mark{"On its way", "play", "accent"}
	case deadletter.ResultConfirmed:
		return mark{"Requeued", "return", "good"}
	case deadletter.ResultQuiet:
		return mark{"Quiet", "check", "good"}
	case deadletter.ResultUnverified:
		return mark{"Quiet, unverified", "check", ""}
	case deadletter.ResultCameBack:
		return mark{"Came back", "regress", "warn"}
	case deadletter.ResultReturned:
		return mark{"Returned", "x", "bad"}
	case deadletter.ResultFailed:
		return mark{"Failed", "x", "bad"}
	case deadletter.ResultInDoubt:
		return mark{"In doubt", "warn", "warn"}
	case deadletter.ResultChanged:
		return mark{"Done", "check", "good"}
	case deadletter.ResultSkipped:
		return mark{"Skipped", "right", ""}
	case deadletter.ResultCancelled:
		return mark{"Cancelled", "stop", ""}
	}
	return mark{line(string(r), 20), "info", ""}
}

func operationMark(s deadletter.OperationState) mark {
	switch s {
	case deadletter.OperationRunning:
		return mark{"Running", "play", "accent"}
	case deadletter.OperationPaused:
		return mark{"Paused", "pause", "warn"}
	case deadletter.OperationStopped:
		return mark{"Stopped by itself", "stop", "bad"}
	case deadletter.OperationDone:
		return mark{"Done", "check", "good"}
	case deadletter.OperationCancelled:
		return mark{"Cancelled", "x", "warn"}
	}
	return mark{line(string(s), 20), "info", ""}
}

func outcomeMark(o deadletter.OutcomeKind) mark {
	switch o {
	case deadletter.OutcomeOpen:
		return mark{"Open", "clock", "accent"}
	case deadletter.OutcomeConfirmed:
		return mark{"Confirmed by the broker", "check", "good"}
	case deadletter.OutcomeReturned:
		return mark{"Returned: no such queue", "x", "bad"}
	case deadletter.OutcomeNacked:
		return mark{"Refused by the queue", "x", "warn"}
	case deadletter.OutcomeRefused:
		return mark{"Refused by the broker", "x", "bad"}
	case deadletter.OutcomeInDoubt:
		return mark{"In doubt: no answer", "warn", "warn"}
	case deadletter.OutcomeUnsent:
		return mark{"Not sent", "info", ""}
	case deadletter.OutcomeCameBack:
		return mark{"Came back", "regress", "bad"}
	}
	return mark{line(string(o), 20), "info", ""}
}

// VerbWord returns a verb as a button says it.
func VerbWord(v deadletter.Verb) string {
	switch v {
	case deadletter.VerbRequeue:
		return "Requeue"
	case deadletter.VerbEdit:
		return "Edit and requeue"
	case deadletter.VerbRetryNow:
		return "Retry now"
	case deadletter.VerbReschedule:
		return "Reschedule"
	case deadletter.VerbDiscard:
		return "Discard"
	case deadletter.VerbRestore:
		return "Restore"
	case deadletter.VerbHold:
		return "Hold"
	case deadletter.VerbRelease:
		return "Release"
	case deadletter.VerbPurge:
		return "Purge"
	case deadletter.VerbCancel:
		return "Cancel"
	}
	return line(string(v), 20)
}

func verbIcon(v deadletter.Verb) string {
	switch v {
	case deadletter.VerbRequeue, deadletter.VerbEdit:
		return "return"
	case deadletter.VerbRetryNow, deadletter.VerbReschedule:
		return "clock"
	case deadletter.VerbDiscard:
		return "trash"
	case deadletter.VerbRestore:
		return "up"
	case deadletter.VerbHold:
		return "pause"
	case deadletter.VerbRelease:
		return "play"
	case deadletter.VerbPurge:
		return "stop"
	}
	return "check"
}

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

// deathWords says what a death reason of RabbitMQ means; the reasons are an open set.
func deathWords(reason string) string {
	switch reason {
	case "rejected":
		return "Rejected by a consumer of "
	case "expired":
		return "Expired in "
	case "maxlen":
		return "Pushed out of a full "
	case "delivery_limit":
		return "Returned too often to "
	}
	return "Died in "
}
