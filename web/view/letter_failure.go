package view

import "github.com/deadletteroffice/dlo/internal/deadletter"

// These constants limit the error on the page, in bytes including escapes.
const (
	failureMessage = 4 << 10
	failureStack   = 12 << 10
)

// reporter returns the name of the consumer that gave up on the letter.
func (p LetterPage) reporter() string {
	if by := p.Letter.Annotation.Reporter(); by != "" {
		return line(by, 200)
	}
	return "its consumer, without a name"
}

// idWord returns the framework's term for the letter's id.
func (p LetterPage) idWord() string {
	if p.Said.By == "Celery" {
		return "Task id"
	}
	return "Message id"
}

// stack returns the stack trace in the form in which the page shows it, and reports whether it was
// cut.
func (p LetterPage) stack() (text string, cut bool) {
	text = deadletter.VisibleLines(p.Letter.Annotation.Stack)
	return deadletter.Cut(text, failureStack), len(text) > failureStack
}
