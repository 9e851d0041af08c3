package payload

import "github.com/deadletteroffice/dlo/internal/deadletter"

// Letter reads the body of a stored letter as a requeue would send it, the way it was read when it was classified: a pick by a person counts, and what it was matched as decides between types
// that read it alike. Of a letter that dlo died of it shows the bytes.
func (d *Decoder) Letter(l *deadletter.Letter) *Document {
	_, body := l.Current()
	if l.Undecodable() {
		return d.Bytes(body, HintsOf(l), l.Why)
	}
	return d.Decode(body, HintsOf(l), nil)
}

// HintsOf returns what is known about the body of a stored letter, besides the body.
func HintsOf(l *deadletter.Letter) Hints {
	p, _ := l.Current()
	h := Hints{ContentType: p.ContentType, ContentEncoding: p.ContentEncoding, Type: p.Type, Queue: l.Origin.Queue, Key: l.Origin.RoutingKey, Picked: l.Picked}
	if h.Picked == "" {
		h.Picked = l.GroupPick
	}
	if l.Reading == deadletter.ReadByMatch {
		h.Prior = map[string]float64{l.Type: 1}
	}
	return h
}
