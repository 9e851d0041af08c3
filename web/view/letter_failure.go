package view

import "github.com/deadletteroffice/dlo/internal/deadletter"

// These constants limit the error message and the stack trace that the page shows. They are sizes
// in bytes, and count escaped characters as they are written.
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

// idWord returns the label for the id of a message: "Task id" if the consumer uses Celery, or else
// "Message id".
func (p LetterPage) idWord() string {
	if p.Said.By == "Celery" {
		return "Task id"
	}
	return "Message id"
}

// stack returns the stack trace as the page shows it. The second result reports whether the trace
// was cut.
func (p LetterPage) stack() (text string, cut bool) {
	text = deadletter.VisibleLines(p.Letter.Annotation.Stack)
	return deadletter.Cut(text, failureStack), len(text) > failureStack
}
