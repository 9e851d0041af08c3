package view

import (
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
func (p OperationPage) triedSteps() []happening {
	t, op := p.Tried, &p.Operation
	all := []happening{{At: op.CreatedAt, Title: "Requested", Text: []Span{{Text: "by " + line(op.By, 60)}}}}
	a := t.Attempt
	if a == nil {
		switch {
		case t.Letter.Result.Open():
			return append(all, happening{
				Tone:  "wait",
				Title: "Not sent yet",
				Text:  []Span{{Text: "Nothing leaves before the time to undo is over."}},
			})
		case t.Letter.Reason != "":
			return append(all, happening{Title: "Not sent", Text: []Span{{Text: line(t.Letter.Reason, 300)}}})
		}
		return append(all, happening{Title: "Not sent"})
	}
	how := ", as attempt " + Count(a.Number)
	if a.Revision > 0 {
		how += ": the edited copy, revision " + Count(a.Revision)
	}
	all = append(all, happening{
		At:    a.At,
		Title: "Sent",
		Text:  []Span{{Text: "to the tail of "}, {Text: queueName(a.Queue), Code: true}, {Text: how}},
	})
	all = append(all, p.answerEntries(*a)...)
	switch t.Letter.Result {
	case deadletter.ResultConfirmed:
		all = append(all, consumerEntry(t.Facts, a.Queue))
		return append(all, happening{
			Tone:  "wait",
			Title: "Watched" + p.watchEnd(),
			Text:  []Span{{Text: "If it does not come back until then, it counts as quiet."}},
		})
	case deadletter.ResultQuiet, deadletter.ResultUnverified:
		end := op.SentAt
		if !end.IsZero() {
			end = end.Add(p.Watch)
		}
		return append(all, happening{
			At:    end,
			Tone:  "good",
			Title: resultMark(t.Letter.Result).Word,
			Text:  []Span{{Text: "It did not come back."}},
		})
	}
	return all
}

// answerEntries returns entries for the answer of the broker to an attempt, and for the return of
// the letter.
func (p OperationPage) answerEntries(a deadletter.Attempt) []happening {
	var all []happening
	switch a.Outcome {
	case deadletter.OutcomeOpen:
		return []happening{
			{Tone: "wait", Title: "Not confirmed yet", Text: []Span{{Text: "The broker has not answered."}}},
		}
	case deadletter.OutcomeConfirmed, deadletter.OutcomeCameBack:
		all = append(all, happening{
			At:    a.ClosedAt,
			Title: "Confirmed",
			Text:  []Span{{Text: "The broker has put it into the queue."}},
		})
	default:
		return []happening{
			{
				At:    a.ClosedAt,
				Tone:  "bad",
				Title: upperFirst(string(a.Outcome)),
				Text:  []Span{{Text: line(a.Detail, 300)}},
			},
		}
	}
	if a.Back == nil {
		return all
	}
	text := []Span{{Text: line(p.Tried.Letter.Error, 300)}}
	if same, known := p.Tried.Letter.SameError(); known && same {
		text = append(text, Span{Text: " The error is the same as before."})
	} else if known {
		text = append(text, Span{Text: " The error is not the same as before."})
	}
	return append(all, happening{At: a.Back.At, Tone: "bad", Title: "Came back", Text: text})
}

// consumerEntry returns the entry that says whether a consumer has the letter. It is based on the
// facts about the queue.
func consumerEntry(f deadletter.QueueFacts, queue string) happening {
	name := Span{Text: queueName(queue), Code: true}
	switch {
	case !f.Known || f.Ready < 0:
		return happening{
			Tone:  "wait",
			Title: "Not known whether a consumer has it",
			Text:  []Span{{Text: "Only the management API of the broker shows this."}},
		}
	case f.Consumers == 0:
		return happening{
			Tone:  "wait",
			Title: "Nobody takes it",
			Text:  []Span{{Text: "No consumer is on "}, name, {Text: "."}},
		}
	case f.Ready > 0:
		return happening{
			Tone:  "wait",
			Title: "It may still be in the queue",
			Text:  []Span{{Text: Number(f.Ready, "message is", "messages are") + " ready in "}, name, {Text: "."}},
		}
	case f.Unacked > 0:
		return happening{
			Title: "A consumer has it",
			Text: []Span{
				{Text: "Nothing is ready in "},
				name,
				{Text: "; " + Number(f.Unacked, "message is", "messages are") + " being worked on."},
			},
		}
	}
	return happening{
		Title: "A consumer has taken it",
		Text:  []Span{{Text: "Nothing is ready in "}, name, {Text: ", and nothing is being worked on."}},
	}
}
