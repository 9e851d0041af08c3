package view

import (
	"fmt"
	"strconv"
	"strings"
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
type progress struct {
	Total, Done, ToGo      int
	Good, Back, Bad, Other int // Good + Back + Bad + Other = Done
}

func progressOf(counts map[deadletter.Result]int) progress {
	var p progress
	for r, n := range counts {
		p.Total += n
		switch r {
		case deadletter.ResultPending, deadletter.ResultReleased:
			p.ToGo += n
		case deadletter.ResultConfirmed, deadletter.ResultQuiet, deadletter.ResultUnverified, deadletter.ResultChanged:
			p.Good += n
		case deadletter.ResultCameBack:
			p.Back += n
		case deadletter.ResultReturned, deadletter.ResultFailed, deadletter.ResultInDoubt:
			p.Bad += n
		default:
			p.Other += n
		}
	}
	p.Done = p.Total - p.ToGo
	return p
}

// done is how many letters the operation did its work on; of a requeue those that came back as
// well, as they were sent.
func (p progress) done(sends bool) int {
	if sends {
		return p.Good + p.Back
	}
	return p.Good
}

// segment is one coloured part of a bar of width 100.
type segment struct{ Class, X, Width string }

// segments lays the parts of a bar side by side; a part that is not empty is at least 0.4 wide, so
// that one failure of 100,000 is seen.
func (p progress) segments() []segment {
	var out []segment
	x := 0.0
	for _, part := range []struct {
		class string
		n     int
	}{{"f-good", p.Good}, {"f-warn", p.Back}, {"f-dead", p.Bad}, {"f-mute", p.Other}} {
		if part.n == 0 || p.Total == 0 {
			continue
		}
		width := min(max(float64(part.n)*100/float64(p.Total), 0.4), 100-x)
		out = append(out, segment{part.class, fmt.Sprintf("%.2f", x), fmt.Sprintf("%.2f", width)})
		x += width
	}
	return out
}

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
func (p OperationPage) judged() bool {
	return !p.Operation.State.Active() || p.is(deadletter.PhaseWatching)
}

// verdict says what became of the letters, in one sentence.
func (p OperationPage) verdict() string {
	c, n := p.Operation.Counts, progressOf(p.Operation.Counts)
	if p.undone() {
		return "Undone: nothing was " + map[bool]string{true: "sent", false: p.Operation.Action.Past()}[p.requeue()] + ", " + Count(p.count(deadletter.ResultCancelled)) + " left as they were."
	}
	var parts []string
	add := func(n int, text string) {
		if n > 0 {
			parts = append(parts, Count(n)+text)
		}
	}
	if p.requeue() {
		quiet := " quiet"
		if p.Watch > 0 {
			quiet += " for " + Duration(p.Watch)
		}
		add(c[deadletter.ResultQuiet], quiet)
		add(c[deadletter.ResultUnverified], " did not come back, unverified")
		add(c[deadletter.ResultConfirmed], " requeued and still being watched")
		add(n.Back, " came back")
		if n.Back == 0 && n.Good > 0 {
			parts = append(parts, "none came back")
		}
	} else {
		add(n.Good, " "+p.Operation.Action.Past())
	}
	add(n.Bad, " not sent and held")
	add(c[deadletter.ResultSkipped], " skipped")
	add(c[deadletter.ResultCancelled], " left as they were")
	if len(parts) == 0 {
		return "Nothing was done."
	}
	return upperFirst(parts[0]) + map[bool]string{true: "", false: ", "}[len(parts) == 1] + strings.Join(parts[1:], ", ") + "."
}

// undone says whether the operation was cancelled before it did anything.
func (p OperationPage) undone() bool {
	return p.Operation.State == deadletter.OperationCancelled && p.count(deadletter.ResultCancelled)+p.count(deadletter.ResultSkipped) == p.Operation.Total
}

func (p OperationPage) verdictTone() (tone, name string) {
	switch n := progressOf(p.Operation.Counts); {
	case n.Back > 0 || n.Bad > 0:
		return "warn", "warn"
	case n.Good > 0:
		return "good", "check"
	}
	return "", "info"
}

// tabs lists the results that have letters, first those that a person looks at.
func (p OperationPage) tabs() []deadletter.Result {
	var out []deadletter.Result
	for _, r := range ResultTabs {
		if p.count(r) > 0 || r == p.Result {
			out = append(out, r)
		}
	}
	return out
}

// ResultTabs are the results in the order of their tabs.
var ResultTabs = []deadletter.Result{
	deadletter.ResultCameBack, deadletter.ResultReturned, deadletter.ResultFailed, deadletter.ResultInDoubt, deadletter.ResultSkipped, ResultTwice, deadletter.ResultCancelled,
	deadletter.ResultQuiet, deadletter.ResultUnverified, deadletter.ResultConfirmed, deadletter.ResultChanged, deadletter.ResultReleased, deadletter.ResultPending,
}

func (p OperationPage) count(r deadletter.Result) int {
	if r == ResultTwice {
		return p.Operation.Twice
	}
	return p.Operation.Counts[r]
}

func tabWord(r deadletter.Result) string {
	if r == ResultTwice {
		return "Possibly sent twice"
	}
	return resultMark(r).Word
}

// ResultWord is how a link and the query language write a result: came-back.
func ResultWord(r deadletter.Result) string { return strings.ReplaceAll(string(r), " ", "-") }

// resultQuery selects the letters of an operation with one of the results.
func resultQuery(id deadletter.OperationID, results ...deadletter.Result) string {
	values := make([]string, len(results))
	for i, r := range results {
		values[i] = id.String() + "/" + ResultWord(r)
	}
	return "op:" + strings.Join(values, ",")
}

// retried are the results whose letters can be requeued again.
func retried(r deadletter.Result) bool {
	switch r {
	case deadletter.ResultCameBack, deadletter.ResultReturned, deadletter.ResultFailed, deadletter.ResultInDoubt:
		return true
	}
	return false
}

// then says what a letter is now that the operation could not do its work on it.
func (p OperationPage) then(l deadletter.OperationLetter) string {
	switch l.Result {
	case deadletter.ResultReturned, deadletter.ResultFailed, deadletter.ResultInDoubt:
		return "held, a person decides"
	case deadletter.ResultSkipped, deadletter.ResultCancelled:
		return "unchanged"
	case deadletter.ResultCameBack:
		return p.nowIs(l)
	}
	return ""
}

// nowIs says what became of a letter after it came back.
func (p OperationPage) nowIs(l deadletter.OperationLetter) string {
	switch l.State {
	case deadletter.StateReceived:
		return "its rule is applied in a moment"
	case deadletter.StateScheduled:
		return "retried at " + Clock(p.Now, l.DueAt.Truncate(time.Second)) + " UTC"
	case deadletter.StateDead, deadletter.StateHeld:
		return strings.ToLower(StateWord(l.State)) + ", a person decides"
	}
	return strings.ToLower(StateWord(l.State)) + " since"
}

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
func undoes(v deadletter.Verb) deadletter.Verb {
	switch v {
	case deadletter.VerbDiscard:
		return deadletter.VerbRestore
	case deadletter.VerbHold:
		return deadletter.VerbRelease
	}
	return ""
}

// undoable is how many letters can still be taken back.
func (p OperationPage) undoable() string {
	return Count(p.Undoable) + map[bool]string{true: "", false: " or more"}[p.UndoExact]
}

// restorable says how many of the discarded letters can be restored.
func (p OperationPage) restorable() string {
	switch n := progressOf(p.Operation.Counts).Good; {
	case n == 0:
		return ""
	case p.Undoable == 0:
		return "None of them is discarded any more, so there is nothing to restore."
	case p.Undoable == n:
		return "They can be restored until retention purges them."
	}
	return "Of these, " + p.undoable() + " can still be restored, until retention purges them."
}

// releasable says how many of the held letters can be released.
func (p OperationPage) releasable() string {
	switch n := progressOf(p.Operation.Counts).Good; {
	case n == 0:
		return ""
	case p.Undoable == 0:
		return "None of them is held any more, so there is nothing to release."
	case p.Undoable == n:
		return "Release lets them go on."
	}
	return "Of these, " + p.undoable() + " are still held. Release lets them go on."
}

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
func (p OperationPage) resultURL(r deadletter.Result, after string) string {
	return address(OperationURL(p.Operation.ID), "result", ResultWord(r), "after", after, "from", p.From)
}

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
func (p OperationPage) command() string {
	o := p.Operation
	if o.Query == "" || !safe(o.Query) || !safe(o.To) || !safe(o.Reason) || o.Action.Past() == "" {
		return ""
	}
	q := o.Query
	if !strings.Contains(" "+q, " before:") { // what arrived later was not in it
		q += " before:" + o.CreatedAt.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	text := actCommand(o.Action) + "-q " + shellWord(q)
	if o.Action == deadletter.VerbEdit {
		if len(o.Patch) == 0 || !safe(string(o.Patch)) || len(o.Patch) > maxCommandPatch {
			return ""
		}
		text += " --patch " + shellWord(string(o.Patch))
	}
	if o.Action.Sends() {
		if o.To != "" {
			text += " --to " + shellWord(o.To)
		}
		text += fmt.Sprintf(" --rate %s --canary %d", plainNumber(o.Pace.Rate), o.Pace.Canary)
		if o.Pace.Canary > 0 {
			text += " --canary-wait " + TypedDuration(o.Pace.CanaryWait)
		}
		text += " --stop-at " + plainNumber(o.Pace.StopAt)
		if o.Pace.MaxDepth > 0 {
			text += fmt.Sprintf(" --max-depth %d", o.Pace.MaxDepth)
		}
		if o.Pace.Newest {
			text += " --order newest"
		}
		if o.Reset {
			text += " --reset-attempts"
		}
	}
	if o.First > 0 {
		text += fmt.Sprintf(" --first %d", o.First)
	}
	if !o.Action.Sends() && o.Pace.Newest {
		text += " --order newest"
	}
	if o.Restored {
		text += " --include-restored"
	}
	if o.Action == deadletter.VerbReschedule {
		text += " --due-at " + o.DueAt.UTC().Format(time.RFC3339)
	}
	if o.Reason != "" {
		text += " --reason " + shellWord(o.Reason)
	}
	return text
}

// commandTitle says what the command does, compared to the operation.
func (p OperationPage) commandTitle() string {
	if p.Operation.Except+p.Operation.Changed > 0 {
		return "The same query on the command line, including the letters left out"
	}
	return "On the command line"
}

// openWord is the link to the letters of a result.
func openWord(r deadletter.Result, n int) string {
	switch r {
	case deadletter.ResultCameBack:
		return "Open the " + Count(n) + " that came back."
	case deadletter.ResultReturned:
		return "Open the " + Count(n) + " that the broker returned."
	case deadletter.ResultInDoubt:
		return "Open the " + Count(n) + " in doubt."
	}
	return "Open the " + Count(n) + " that failed."
}

// newFailures says how many letters of the same groups arrived since the operation began; they are
// no part of it.
func (p OperationPage) newFailures() string {
	return Number(p.NewFailures, "new failure", "new failures") + map[bool]string{true: "", false: " or more"}[p.NewExact]
}
