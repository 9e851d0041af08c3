package classify

import (
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/failure"
)

// failure returns what is said beside the body about why a letter was given up, by its consumer or
// in its headers, masked as masks are now. What its body says is joined to it once that is read; of
// a letter that was unwrapped it is the body that arrived last.
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

// named is the type that the framework of a letter names, for a letter that no schema reads; f is
// what is said of its failure.
func (c *Classifier) named(l *deadletter.Letter, f *deadletter.Failure) string {
	name := f.MessageType
	if name == "" && l.Annotation != nil { // its consumer said what failed, and its headers what it is
		said := failure.Read(l.Arrived, l.Inbox, l.ArrivedBy, c.o.Mask)
		name = said.MessageType
	}
	return deadletter.Cut(deadletter.Visible(name), maxType)
}

const (
	maxType     = 300 // bytes of a type that a framework names
	maxError    = 500 // bytes of an error text in lists and groups
	importedWhy = "imported: it was "
)

// said returns the failure that a letter is grouped by, and its error as lists show it: "Type:
// message", on one line. Of an imported letter the error of its latest death is known from where it
// comes from, while its headers are those of its first, until it dies here; where both say the
// same, the headers know more of it. A stored letter whose headers say nothing keeps the error that
// it has.
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

// errorLine is an error on one line, of at most maxError bytes.
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

// masked returns what may be shown of a text, on one line.
func (c *Classifier) masked(name, text string) string {
	if c.o.Mask != nil {
		text, _ = c.o.Mask(name, text)
	}
	return oneLine(text)
}
