package payload

import (
	"errors"
	"maps"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Letter decodes the body that a requeue of a stored letter would send. It works in the same way as
// when the letter was classified. If a person picked a type, Letter tries that type first. If
// several types can decode the body equally well, it uses the type that the body matched when the
// letter was classified. For a letter that crashed dlo, it shows only bytes.
func (d *Decoder) Letter(l *deadletter.Letter) *Document { return d.LetterAmong(l, nil) }

// LetterAmong does the same as Letter. It also sorts types that can decode a body equally well by
// their share among the letters of the queue. The parameter "shares" holds these shares, from 0 to
// 1. They never decide the type, because the type was decided when the letter was classified.
func (d *Decoder) LetterAmong(l *deadletter.Letter, shares map[string]float64) *Document {
	_, body := l.Current()
	if l.Undecodable() {
		return d.Bytes(body, hintsOf(l), l.Why)
	}
	h := hintsOf(l)
	if h.Prior == nil {
		h.Prior = maps.Clone(shares)
		for name, share := range h.Prior {
			h.Prior[name] = share * ordering
		}
	}
	if l.Revised == nil {
		return d.Decode(body, h, nil)
	}
	was := d.decodeReceived(l)
	h.hidden = was.doubtful
	doc := d.Decode(body, h, nil)
	// the received bytes may contain masked values that the edit has removed
	doc.Masked = doc.Masked || d.BytesMasked(was)
	return doc
}

// decodeReceived decodes the body that an edited letter had when it was received.
func (d *Decoder) decodeReceived(l *deadletter.Letter) *Document {
	was := *l
	was.Revised = nil
	return d.Letter(&was)
}

// EditDiff returns what the edits of a letter changed in its body as people see it, masked. It
// returns nil if nothing differs there, or if the letter was not edited.
func (d *Decoder) EditDiff(l *deadletter.Letter) []DiffLine {
	if l.Revised == nil {
		return nil
	}
	was, now := d.decodeReceived(l), d.Letter(l)
	return Diff(was.JSON+was.Text, now.JSON+now.Text)
}

// BytesMasked reports whether the bytes of a body must not be revealed. They must not be revealed
// if a part of the body is masked.
//
// The bytes must also not be revealed if the configuration masks parts of bodies and dlo may not
// have found all of these parts in this body. This can happen if the body is binary, if it has a
// problem, or if the maximum of three layers was removed.
func (d *Decoder) BytesMasked(doc *Document) bool {
	unread := doc.Kind == Binary || doc.Problem != "" || len(doc.Layers) >= 3
	return doc.Masked || d.Hides() && unread
}

// HintsOf returns everything that is known about the body of a stored letter, apart from the body
// itself. If the received body was hidden because its type is a guess, an edited one is hidden too.
func (d *Decoder) HintsOf(l *deadletter.Letter) Hints {
	h := hintsOf(l)
	if l.Revised != nil && !l.Undecodable() && d.mayHideFields() {
		h.hidden = d.decodeReceived(l).doubtful
	}
	return h
}

func hintsOf(l *deadletter.Letter) Hints {
	p, _ := l.Current()
	h := Hints{
		ContentType:     p.ContentType,
		ContentEncoding: p.ContentEncoding,
		Type:            p.Type,
		Queue:           l.Queue,
		Key:             l.RoutingKey,
		Picked:          l.Picked,
		Crashed:         l.Undecodable(),
		Headers:         p.Headers,
	}
	h.Compression, _ = p.Headers[kombuHeader].(string)
	if h.Picked == "" {
		h.Picked = l.GroupPick
	}
	if l.Reading == deadletter.ReadByMatch {
		h.Prior, h.Was, h.Only = map[string]float64{l.Type: 1}, l.Type, l.Type
	}
	return h
}

// Revise applies a patch to the decoded body of a letter, and returns the resulting revision. It is
// used to edit many letters at once. The parameter "reveal" is true if the caller has the right to
// reveal. Without this right, there is no revision of a letter that has a masked part. The error
// says why there is no revision.
func (d *Decoder) Revise(l *deadletter.Letter, patch []byte, reveal bool) (deadletter.Revision, error) {
	properties, body := l.Current()
	h := d.HintsOf(l)
	// before the patch, whose mistakes tell what the letter contains
	if !reveal && d.Decode(body, h, nil).Masked {
		return deadletter.Revision{}, errors.New("something in it is masked, and editing it needs the right to reveal")
	}
	e, err := d.Patch(body, h, patch, nil)
	switch {
	case err != nil:
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
	return deadletter.Revision{
		Letter:     l.ID,
		Number:     l.Revision + 1,
		Properties: properties,
		Body:       e.Body,
		Changes:    strings.Join(e.Changed, "; "),
	}, nil
}
