package payload

import (
	"bytes"
	"fmt"
	"slices"
	"unicode/utf8"
)

// readBinary fills in the document of a body that could not be decoded.
func (r *reading) readBinary() {
	doc := r.doc
	doc.Kind = Binary
	doc.NoSchema = r.several == "" && wireShaped(doc.Body, 1000) && !r.declaresJSON() &&
		doc.Ranking.Verdict != Ambiguous &&
		!slices.ContainsFunc(r.named, func(c candidate) bool { return len(c.defs) > 0 || c.others })
	if what := r.otherSections(doc.Body); what != "" {
		doc.note(fmt.Sprintf(
			"The body is AMQP 1.0 and begins with a %s. dlo takes out a single string or binary only.", what,
		))
	}
	at := r.rootSpot()
	if at.hidden = r.mayHideUnread(); at.hidden {
		doc.Masked = true
	} else if r.maskBinary(); doc.TooLarge {
		return
	}
	if r.several == "" {
		r.wireView(at)
	}
}

// mayHideUnread reports whether a body that could not be decoded may contain something that a rule
// hides. If there are rules for fields, the body may be a message of a type that the rules name. If
// there are rules for JSON, the body may be damaged JSON, unless its bytes have the protobuf wire
// format. The body may also have a type with debug_redact fields. This may be a type that the
// letter names, or one of several types that fit the body about equally well. Patterns do not
// matter here, because they are applied to the bytes.
func (r *reading) mayHideUnread() bool {
	m, body := r.Mask, r.doc.Body
	switch {
	case r.outer.hidden, r.outer.into:
		return true
	case m == revealed:
		return false
	case m != nil && len(m.Fields) > 0:
		return true
	case r.otherSections(body) != "" && (m.hides() || r.mayHideFields()): // it may hold anything, in parts
		return true
	case m != nil && len(m.JSON) > 0 && (r.declaresJSON() || beginsAsJSON(body) || !wireShaped(body, 1000)):
		return true
	case redactedByName(r.named), r.mayHideFramed(body):
		return true
	}
	if r.doc.Ranking.Left > 0 && r.mayHideFields() {
		return true
	}
	if r.Types != nil && r.doc.Ranking.Verdict == Ambiguous {
		return slices.ContainsFunc(r.ranking(body).plausible, redacts)
	}
	return false
}

// unreadableText reports whether a text that could not be decoded may contain something that a rule
// hides. The text may be damaged JSON, or a message that consists only of strings.
func (r *reading) unreadableText() bool {
	m, body := r.Mask, r.doc.Body
	switch {
	case m == revealed:
		return false
	case m != nil && len(m.JSON) > 0 && (r.declaresJSON() || beginsAsJSON(body)):
		return true
	case m != nil && len(m.Fields) > 0:
		registered := slices.ContainsFunc(r.named, func(c candidate) bool { return len(c.defs) > 0 })
		if registered || wireShaped(body, 1000) && (len(r.named) > 0 || len(body) >= minMatched) {
			return true
		}
	}
	return redactedByName(r.named)
}

// beginsAsJSON reports whether b begins like JSON, in any UTF encoding.
func beginsAsJSON(b []byte) bool {
	b = bytes.TrimLeft(b, "\xef\xbb\xbf\xff\xfe\x00 \t\r\n")
	return len(b) > 0 && (b[0] == '{' || b[0] == '[' || b[0] == '"')
}

// minRun is the minimum length in bytes of a text inside a body that could not be decoded. Masks
// are not applied to shorter texts.
const minRun = 4

// maskBinary applies patterns to the texts in a body that could not be decoded.
func (r *reading) maskBinary() {
	doc := r.doc
	if r.Mask == nil || r.Mask.Text == nil {
		return
	}
	if err := r.budget.TakeMemory(int64(len(doc.Body))); err != nil {
		doc.tooLarge(err.Error())
		return
	}
	body, mask := doc.Body, r.Mask
	for from := 0; from < len(body); {
		to := from
		for to < len(body) && body[to] >= ' ' && body[to] != 0x7f {
			_, n := utf8.DecodeRune(body[to:])
			to += n
		}
		if to-from >= minRun {
			_, masked := mask.Text(string(body[from:to]))
			doc.Masked = doc.Masked || masked
		}
		from = max(to, from+1)
	}
}
