package classify

import (
	"cmp"
	"context"
	"regexp"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/failure"
	"github.com/deadletteroffice/dlo/internal/payload"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// patternText finds the texts in a pattern of NestJS, which is a text or a JSON object.
var patternText = regexp.MustCompile(`[^{}\[\]":,]+`)

// read decodes the body of a letter, and puts its type, error, summary and group into the verdict.
// The parameter f is the failure found in the headers. read returns the decision of the function
// "decide". If a person has picked a type for the letter's group, read decodes the body again with
// that type. The letter still stays in that group, so that the pick is found again.
func (c *Classifier) read(
	l *deadletter.Letter, f deadletter.Failure, v *deadletter.Classified, k *known,
	decide func(*payload.Document) rules.Decision,
) rules.Decision {
	h := c.o.Decoder().HintsOf(l)
	h.Picked = l.Picked
	k.addLearned(&h, v.Origin)
	_, body := l.Current()
	doc := c.decode(body, h)
	if doc.Failure.By == deadletter.NestJS { // letters that differ in an id have one type
		doc.Failure.MessageType = patternText.ReplaceAllStringFunc(doc.Failure.MessageType, failure.Fold)
	}
	f = failure.Join(f, doc.Failure)
	// only the body says where the letter died, so read it as a letter of that queue
	told := doc.Failure.Queue
	if l.State == deadletter.StateReceived && told != "" &&
		(v.Origin.Queue == "" || f.By == deadletter.Dramatiq && v.Origin.Queue == told+".XQ") {
		c.place(l, &f, v, k)
		k.addLearned(&h, v.Origin)
		doc = c.decode(body, h)
	}
	named := c.frameworkType(l, &f)
	v.Type = cmp.Or(doc.Type, named)
	f, v.Error = c.groupingFailure(l, f)
	d := decide(doc)
	*v = c.withGroup(l, *v, causeOf(v, &f, doc, d.Group))
	if picked := c.groupPick(l, v.GroupKey); picked != "" && h.Picked == "" {
		h.Picked = picked
		doc = c.decode(body, h)
		v.Type = cmp.Or(doc.Type, named)
		d = decide(doc)
	}
	v.Reading, v.Summary, v.Added = doc.Reading(), payload.Summary(doc, v.Error), doc.Added
	return d
}

// decode decodes a body and records how long the decoding took.
func (c *Classifier) decode(body []byte, h payload.Hints) *payload.Document {
	began := c.o.Now()
	doc := c.o.Decoder().Decode(body, h, nil)
	if m := c.o.Metrics; m != nil {
		how := string(doc.Reading())
		m.readings.WithLabelValues(how).Inc()
		m.seconds.WithLabelValues(how).Add(c.o.Now().Sub(began).Seconds())
	}
	return doc
}

// groupPick returns the type that a person picked for the group with the given key. An older
// version of the grouping may have put the letter into another group. A pick for that older group
// still counts, and the store moves the pick to the new group.
func (c *Classifier) groupPick(l *deadletter.Letter, key [32]byte) string {
	picked := c.o.Picks()[key]
	if picked == "" && l.GroupVersion > 0 && l.GroupVersion < GroupVersion {
		return l.GroupPick
	}
	return picked
}

// known caches answers that several letters of one batch need: the types of the earlier letters of
// a queue, and what the broker says about a queue in which letters expired.
type known struct {
	c       *Classifier
	ctx     context.Context
	past    map[deadletter.Origin]past
	fail    bool
	leads   map[asked]deadletter.Onward
	reports *reports // nil = the verdict is not recorded, so no broker is asked
}

func (c *Classifier) loadKnown(ctx context.Context) *known {
	return &known{c: c, ctx: ctx, past: map[deadletter.Origin]past{}, leads: map[asked]deadletter.Onward{}}
}

// past holds the types that earlier letters of one queue and routing key had.
type past struct {
	priors map[string]float64
	only   string
}

// addLearned adds the types of a queue's earlier letters to the hints about a body. If these types
// cannot be loaded, only the body itself decides which type it has.
func (k *known) addLearned(h *payload.Hints, o deadletter.Origin) {
	found, ok := k.past[o]
	if !ok && !k.fail {
		var err error
		if found.priors, err = k.c.store.Priors(k.ctx, o); err == nil {
			found.only, err = k.c.store.OnlyType(k.ctx, o)
		}
		if err != nil {
			k.fail = true
		}
		if err != nil && k.ctx.Err() == nil {
			k.c.o.Log.Error("the types of earlier letters cannot be read", "err", err)
		}
		k.past[o] = found
	}
	h.Queue, h.Key, h.Prior, h.Only = o.Queue, o.RoutingKey, found.priors, found.only
}
