package view

import "github.com/deadletteroffice/dlo/internal/deadletter"

// waitsInBroker explains what follows for a letter that waits in the broker.
func (p LetterPage) waitsInBroker() []Span {
	text := []Span{{Text: "This letter waits in the broker, in "}, {Text: line(p.Letter.WaitsIn, 120), Code: true}}
	if !p.Letter.InBroker(p.Now) {
		return append(text, words(" as far as dlo knows, but its time in the broker was over "+
			When(p.Now, p.Letter.DueAt)+". If you act on it, a copy of it may still arrive."))
	}
	if !p.Letter.DueAt.IsZero() {
		text = append(text, Span{Text: ", until " + UTC(p.Letter.DueAt) + " (" + Ago(p.Now, p.Letter.DueAt) + ")"})
	}
	text = append(text, words(". The broker then sends it on automatically, even while dlo is down. "+
		"Until then it cannot be edited, rescheduled, held, requeued or discarded."))
	if p.Letter.WaitsIn == deadletter.WaitTTL { // RabbitMQ expires messages only at the head of a queue
		text = append(text, Span{Text: " A letter ahead of it that waits longer delays it."})
	}
	return text
}

// waitsHere reports whether the attempt with index i is waiting in the broker now.
func (p LetterPage) waitsHere(i int) bool {
	return p.Letter.State == deadletter.StateScheduled && p.Letter.WaitsIn != "" && i == len(p.Attempts)-1 &&
		p.Attempts[i].WaitsIn == p.Letter.WaitsIn
}

// dueSentence describes what happens when a scheduled letter is due.
func (p LetterPage) dueSentence() string {
	if last := len(p.Attempts) - 1; last >= 0 && p.waitsHere(last) {
		return "Attempt " + Count(p.Attempts[last].Number) + " is due in its queue"
	}
	return "The next attempt is due"
}

// waitingPlace describes where a scheduled letter waits for its next attempt.
func (p LetterPage) waitingPlace() []Span {
	if p.Letter.WaitsIn != "" {
		return []Span{
			{Text: "waits in the broker, in "},
			{Text: line(p.Letter.WaitsIn, 120), Code: true},
			{Text: ", which sends it on automatically."},
		}
	}
	return []Span{{Text: "waits in dlo's store; it can be requeued now, held or discarded."}}
}

// waitedIn describes where in the broker the attempt with index i waited before it went to its
// queue. It returns nil if the attempt went there directly.
func (p LetterPage) waitedIn(i int) []Span {
	a := p.Attempts[i]
	if a.WaitsIn == "" {
		return nil
	}
	text := []Span{{Text: "Waited in "}, {Text: line(a.WaitsIn, 120), Code: true}}
	if p.waitsHere(i) {
		text[0].Text = "Waits in "
	}
	if !a.WaitUntil.IsZero() {
		text = append(text, Span{Text: " until " + UTC(a.WaitUntil)})
	}
	return text
}

// unverified says what dlo could not verify about a settled letter. It returns "" if everything was
// verified.
func (p LetterPage) unverified() string {
	if !p.Letter.Unverified || p.Letter.State != deadletter.StateQuiet {
		return ""
	}
	return "it did not come back while it was watched, but dlo could not see what became of it. The reason is in its history."
}
