package view

import (
	"slices"
	"strconv"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// OperationPage shows one operation: its progress, the letters that it could not process, and the
// possible next steps for these letters.
type OperationPage struct {
	Shell
	Operation deadletter.Operation
	// the result whose letters are listed; ResultTwice lists those possibly sent twice
	Result  deadletter.Result
	Letters []deadletter.OperationLetter // the letters with that result on this page
	Next    string                       // the cursor of the next page of letters, or "" at the end
	After   string                       // the cursor of this page; "" is the first page
	Recent  []deadletter.Operation       // other operations, newest first
	Watch   time.Duration                // how long a letter must stay away to count as quiet; 0 means unknown
	// letters of the same groups received since the operation began; -1 means unknown
	NewFailures int
	NewExact    bool
	Undoable    int // the number of letters that have not changed since the operation and can be undone
	UndoExact   bool
	// the groups to which letters came back; the one with the most letters comes first
	BackGroups  []deadletter.BackGroup
	Groups      []deadletter.GroupRow // the groups of the letters, once all are sent or changed; at most NextGroups
	From        string                // the URL of the list from which the operation was started, or ""
	Done        *Done                 // the latest decision made on this page
	Tried       *Tried                // the letter of the operation if it has only one, otherwise nil
	OnTheWay    int                   // the number of letters that are being sent and have no result yet
	RateTyped   string                // the rate as typed, if it was invalid
	RateMistake string
}

// ResultTwice stands for the letters that may have been sent twice, whatever their result.
const ResultTwice deadletter.Result = "twice"

// OperationsPage is the list of operations.
type OperationsPage struct {
	Shell
	Operations []deadletter.Operation // the newest operation comes first
	Older      deadletter.OperationID // the last operation of this page, before which older ones continue; 0 at the end
	First      bool                   // this is the first page
}

func operationTitle(o deadletter.Operation) string {
	title := VerbWord(o.Action) + " " + LetterCount(o.Total)
	switch {
	case o.To != "":
		return title + " to " + line(o.To, 60)
	case o.Action.Sends():
		title += " to the tail"
	}
	if len(o.Queues) == 1 && o.Queues[0].Queue != "" {
		title += " of " + queueName(o.Queues[0].Queue)
	}
	return title
}

func (p OperationPage) isIn(phase deadletter.OperationPhase) bool {
	return p.Operation.State.Active() && p.Operation.Phase == phase
}

func (p OperationPage) isRequeue() bool { return p.Operation.Action.Sends() }

// hasLettersLeft reports whether the operation still has letters to process, so that it can be
// paused or cancelled.
func (p OperationPage) hasLettersLeft() bool {
	return p.Operation.State.Active() && p.Operation.Phase != deadletter.PhaseWatching &&
		p.Operation.Phase != deadletter.PhaseOver
}

// stage describes the state of the operation. It never says "success", because dlo does not see the
// acknowledgement of the consumer.
func (p OperationPage) stage() string {
	o, n := p.Operation, progressOf(p.Operation.Counts)
	toGo := Count(n.ToGo) + " to go"
	switch o.State {
	case deadletter.OperationCancelled:
		return "cancelled " + When(p.Now, o.FinishedAt) + ", after " + Duration(o.FinishedAt.Sub(o.CreatedAt))
	case deadletter.OperationDone:
		if o.FinishedAt.IsZero() {
			return ""
		}
		return "finished " + Clock(p.Now, o.FinishedAt.Truncate(time.Second)) + ", took " +
			Duration(o.FinishedAt.Sub(o.CreatedAt))
	case deadletter.OperationPaused:
		return "paused, " + toGo
	case deadletter.OperationStopped:
		return "stopped, " + toGo
	}
	if o.Away != "" && !p.canUndoUnsent() {
		return "waiting for the broker, " + toGo
	}
	if o.Why != "" {
		return "waiting, " + toGo
	}
	switch o.Phase {
	case deadletter.PhaseSelecting:
		return "laying out the selection"
	case deadletter.PhaseHolding:
		return "nothing is sent yet"
	case deadletter.PhaseCanary:
		return "sending the canary, the first " + LetterCount(o.Pace.Canary)
	case deadletter.PhaseWaiting:
		return "watching the canary until " + p.phaseEnd() + ", then " + toGo
	case deadletter.PhaseWatching:
		return "all sent, watching" + p.watchEnd() + " for letters that come back"
	}
	if !p.isRequeue() || o.Pace.Rate <= 0 {
		return toGo
	}
	left := time.Duration(float64(n.ToGo) / o.Pace.Rate * float64(time.Second)).Round(time.Second)
	return "sending at " + rate(o.Pace.Rate) + ", about " + Duration(max(left, time.Second)) + " left, done about " +
		p.Now.Add(left).UTC().Format("15:04:05") + " UTC"
}

func (p OperationPage) phaseEnd() string {
	return Clock(p.Now, p.Operation.PhaseUntil.Truncate(time.Second)) + " UTC"
}

func (p OperationPage) watchEnd() string {
	if p.Operation.SentAt.IsZero() || p.Watch <= 0 {
		return ""
	}
	return " until " + Clock(p.Now, p.Operation.SentAt.Add(p.Watch).Truncate(time.Second)) + " UTC"
}

// rate formats letters per second, for example 50/s or 0.5/s.
func rate(r float64) string { return PlainNumber(r) + "/s" }

// PlainNumber formats a number with as many decimals as it has.
func PlainNumber(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// canUndoUnsent reports whether the operation can still be undone because it has sent nothing.
func (p OperationPage) canUndoUnsent() bool {
	return p.isIn(deadletter.PhaseHolding) || p.isIn(deadletter.PhaseSelecting) && p.Operation.Pace.Hold > 0
}

// sendingStart returns the time at which the operation starts to send, after its delay. While it
// still selects letters, sendingStart returns the earliest possible time.
func (p OperationPage) sendingStart() time.Time {
	if p.isIn(deadletter.PhaseSelecting) {
		return p.Now.Add(p.Operation.Pace.Hold)
	}
	return p.Operation.PhaseUntil
}

// secondsToStart returns the number of seconds until the operation starts to send.
func (p OperationPage) secondsToStart() int {
	return max(int(p.sendingStart().Sub(p.Now).Round(time.Second)/time.Second), 0)
}

// ResultTabs lists the results in the order of their tabs.
var ResultTabs = []deadletter.Result{
	deadletter.ResultCameBack, deadletter.ResultReturned, deadletter.ResultFailed, deadletter.ResultInDoubt,
	deadletter.ResultSkipped, ResultTwice, deadletter.ResultCancelled,
	deadletter.ResultQuiet, deadletter.ResultUnverified, deadletter.ResultConfirmed, deadletter.ResultChanged,
	deadletter.ResultReleased, deadletter.ResultPending,
}

// sentWords describes what happened to the letters that were sent.
func (p OperationPage) sentWords() string {
	n := progressOf(p.Operation.Counts)
	switch {
	case n.Back == 0:
		return "Sent letters cannot be recalled. One that fails again comes back here, to the same letter."
	case n.Good == 0:
		return "All of them came back and are here again."
	}
	return Count(n.Back) + " of them came back and are here again. The other " + Count(n.Good) +
		" cannot be recalled. If they fail again, they come back here, to the same letters."
}

// inSeveralPlaces reports whether queues belong to more than one broker or vhost. In that case, a
// table names the broker and the vhost of each queue.
func inSeveralPlaces[Q interface{ Place() deadletter.Origin }](queues []Q) bool {
	return slices.ContainsFunc(queues, func(q Q) bool {
		at, first := q.Place(), queues[0].Place()
		return at.Broker != first.Broker || at.VHost != first.VHost
	})
}

func toneIf(n int, tone string) string {
	if n == 0 {
		return "num faint"
	}
	return "num strong " + tone
}

// queuesShown is the maximum number of origin queues on the page of an operation.
const queuesShown = 100

// doneWord returns the heading of the column for finished letters.
func doneWord(v deadletter.Verb) string {
	if past := v.Past(); past != "" {
		return upperFirst(past)
	}
	return "Done"
}

// doneLegend returns the legend for the green part of the bar.
func doneLegend(o deadletter.Operation, good int) string {
	if !o.Action.Sends() {
		return Count(good) + " " + o.Action.Past()
	}
	text := Count(good) + " requeued and not back"
	if quiet := o.Counts[deadletter.ResultQuiet]; quiet > 0 {
		text += " (" + Count(quiet) + " of them quiet)"
	}
	return text
}

// OperationFrom returns the URL of the page of an operation. The parameter "list" is the URL of the
// list from which the operation was started.
func OperationFrom(id deadletter.OperationID, list string) string {
	return address(OperationURL(id), "from", list)
}

// operationListMark returns the state of an operation with its progress.
func operationListMark(o deadletter.Operation) mark {
	m := operationPhaseMark(o)
	if m == operationMark(o.State) && o.State != deadletter.OperationDone {
		m.Word += " at " + Count(progressOf(o.Counts).Done)
	}
	return m
}

const maxCommandPatch = 300 // the maximum size of a patch in the command, in bytes
