package view

import "github.com/deadletteroffice/dlo/internal/deadletter"

// What the page shows of a failure at most, bytes with their escapes.
const (
	failureMessage = 4 << 10
	failureStack   = 12 << 10
)

// reporter is who gave the letter up.
func (p LetterPage) reporter() string {
	if by := p.Letter.Annotation.Reporter(); by != "" {
		return line(by, 200)
	}
	return "its consumer, without a name"
}

// idWord is what the framework calls what has the id.
func (p LetterPage) idWord() string {
	if p.Said.By == "Celery" {
		return "Task id"
	}
	return "Message id"
}

// stack is the stack trace, and whether the page has not all of it.
func (p LetterPage) stack() (text string, cut bool) {
	text = deadletter.VisibleLines(p.Letter.Annotation.Stack)
	return deadletter.Cut(text, failureStack), len(text) > failureStack
}
