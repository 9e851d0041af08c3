package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// command returns the dlo command that starts the same operation. It returns "" if the command
// would contain invisible characters, or if the letters were selected one by one.
func (p OperationPage) command() string {
	o := p.Operation
	if o.Query == "" || !isCopyable(o.Query) || !isCopyable(o.To) || !isCopyable(o.Reason) || o.Action.Past() == "" {
		return ""
	}
	q := o.Query
	if !strings.Contains(" "+q, " before:") { // exclude letters that arrived later
		q += " before:" + o.CreatedAt.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	text := actCommand(o.Action) + "-q " + deadletter.ShellWord(q)
	if o.Action == deadletter.VerbEdit {
		if len(o.Patch) == 0 || !isCopyable(string(o.Patch)) || len(o.Patch) > maxCommandPatch {
			return ""
		}
		text += " --patch " + deadletter.ShellWord(string(o.Patch))
	}
	if o.Action.Sends() {
		if o.To != "" {
			text += " --to " + deadletter.ShellWord(o.To)
		}
		text += fmt.Sprintf(" --rate %s --canary %d", PlainNumber(o.Pace.Rate), o.Pace.Canary)
		if o.Pace.Canary > 0 {
			text += " --canary-wait " + TypedDuration(o.Pace.CanaryWait)
		}
		text += " --stop-at " + PlainNumber(o.Pace.StopAt)
		if o.Pace.MaxDepth > 0 {
			text += fmt.Sprintf(" --max-depth %d", o.Pace.MaxDepth)
		}
		if bool(o.Pace.Newest) {
			text += " --order newest"
		}
		if o.Reset {
			text += " --reset-attempts"
		}
	}
	if o.First > 0 {
		text += fmt.Sprintf(" --first %d", o.First)
	}
	if !o.Action.Sends() && bool(o.Pace.Newest) {
		text += " --order newest"
	}
	if o.Restored {
		text += " --include-restored"
	}
	if o.Action == deadletter.VerbReschedule {
		text += " --due-at " + o.DueAt.UTC().Format(time.RFC3339)
	}
	if o.Reason != "" {
		text += " --reason " + deadletter.ShellWord(o.Reason)
	}
	return text
}

// commandTitle returns the title above a command that starts the same operation again. The command
// selects letters only by the query. If the operation left out some letters that match the query,
// the command would act on them too. In that case, the title says so.
func (p OperationPage) commandTitle() string {
	if p.Operation.Except+p.Operation.Changed > 0 {
		return "The same query on the command line, including the letters left out"
	}
	return "On the command line"
}
