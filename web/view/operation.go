package view

import (
	"strconv"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// OperationPage is one operation: how far it is, what it could not do, and what can be done about

// it.

type OperationPage struct {
	Shell
	Operation   deadletter.Operation
	Result      deadletter.Result            // whose letters are listed; ResultTwice: those that may have been sent twice
	Letters     []deadletter.OperationLetter // of Result, as far as this page of them goes
	Next        string                       // cursor of the next page of Letters; "" at the end
	After       string                       // cursor of this page; "" = the first
	Recent      []deadletter.Operation       // other operations, newest first
	Watch       time.Duration                // how long a letter has to stay away to be quiet; 0: not known
	NewFailures int                          // letters of the same groups that arrived since it began; -1: not known
	NewExact    bool
	Undoable    int // letters that are still as it left them, so that it can be undone for them
	UndoExact   bool
	BackGroups  []deadletter.BackGroup // the groups that letters came back to, most letters first
	Groups      []deadletter.GroupRow  // whose letters it had, once it has sent or changed all; at most NextGroups
	From        string                 // the list it was begun from; "" = not known
	Done        *Done                  // what was decided on this page a moment ago
	Tried       *Tried                 // its letter, where it has one alone; nil otherwise
	Away        string                 // why letters of it cannot be sent now; "" = they can
	RateTyped   string                 // the rate as typed, when it was wrong
	RateMistake string
}

// ResultTwice is the list of letters that may have been sent twice, whatever else became of them.

const ResultTwice deadletter.Result = "twice"

// OperationsPage is the list of operations.

type OperationsPage struct {
	Shell
	Operations []deadletter.Operation // newest first
	Older      deadletter.OperationID // the list goes on below this one; 0 at the end
	First      bool                   // the newest are shown
}

// progress is what the numbers of an operation come to.

// done is how many letters the operation did its work on; of a requeue those that came back as

// well, as they were sent.

// segment is one coloured part of a bar of width 100.

// segments lays the parts of a bar side by side; a part that is not empty is at least 0.4 wide, so

// that one failure of 100,000 is seen.

func operationTitle(o deadletter.Operation) string {
	title := VerbWord(o.Action) + " " + LetterCount(o.Total)
	switch {
	case !o.Action.Sends():
	case o.To != "":
		title += " to " + line(o.To, 60)
	default:
		title += " to the tail"
	}
	return title
}

func (p OperationPage) is(phase deadletter.OperationPhase) bool {
	return p.Operation.State.Active() && p.Operation.Phase == phase
}

func (p OperationPage) requeue() bool { return p.Operation.Action.Sends() }

// sending says whether the operation still has letters to act on, so that it can be paused or

// cancelled.

func (p OperationPage) sending() bool {
	return p.Operation.State.Active() && p.Operation.Phase != deadletter.PhaseWatching && p.Operation.Phase != deadletter.PhaseOver
}

// stage says in words where the operation stands; never "success", as nobody sees the consumer's

// ack.

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
		return "finished " + Clock(p.Now, o.FinishedAt.Truncate(time.Second)) + ", took " + Duration(o.FinishedAt.Sub(o.CreatedAt))
	case deadletter.OperationPaused:
		return "paused, " + toGo
	case deadletter.OperationStopped:
		return "stopped, " + toGo
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
		return "watching the canary until " + p.until() + ", then " + toGo
	case deadletter.PhaseWatching:
		return "all sent, watching" + p.watchEnd() + " for letters that come back"
	}
	if !p.requeue() || o.Pace.Rate <= 0 {
		return toGo
	}
	left := time.Duration(float64(n.ToGo) / o.Pace.Rate * float64(time.Second)).Round(time.Second)
	return "sending at " + rate(o.Pace.Rate) + ", about " + Duration(max(left, time.Second)) + " left, done about " + p.Now.Add(left).UTC().Format("15:04:05") + " UTC"
}

func (p OperationPage) until() string {
	return Clock(p.Now, p.Operation.PhaseUntil.Truncate(time.Second)) + " UTC"
}

func (p OperationPage) watchEnd() string {
	if p.Operation.SentAt.IsZero() || p.Watch <= 0 {
		return ""
	}
	return " until " + Clock(p.Now, p.Operation.SentAt.Add(p.Watch).Truncate(time.Second)) + " UTC"
}

// rate writes letters per second: 50/s, 0.5/s.

func rate(r float64) string { return plainNumber(r) + "/s" }

func plainNumber(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// holding says whether the operation can be undone, as nothing of it was sent yet.

func (p OperationPage) holding() bool {
	return p.is(deadletter.PhaseHolding) || p.is(deadletter.PhaseSelecting) && p.Operation.Pace.Hold > 0
}

// begins is when a hold ends; while the selection is still laid out, at the earliest.

func (p OperationPage) begins() time.Time {
	if p.is(deadletter.PhaseSelecting) {
		return p.Now.Add(p.Operation.Pace.Hold)
	}
	return p.Operation.PhaseUntil
}

// seconds is how long a hold lasts yet.

func (p OperationPage) seconds() int {
	return max(int(p.begins().Sub(p.Now).Round(time.Second)/time.Second), 0)
}

// settled says whether the operation has something to say about what became of its letters.

// verdict says what became of the letters, in one sentence.

// undone says whether the operation was cancelled before it did anything.

// tabs lists the results that have letters, first those that a person looks at.

// ResultTabs are the results in the order of their tabs.

var ResultTabs = []deadletter.Result{
	deadletter.ResultCameBack, deadletter.ResultReturned, deadletter.ResultFailed, deadletter.ResultInDoubt, deadletter.ResultSkipped, ResultTwice, deadletter.ResultCancelled,
	deadletter.ResultQuiet, deadletter.ResultUnverified, deadletter.ResultConfirmed, deadletter.ResultChanged, deadletter.ResultReleased, deadletter.ResultPending,
}

// ResultWord is how a link and the query language write a result: came-back.

// resultQuery selects the letters of an operation with one of the results.

// retried are the results whose letters can be requeued again.

// then says what a letter is now that the operation could not do its work on it.

// nowIs says what became of a letter after it came back.

// sentWords say where the letters are that were sent.

func (p OperationPage) sentWords() string {
	n := progressOf(p.Operation.Counts)
	switch {
	case n.Back == 0:
		return "Sent letters cannot be recalled. One that fails again comes back here, to the same letter."
	case n.Good == 0:
		return "All of them came back and are here again."
	}
	return Count(n.Back) + " of them came back and are here again. The other " + Count(n.Good) + " cannot be recalled. If they fail again, they come back here, to the same letters."
}

// undoes is the verb that takes an operation back; "" where none does.

// undoable is how many letters can still be taken back.

// restorable says how many of the discarded letters can be restored.

// releasable says how many of the held letters can be released.

// several says whether the queues of an operation belong to more than one broker or vhost.

func several(queues []deadletter.OperationQueue) bool {
	for _, q := range queues {
		if q.Broker != queues[0].Broker || q.VHost != queues[0].VHost {
			return true
		}
	}
	return false
}

func toneIf(n int, tone string) string {
	if n == 0 {
		return "num faint"
	}
	return "num strong " + tone
}

// queuesShown is how many origin queues an operation's page lists.

const queuesShown = 100

// doneWord is the head of the column of what was done.

func doneWord(v deadletter.Verb) string {
	if past := v.Past(); past != "" {
		return upperFirst(past)
	}
	return "Done"
}

// doneLegend is the legend of the green part of the bar.

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

// resultURL lists the letters of a result, on this page.

// OperationFrom is the page of an operation that was begun from a list.

func OperationFrom(id deadletter.OperationID, list string) string {
	return address(OperationURL(id), "from", list)
}

// operationListMark adds to a state how far the operation came.

func operationListMark(o deadletter.Operation) mark {
	m := operationPhaseMark(o)
	if m == operationMark(o.State) && o.State != deadletter.OperationDone {
		m.Word += " at " + Count(progressOf(o.Counts).Done-o.Counts[deadletter.ResultCancelled])
	}
	return m
}

const maxCommandPatch = 300 // bytes

// command is what starts the same operation on the command line; empty where it would paste more

// than meets the eye, or where letters were chosen one by one.

// commandTitle says what the command does, compared to the operation.

// openWord is the link to the letters of a result.

// newFailures says how many letters of the same groups arrived since the operation began; they are

// no part of it.
