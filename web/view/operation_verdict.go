package view

import (
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// hasVerdict reports whether the page can say what became of the letters. It can if the operation
// has ended, or if dlo only watches whether letters come back.
func (p OperationPage) hasVerdict() bool {
	return !p.Operation.State.Active() || p.isIn(deadletter.PhaseWatching)
}

// verdict describes in one sentence what became of the letters.
func (p OperationPage) verdict() string {
	c, n := p.Operation.Counts, progressOf(p.Operation.Counts)
	if p.cancelledUnsent() {
		done := p.Operation.Action.Past()
		if p.isRequeue() {
			done = "sent"
		}
		return "Undone: nothing was " + done + ", " + Count(p.count(deadletter.ResultCancelled)) + " left as they were."
	}
	var parts []string
	add := func(n int, text string) {
		if n > 0 {
			parts = append(parts, Count(n)+text)
		}
	}
	if p.isRequeue() {
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
	return upperFirst(strings.Join(parts, ", ")) + "."
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

// tabs returns the results that have letters. Results that a person has to look at come first.
func (p OperationPage) tabs() []deadletter.Result {
	var out []deadletter.Result
	for _, r := range ResultTabs {
		if p.count(r) > 0 || r == p.Result {
			out = append(out, r)
		}
	}
	return out
}

func (p OperationPage) count(r deadletter.Result) int {
	if r == ResultTwice {
		return p.Operation.Twice
	}
	return p.Operation.Counts[r]
}

func (p OperationPage) tabWord(r deadletter.Result) string {
	if r == ResultTwice {
		return "Possibly sent twice"
	}
	return p.letterMark(deadletter.OperationLetter{Result: r}).Word
}

// letterMark returns the mark with the result of a letter. A letter that is due is on its way only
// if it was published, or if the broker accepts letters.
func (p OperationPage) letterMark(l deadletter.OperationLetter) mark {
	if l.Result == deadletter.ResultReleased && l.State != deadletter.StatePublishing && p.Operation.Away != "" {
		return waiting
	}
	return resultMark(l.Result)
}

// ResultWord returns a result as links and the query language write it, for example "came-back".
func ResultWord(r deadletter.Result) string { return strings.ReplaceAll(string(r), " ", "-") }

// resultQuery returns the query for the letters of an operation that have one of the given results.
func resultQuery(id deadletter.OperationID, results ...deadletter.Result) string {
	values := make([]string, len(results))
	for i, r := range results {
		values[i] = id.String() + "/" + ResultWord(r)
	}
	return "op:" + strings.Join(values, ",")
}

// canRequeueAgain reports whether letters with this result can be requeued again.
func canRequeueAgain(r deadletter.Result) bool {
	switch r {
	case deadletter.ResultCameBack, deadletter.ResultReturned, deadletter.ResultFailed, deadletter.ResultInDoubt:
		return true
	}
	return false
}

// fateOf describes what becomes of a letter that the operation could not process.
func (p OperationPage) fateOf(l deadletter.OperationLetter) string {
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

// nowIs describes the present state of a letter that came back after an operation.
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

// resultURL returns the URL of the page of the operation that lists the letters with a result.
func (p OperationPage) resultURL(r deadletter.Result, after string) string {
	return address(OperationURL(p.Operation.ID), "result", ResultWord(r), "after", after, "from", p.From)
}

// openWord returns the text of the link to the n letters with a result.
func openWord(r deadletter.Result, n int) string {
	words, ok := map[deadletter.Result]string{
		deadletter.ResultCameBack: " that came back.",
		deadletter.ResultReturned: " that the broker returned.",
		deadletter.ResultInDoubt:  " in doubt.",
	}[r]
	if !ok {
		words = " that failed."
	}
	return "Open the " + Count(n) + words
}
