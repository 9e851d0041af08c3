package classify

import (
	"cmp"
	"context"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/failure"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// Facts returns what the rules would see if a complete stored letter were classified now: decoded
// with the current types, its error masked with the current masks. It is safe for concurrent use
// and needs the memory of one decoded body. For a letter that must not be decoded, Facts returns
// what is known without its body.
func (c *Classifier) Facts(l *deadletter.Letter) rules.Facts {
	v := deadletter.Classified{Origin: l.Origin, Reason: l.Reason}
	mine := *l
	l = &mine
	if l.State == deadletter.StateReceived { // nobody has determined yet where it died
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
