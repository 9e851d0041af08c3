package classify

import (
	"cmp"
	"context"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/failure"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// Facts returns what the rules would look at if a stored letter, whole, came to be classified now:
// decoded with the types of today, its error under the masks of today. It is safe for concurrent
// use, and takes the memory of one decoded body. Of a letter that may not be decoded it tells what
// is known without its body.
func (c *Classifier) Facts(l *deadletter.Letter) rules.Facts {
	v := deadletter.Classified{Origin: l.Origin, Reason: l.Reason}
	mine := *l
	l = &mine
	if l.State == deadletter.StateReceived { // nobody has read where it died yet
		v = c.verdict(l, c.known(context.Background()))
	}
	at := *l
	at.Origin = v.Origin
	doc := c.o.Decoder().Letter(&at)
	f := failure.Join(c.failure(l), doc.Failure)
	v.Type = cmp.Or(doc.Type, c.named(l, &f))
	_, v.Error = c.said(l, f)
	return c.facts(l, &v, doc)
}
