package classify

import (
	"cmp"
	"context"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/failure"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// Facts returns the facts that the rules would see if they decided on a stored letter now. It
// decodes the letter with the current types, and masks the error with the current masks. If the
// letter must not be decoded, Facts returns the facts that are known without its body. Facts is
// safe for concurrent use. It needs the memory of one decoded body.
func (c *Classifier) Facts(l *deadletter.Letter) rules.Facts {
	v := deadletter.Classified{Origin: l.Origin(), Reason: l.Reason}
	mine := *l
	l = &mine
	if l.State == deadletter.StateReceived { // the origin of the letter is not known yet
		v = c.verdict(l, c.loadKnown(context.Background()))
	}
	at := *l
	at.SetOrigin(v.Origin)
	doc := c.o.Decoder().Letter(&at)
	f := failure.Join(c.failure(l), doc.Failure)
	v.Type = cmp.Or(doc.Type, c.frameworkType(l, &f))
	_, v.Error = c.groupingFailure(l, f)
	return c.facts(l, &v, doc)
}
