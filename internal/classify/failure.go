package classify

import (
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/failure"
)

// failure returns the reason why a letter was given up, masked with the current masks. The reason
// comes from the consumer's annotation or from the headers. Details from the body are joined later,
// once the body is read. For an unwrapped letter, these details come from the body that arrived
// last.
func (c *Classifier) failure(l *deadletter.Letter) deadletter.Failure {
	if l.Annotation != nil {
		return c.annotated(l.Annotation)
	}
	f := failure.Read(l.Arrived, l.Inbox, l.ArrivedBy, c.o.Mask)
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

// named returns the message type that a letter's framework names. It is for letters that no schema
// can decode. The parameter f is the known failure.
func (c *Classifier) named(l *deadletter.Letter, f *deadletter.Failure) string {
	name := f.MessageType
	if name == "" && l.Annotation != nil { // the annotation describes the failure, but only the headers name the type
		said := failure.Read(l.Arrived, l.Inbox, l.ArrivedBy, c.o.Mask)
		name = said.MessageType
	}
	return deadletter.Cut(deadletter.Visible(name), maxType)
}

const (
	maxType     = 300 // maximum bytes of a type named by a framework
	maxError    = 500 // maximum bytes of an error text in lists and groups
	importedWhy = "imported: it was "
)

// said returns the failure by which a letter is grouped, and its error as shown in lists: "Type:
// message", on one line. An imported letter keeps the error that it had in the dlo from which it
// was imported, because that is the error of its latest death. Until the letter dies here, its
// headers describe its first death. If the headers agree with that error, they are used, because
// they contain more detail. A stored letter whose headers give no error keeps its error.
func (c *Classifier) said(l *deadletter.Letter, f deadletter.Failure) (deadletter.Failure, string) {
	text := errorLine(&f)
	known := l.Imported != "" || strings.HasPrefix(l.Why, importedWhy) || !f.Said() && l.State != deadletter.StateReceived
	if known && l.Error != "" {
		if was := c.masked("", l.Error); was != text {
			return deadletter.Failure{Message: was}, was
		}
	}
	return f, text
}

// errorLine returns an error on one line of at most maxError bytes.
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

// masked returns the part of a text that may be shown, on one line.
func (c *Classifier) masked(name, text string) string {
	if c.o.Mask != nil {
		text, _ = c.o.Mask(name, text)
	}
	return oneLine(text)
}
