package payload

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// readBinary fills a document whose body nothing could read.
func (r *reading) readBinary() {
	doc := r.doc
	doc.Kind = Binary
	at := r.rootSpot()
	if at.hidden = r.unreadable(); at.hidden {
		doc.Masked, doc.hideAll = true, true
	} else if r.maskBinary(); doc.TooLarge {
		return
	}
	r.wireView(at)
}

// unreadable says whether a body that nothing could read may hold what a rule hides. With rules for
// fields it may be a message of their types; with rules for JSON it may be damaged JSON, unless it
// has the wire format; and it may be of a type that the letter names, or that reads it as well as
// others, which has fields with debug_redact. Patterns look at the bytes themselves.
func (r *reading) unreadable() bool {
	m, body := r.Mask, r.doc.Body
	switch {
	case r.outer.hidden:
		return true
	case m == revealed:
		return false
	case m != nil && len(m.Fields) > 0:
		return true
	case m != nil && len(m.JSON) > 0 && (r.declaresJSON() || beginsAsJSON(body) || !wireShaped(body, 1000)):
		return true
	case redactedByName(r.named):
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

// unreadableText is unreadable for a body that is text: that may be damaged JSON, or a message of
// nothing but texts.
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

// beginsAsJSON reports whether something begins as JSON does, in any of the UTF encodings.
func beginsAsJSON(b []byte) bool {
	b = bytes.TrimLeft(b, "\xef\xbb\xbf\xff\xfe\x00 \t\r\n")
	return len(b) > 0 && (b[0] == '{' || b[0] == '[' || b[0] == '"')
}

// minRun is the shortest run of text in bytes that a mask is asked about.
const minRun = 4

// maskBinary finds what a pattern masks in the text inside of bytes that nothing could decode.
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
	doc.hidden = func(limit int, hide func(from, to int)) {
		for from := 0; from < min(limit, len(body)); {
			to := from
			for to < len(body) && body[to] >= ' ' && body[to] != 0x7f {
				_, n := utf8.DecodeRune(body[to:])
				to += n
			}
			if to-from >= minRun {
				if _, masked := mask.Text(string(body[from:to])); masked {
					hide(from, to)
				}
			}
			from = max(to, from+1)
		}
		maskedRanges(doc.Fields, hide)
	}
	doc.hidden(len(body), func(int, int) { doc.Masked = true })
}
