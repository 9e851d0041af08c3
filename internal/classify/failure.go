package classify

import (
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/failure"
)

// failure returns the reason why the consumer gave up a letter, masked with the current masks. The
// reason comes from the consumer's annotation or from the headers. The caller reads the body later,
// and adds details from it. If the letter was unwrapped from an EasyNetQ error, failure adds the
// details from the envelope that arrived last.
func (c *Classifier) failure(l *deadletter.Letter) deadletter.Failure {
	if l.Annotation != nil {
		return c.annotatedFailure(l.Annotation)
	}
	f := failure.Read(l.Arrived, l.Inbox, l.ArrivedBy, c.o.FailureHeaders, c.o.Mask)
	if l.Revised == nil || !deadletter.EasyNetQError(l.Arrived) || l.Undecodable() {
		return f
	}
	arrived := deadletter.Letter{Properties: l.Arrived, Body: l.Body}
	if l.ArrivedBody != nil {
		arrived.Body = l.ArrivedBody
	}
	d := c.o.Decoder()
	return failure.Join(f, d.Decode(arrived.Body, d.HintsOf(&arrived), nil).Failure)
}

// frameworkType returns the message type that a framework names in a letter. This type is used for
// letters that no schema can decode. The parameter f is the failure that is known so far.
func (c *Classifier) frameworkType(l *deadletter.Letter, f *deadletter.Failure) string {
	name := f.MessageType
	if name == "" && l.Annotation != nil { // the failure comes from the annotation, but only the headers name the type
		said := failure.Read(l.Arrived, l.Inbox, l.ArrivedBy, c.o.FailureHeaders, c.o.Mask)
		name = said.MessageType
	}
	return deadletter.Cut(deadletter.Visible(name), maxType)
}

const (
	maxType     = 300 // maximum number of bytes of a type that a framework names
	maxError    = 500 // maximum number of bytes of an error text in lists and groups
	importedWhy = "imported: it was "
)

// groupingFailure returns the failure by which a letter is grouped, and the error that lists show:
// "Type: message", on one line. Normally, this is the failure f, which was read from the headers.
// An imported letter keeps the error that it had in the other dlo, because its headers describe an
// earlier death. A stored letter keeps its error if f contains none. If the error that is kept
// equals the error of f, groupingFailure returns f, because f contains more detail.
func (c *Classifier) groupingFailure(l *deadletter.Letter, f deadletter.Failure) (deadletter.Failure, string) {
	text := errorLine(&f)
	known := l.Imported != "" || strings.HasPrefix(l.Why, importedWhy) ||
		!f.Said() && l.State != deadletter.StateReceived
	if known && l.Error != "" {
		if was := c.masked("", l.Error); was != text {
			return deadletter.Failure{Message: was}, was
		}
	}
	return f, text
}

// errorLine returns an error as one line of at most maxError bytes.
func errorLine(f *deadletter.Failure) string {
	text := f.Message
	switch {
	case text == "":
		text = f.Type
	case f.Type != "":
		text = f.Type + ": " + deadletter.Cut(text, 4*maxError)
	}
	return oneLine(text)
}

func oneLine(text string) string {
	return deadletter.Cut(deadletter.Visible(deadletter.Cut(text, 4*maxError)), maxError)
}

// masked returns a text with the current masks applied, on one line.
func (c *Classifier) masked(name, text string) string {
	if c.o.Mask != nil {
		text, _ = c.o.Mask(name, text)
	}
	return oneLine(text)
}
