package view

import (
	"fmt"
	"net/url"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// OperationPage is one operation: how far it is, and what it could not do.
type OperationPage struct {
	Shell
	Operation deadletter.Operation
	Letters   []deadletter.OperationLetter // failed, skipped and came back, as far as this page of them goes
	Next      string                       // cursor of the next page of Letters; "" at the end
	After     string                       // cursor of this page; "" = the first
	Recent    []deadletter.Operation       // other operations, newest first
}

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
		case deadletter.ResultConfirmed, deadletter.ResultChanged:
			p.Good += n
		case deadletter.ResultCameBack:
			p.Back += n
		case deadletter.ResultFailed:
			p.Bad += n
		default:
			p.Other += n
		}
	}
	p.Done = p.Total - p.ToGo
	return p
}

// segment is one coloured part of a bar of width 100.
type segment struct{ Class, X, Width string }

// segments lays the parts of a bar side by side; a part that is not empty is at least 0.4 wide, so that one failure of 100,000 is seen.
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
	if o.Action == deadletter.VerbRequeue {
		title += " to the tail"
	}
	return title
}

// verdict says in a sentence where the operation stands; never "success", as nobody sees the consumer's ack.
func (p OperationPage) verdict() string {
	n := progressOf(p.Operation.Counts)
	switch {
	case p.Operation.State == deadletter.OperationRunning:
		return Count(n.ToGo) + " to go"
	case p.Operation.State == deadletter.OperationCancelled:
		return "cancelled " + Ago(p.Now, p.Operation.FinishedAt) + ", " + Duration(p.Operation.FinishedAt.Sub(p.Operation.CreatedAt)) + " after it began"
	case p.Operation.FinishedAt.IsZero():
		return ""
	}
	return "done in " + Duration(p.Operation.FinishedAt.Sub(p.Operation.CreatedAt))
}

func (p OperationPage) running() bool { return p.Operation.State == deadletter.OperationRunning }

// trouble is how many letters the table of failures has in all.
func (p OperationPage) trouble() int {
	return p.Operation.Counts[deadletter.ResultFailed] + p.Operation.Counts[deadletter.ResultSkipped] + p.Operation.Counts[deadletter.ResultCameBack]
}

// then says what a letter is now that the operation could not do its work on it.
func then(r deadletter.Result) string {
	switch r {
	case deadletter.ResultFailed:
		return "held, a person decides"
	case deadletter.ResultSkipped:
		return "stays as it was"
	case deadletter.ResultCameBack:
		return "classified afresh"
	}
	return ""
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

func doneWord(v deadletter.Verb) string {
	switch v {
	case deadletter.VerbDiscard:
		return "Discarded"
	case deadletter.VerbRestore:
		return "Restored"
	}
	return "Requeued"
}

func operationAfter(id deadletter.OperationID, after string) string {
	return OperationURL(id) + "?" + url.Values{"after": {after}}.Encode()
}

// operationListMark adds to a state how far the operation came.
func operationListMark(o deadletter.Operation) mark {
	m := operationMark(o.State)
	if o.State != deadletter.OperationDone {
		m.Word += " at " + Count(progressOf(o.Counts).Done-o.Counts[deadletter.ResultCancelled])
	}
	if o.State == deadletter.OperationDone && o.Action == deadletter.VerbDiscard {
		m = mark{"Done, restorable", "trash", ""}
	}
	return m
}
