package payload

import (
	"errors"
	"maps"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Letter reads the body of a stored letter as a requeue would send it, the way it was read when it
// was classified: a pick by a person counts, and what it was matched as decides between types that
// read it alike. Of a letter that dlo died of it shows the bytes.
func (d *Decoder) Letter(l *deadletter.Letter) *Document { return d.LetterAmong(l, nil) }

// LetterAmong is Letter, and lists types that read a body alike by how common they are on its
// queue: their shares, 0 to 1. These never decide which it is: that was done when it was
// classified.
func (d *Decoder) LetterAmong(l *deadletter.Letter, common map[string]float64) *Document {
	_, body := l.Current()
	if l.Undecodable() {
		return d.Bytes(body, hintsOf(l), l.Why)
	}
	h := hintsOf(l)
	if h.Prior == nil {
		h.Prior = maps.Clone(common)
		for name, share := range h.Prior {
			h.Prior[name] = share * ordering
		}
	}
	if l.Revised == nil {
		return d.Decode(body, h, nil)
	}
	was := d.received(l)
	h.hidden = was.plausible
	doc := d.Decode(body, h, nil)
	doc.Masked = doc.Masked || d.BytesMasked(was) // the edit may have taken out what is masked in the bytes that were received
	return doc
}

// received reads the body of an edited letter as it was received.
func (d *Decoder) received(l *deadletter.Letter) *Document {
	was := *l
	was.Revised = nil
	return d.Letter(&was)
}

// BytesMasked says whether the bytes of a body must not be given out: something in it is masked, or
// a mask is configured and nobody could read the body to the end.
func (d *Decoder) BytesMasked(doc *Document) bool {
	unread := doc.Kind == Binary || doc.Problem != "" || len(doc.Layers) >= 3
	return doc.Masked || d.Hides() && unread
}

// HintsOf returns what is known about the body of a stored letter, besides the body. An edited body
// keeps hidden what was hidden in the one that was received.
func (d *Decoder) HintsOf(l *deadletter.Letter) Hints {
	h := hintsOf(l)
	if l.Revised != nil && !l.Undecodable() && d.mayHideFields() {
		h.hidden = d.received(l).plausible
	}
	return h
}

func hintsOf(l *deadletter.Letter) Hints {
	p, _ := l.Current()
	h := Hints{ContentType: p.ContentType, ContentEncoding: p.ContentEncoding, Type: p.Type, Queue: l.Origin.Queue, Key: l.Origin.RoutingKey, Picked: l.Picked, Crashed: l.Undecodable()}
	h.Compression, _ = p.Headers[kombuHeader].(string)
	if h.Picked == "" {
		h.Picked = l.GroupPick
	}
	if l.Reading == deadletter.ReadByMatch {
		h.Prior, h.Was, h.Only = map[string]float64{l.Type: 1}, l.Type, l.Type
	}
	return h
}

// Revise makes the revision of a letter that a patch of its decoded body comes to, as one of an
// edit of many. One with something masked in it is revised for who has the right to reveal. An
// error says in words why there is none.
func (d *Decoder) Revise(l *deadletter.Letter, patch []byte, reveal bool) (deadletter.Revision, error) {
	properties, body := l.Current()
	e, err := d.Patch(body, d.HintsOf(l), patch, nil)
	switch {
	case err != nil:
	case e.Masked && !reveal:
		err = errors.New("something in it is masked, and editing it needs the right to reveal")
	case len(e.Changed) == 0:
		err = errors.New("nothing would change")
	}
	if err != nil {
		return deadletter.Revision{}, err
	}
	clean := deadletter.Sanitise
	if l.Revised != nil {
		clean = deadletter.Resent
	}
	properties, _ = clean(properties)
	return deadletter.Revision{Letter: l.ID, Number: l.Revision + 1, Properties: properties, Body: e.Body, Changes: strings.Join(e.Changed, "; ")}, nil
}
