package view

import (
	"context"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Tried shows what happens to the only letter of a requeue. The letter is sent, confirmed and taken
// by a consumer. Then it comes back or stays away.
type Tried struct {
	Letter  deadletter.OperationLetter
	Attempt *deadletter.Attempt   // the attempt that the operation made; nil if it has made none yet
	Facts   deadletter.QueueFacts // the current facts about the queue of the letter
}

// Waits reports whether the letter is still in its queue or a consumer has it, as far as dlo knows.
func (t Tried) Waits() bool {
	return t.Attempt != nil && t.Attempt.Outcome == deadletter.OutcomeConfirmed &&
		t.Letter.Result == deadletter.ResultConfirmed
}

// triedSteps returns what has happened to the only letter of a requeue, and what comes next.
func (p OperationPage) triedSteps(ctx context.Context) []happening {
	t, op, a := p.Tried, &p.Operation, p.Tried.Attempt
	all := []happening{entry(op.CreatedAt, "", "Requested", words("by "+person(ctx, op.By)))}
	switch {
	case a != nil:
	case t.Letter.Result.Open() && op.Away != "" && !p.canUndoUnsent():
		return append(all, entry(time.Time{}, "wait", "Not sent yet", words(upperFirst(line(op.Away, 300))+".")))
	case t.Letter.Result.Open():
		return append(all, entry(
			time.Time{}, "wait", "Not sent yet", words("Nothing leaves before the time to undo is over."),
		))
	case t.Letter.Reason != "":
		return append(all, entry(time.Time{}, "", "Not sent", words(line(t.Letter.Reason, 300))))
	default:
		return append(all, entry(time.Time{}, "", "Not sent"))
	}
	how := ", as attempt " + Count(a.Number)
	if a.Revision > 0 {
		how += ": the edited copy, revision " + Count(a.Revision)
	}
	all = append(all, entry(a.At, "", "Sent", words("to the tail of "), code(queueName(a.Queue)), words(how)))
	all = append(all, p.answerEntries(*a)...)
	switch t.Letter.Result {
	case deadletter.ResultConfirmed:
		quiet := words("If it does not come back until then, it counts as quiet.")
		return append(
			all, consumerEntry(t.Facts, a.Queue), entry(time.Time{}, "wait", "Watched"+p.watchEnd(), quiet),
		)
	case deadletter.ResultQuiet, deadletter.ResultUnverified:
		end := op.SentAt
		if !end.IsZero() {
			end = end.Add(p.Watch)
		}
		return append(all, entry(end, "good", resultMark(t.Letter.Result).Word, words("It did not come back.")))
	}
	return all
}

// answerEntries returns entries for the answer of the broker to an attempt, and for the return of
// the letter.
func (p OperationPage) answerEntries(a deadletter.Attempt) []happening {
	switch a.Outcome {
	case deadletter.OutcomeOpen:
		return []happening{entry(time.Time{}, "wait", "Not confirmed yet", words("The broker has not answered."))}
	case deadletter.OutcomeConfirmed, deadletter.OutcomeCameBack:
	default:
		return []happening{entry(a.ClosedAt, "bad", upperFirst(string(a.Outcome)), words(line(a.Detail, 300)))}
	}
	all := []happening{entry(a.ClosedAt, "", "Confirmed", words("The broker has put it into the queue."))}
	if a.Back == nil {
		return all
	}
	text := []Span{words(line(p.Tried.Letter.Error, 300))}
	if same, known := p.Tried.Letter.SameError(); known && same {
		text = append(text, words(" The error is the same as before."))
	} else if known {
		text = append(text, words(" The error is not the same as before."))
	}
	return append(all, entry(a.Back.At, "bad", "Came back", text...))
}

// consumerEntry returns the entry that says whether a consumer has the letter. It is based on the
// facts about the queue.
func consumerEntry(f deadletter.QueueFacts, queue string) happening {
	name, now := code(queueName(queue)), time.Time{}
	switch {
	case !f.Known || f.Ready < 0:
		return entry(
			now, "wait", "Not known whether a consumer has it",
			words("Only the management API of the broker shows this."),
		)
	case f.Consumers == 0:
		return entry(now, "wait", "Nobody takes it", words("No consumer is on "), name, words("."))
	case f.Ready > 0:
		ready := words(Number(f.Ready, "message is", "messages are") + " ready in ")
		return entry(now, "wait", "It may still be in the queue", ready, name, words("."))
	case f.Unacked > 0:
		worked := words("; " + Number(f.Unacked, "message is", "messages are") + " being worked on.")
		return entry(now, "", "A consumer has it", words("Nothing is ready in "), name, worked)
	}
	return entry(
		now, "", "A consumer has taken it",
		words("Nothing is ready in "), name, words(", and nothing is being worked on."),
	)
}
