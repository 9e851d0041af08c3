package payload

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

const (
	maxLayers   = 3
	threeLayers = "three layers are the most that are peeled"
)

// peel removes transport encodings and envelopes from the body, at most maxLayers of them, and
// records each attempt.
//
// kombu's compression comes first: see kombu.go. An encoding named in the content encoding is
// removed if it can be undone. If no encoding is named, the bytes decide:
//
//   - A JSON envelope is removed if the letter or the enclosing envelope declares it and all of its
//     members exist: see envelope.go.
//   - gzip, zstd and snappy are removed if the magic bytes are present and everything unpacks,
//     checksums included. No text begins with these bytes.
//   - A frame is removed if its length fits and the bytes in it can be decoded: see frames.go.
//   - base64 is removed only if every byte belongs to one alphabet and the result is meaningful.
//     The alphabet is standard or URL, with or without padding, with line ends anywhere. The result
//     is meaningful if it is one of the compressions, a JSON object or array, a message of the
//     named type with at least one known field, printable UTF-8 text of at least 16 bytes (8 with
//     padding), a message of a registered type of which Match is sure, or plainly a message of some
//     type. If the content type says protobuf, the wire format alone is enough. "hello123" uses
//     only the alphabet but decodes to noise, so it stays text. A body that is JSON, or that
//     decodes as the named type without an unknown field, is not checked for base64.
//
// After three layers, the rest is shown unchanged, and a step says so.
func (r *reading) peel() {
	if r.peelKombu(); r.doc.TooLarge {
		return
	}
	for _, name := range encodings(r.hints.ContentEncoding) {
		if len(r.doc.Layers) == maxLayers {
			r.doc.step(false, visible(r.toldEncoding(name), "")+": "+threeLayers)
			return
		}
		if !r.peelNamed(name) {
			break // the encodings that were applied before this one cannot be reached
		}
	}
	if !r.doc.TooLarge {
		r.peelByLooks()
	}
}

// encodings splits a content encoding into names. The encoding that was applied last comes first.
// Spring puts its compression before the charset, with ":" between them (before 2.2) or ", ".
func encodings(s string) []string {
	var list []string
	isDelimiter := func(c rune) bool { return c == ',' || c == ':' || c == ';' || c == ' ' }
	for _, n := range strings.FieldsFunc(deadletter.Cut(s, 1000), isDelimiter) {
		n, _ = cut(strings.ToLower(n), 40)
		list = append(list, n)
	}
	if !strings.Contains(s, ":") {
		slices.Reverse(list)
	}
	return list
}

// toldEncoding returns the name of a content encoding after masking.
func (r *reading) toldEncoding(name string) string {
	return r.Mask.maskedPart("content-encoding", r.hints.ContentEncoding, name)
}

// peelNamed undoes the encoding with the given name. The name comes from the content encoding of
// the letter.
func (r *reading) peelNamed(name string) bool {
	const how = ", as the content encoding says"
	doc := r.doc
	switch name {
	case "gzip", "x-gzip":
		return r.unpack("gzip", how)
	case "deflate", "zlib":
		return r.unpack("deflate", how)
	case "zstd", "x-zstd":
		return r.unpack("zstd", how)
	case "snappy", "x-snappy", "x-snappy-framed":
		return r.unpack("snappy", how)
	case "base64":
		shape := base64Shape(doc.Body)
		if shape.why != "" {
			doc.step(false, "base64, named by the content encoding: "+shape.why)
			return false
		}
		out := r.base64(shape.text)
		return out != nil && r.layer(shape.layer(), out, how)
	case "identity", "binary", "8bit", "7bit", "none", "utf-8", "utf8":
		return true
	}
	if charsetNamed(name, nil).enc != nil { // Spring, .NET and Python clients put the charset here
		return true
	}
	doc.step(false, "content encoding "+visible(r.toldEncoding(name), "")+": not known here")
	return false
}

// peelByLooks removes layers of the body: those that dlo recognises by their bytes, and the
// envelopes that the letter declares.
func (r *reading) peelByLooks() {
	doc := r.doc
	for len(doc.Body) > 0 && r.peelOnce() {
	}
	// A declared envelope may be in any layer. Only after the last layer is it certain that no layer
	// contains the envelope.
	if c := r.envelope(); c.name != "" && !doc.TooLarge {
		if isJSON, why := r.isJSON(doc.Body); !isJSON {
			doc.step(false, c.name+", "+c.by+": "+why)
		}
	}
}

// peelOnce removes one layer, and reports whether it did.
func (r *reading) peelOnce() bool {
	doc := r.doc
	if len(doc.Layers) < maxLayers && r.convert() {
		return true
	}
	if doc.TooLarge {
		return false
	}
	if isJSON, _ := r.isJSON(doc.Body); isJSON {
		c := r.envelope()
		if c.name == "" {
			return false
		}
		return r.hasRoom(c.name) && r.unfold(c)
	}
	if r.readsAsNamed(doc.Body, true) {
		return false
	}
	if name := compression(doc.Body); name != "" {
		return r.hasRoom(name) && r.unpack(name, "")
	}
	if f, ok := r.readFrame(doc.Body, maxLayers-len(doc.Layers)); ok {
		l := Layer{Name: f.name, Detail: f.detail, Before: f.head, newHead: f.newHead, text: f.holds == holdsText}
		return r.hasRoom(f.name) && r.layer(l, f.content, "")
	}
	shape := base64Shape(doc.Body)
	if shape.why != "" {
		if len(doc.Layers) == 0 {
			doc.step(false, "base64: "+shape.why)
		}
		doc.step(false, "gzip, zstd, snappy: no magic bytes")
		return false
	}
	out := r.decodeIfMeaningful(shape.text)
	switch {
	case doc.TooLarge:
		return false
	case out == nil:
		doc.step(false, "base64: the characters fit, but what comes out is neither text nor of a known form")
		return false
	}
	return r.hasRoom("base64") && r.layer(shape.layer(), out, "")
}

// hasRoom reports whether one more layer may be removed. If not, a step says so.
func (r *reading) hasRoom(name string) bool {
	full := len(r.doc.Layers) == maxLayers
	if full {
		r.doc.step(false, name+": "+threeLayers)
	}
	return !full
}

// layer replaces the body with its unpacked content, and records the layer that was removed. The
// budget has already been charged for the memory of the content.
func (r *reading) layer(l Layer, out []byte, how string) bool {
	doc := r.doc
	text := l.Name
	if l.Detail != "" {
		text += ", " + l.Detail
	}
	if err := r.budget.TakeBytes(int64(len(out))); err != nil {
		doc.step(false, text+": "+err.Error())
		doc.tooLarge(err.Error())
		return false
	}
	l.Bytes, l.outer = len(out), doc.Body
	doc.Body = out
	doc.Layers = append(doc.Layers, l)
	doc.step(true, text+how)
	return true
}

// decodeIfMeaningful decodes base64 text if the result is something that people send: text, JSON,
// compressed data or a message. If the result is noise, it returns nil.
func (r *reading) decodeIfMeaningful(text []byte) []byte {
	// First, only the beginning of the text is decoded, because this is enough to detect most
	// noise. Therefore, a large body that only looks like base64 is not decoded as a whole.
	var head [768]byte
	n := decodeBase64(head[:], text[:min(len(text), len(head)/3*4)])
	if n < 0 {
		return nil
	}
	probe := head[:n]
	padded := text[len(text)-1] == '='
	maybeText := (n >= 16 || n >= 8 && padded) && printable(trimPartialRune(probe))
	first := bytes.Trim(probe, asciiSpace)
	maybeJSON := len(first) > 0 && (first[0] == '{' || first[0] == '[')
	packed := compression(probe) != "" || isPHPEnvelope(probe)
	// The text is decoded from base64 only if the result may be useful. A message can begin with
	// any byte, so its first bytes do not show its type. If a type is named or protobuf is
	// declared, the whole text is decoded. If the body may be matched against the registered types,
	// the whole text is decoded if its first bytes have the wire format.
	if !maybeText && !maybeJSON && !packed && len(r.named) == 0 && !r.declaresProtobuf() &&
		!(r.mayMatch() && (beginsAsMessage(probe, len(text) > len(head)/3*4) || beginsAsFrame(probe, text))) {
		return nil
	}
	out := r.base64(text)
	if out == nil {
		return nil
	}
	isJSON, _ := r.isJSON(out)
	if isJSON || packed || r.readsAsNamed(out, false) || maybeText && printable(out) || r.readsAsAny(out) ||
		r.shapedAsDeclared(out) || r.mayMatch() && plainlyMessage(out) || r.stream(out) != "" {
		return out
	}
	if _, framed := r.readFrame(out, maxLayers-len(r.doc.Layers)-1); framed {
		return out
	}
	return nil
}

const minPlain = 16 // in bytes; a shorter body is never plainly a message

// plainlyMessage reports whether b is clearly a message of some type, registered or not. It has the
// wire format to its end, low field numbers and a text. Other data hardly ever has all of these
// properties after base64 decoding.
func plainlyMessage(b []byte) bool {
	t := &wireTree{}
	if len(b) < minPlain || printable(b) || !t.read(b, 1000) {
		return false
	}
	texts := 0
	for i := int32(0); int(i) < len(t.nodes); i = t.nodes[i].next {
		n := &t.nodes[i]
		if n.num > 1000 || n.hasFlag(nodeLong) {
			return false
		}
		if n.hasFlag(nodeText) && n.length >= 4 {
			texts++
		}
	}
	return texts > 0 && !t.cut
}

// shapedAsDeclared reports whether b may be the protobuf message that the letter declares. The
// letter must declare protobuf, and b must have the wire format and must not be printable text. If
// no registered type fits b, dlo relies on this check alone.
func (r *reading) shapedAsDeclared(b []byte) bool {
	return r.declaresProtobuf() && !printable(b) && wireShaped(b, 1000)
}

// readsAsNamed reports whether b can be scanned as a type that the letter names. The scan must find
// at least one known field. If the parameter "noUnknown" is true, b must also have no unknown
// field.
func (r *reading) readsAsNamed(b []byte, noUnknown bool) bool {
	return slices.ContainsFunc(r.named, func(c candidate) bool { return r.readsAs(b, c.defs, noUnknown) })
}

// readsAs is readsAsNamed for the given definitions of a type.
func (r *reading) readsAs(b []byte, defs []*descriptor.Type, noUnknown bool) bool {
	if len(b) == 0 {
		return false
	}
	for _, def := range defs[:min(len(defs), descriptor.MaxDefinitions)] {
		s, err := r.scan(b, def)
		if err == nil && s.Known > 0 && (!noUnknown || s.Unknown == 0) {
			return true
		}
		if err == nil {
			continue
		}
		if tooLarge := (*budget.TooLargeError)(nil); errors.As(err, &tooLarge) {
			return s.Known > 0 // it has this type for now; reading it will report that it is too large
		}
	}
	return false
}
