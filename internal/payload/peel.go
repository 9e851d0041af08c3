package payload

import (
	"bytes"
	"errors"
	"strings"

	"github.com/deadletteroffice/dlo/internal/budget"
)

const (
	maxLayers   = 3
	threeLayers = "three layers are the most that are peeled"
)

// peel takes transport encodings and envelopes off the body, at most maxLayers of them, and records
// each attempt.
//
// What kombu compressed comes first: see kombu.go. An encoding that the content encoding names
// counts when it can be undone. Without a name the bytes decide:
//
//   - An envelope of JSON counts when the letter, or the envelope around it, says that there is one
//     and all of its members are there: see envelope.go.
//   - gzip, zstd and snappy count when their magic bytes are there and the whole of it unpacks,
//     checksums included. No text begins so.
//   - The prefix of Confluent counts when what follows it decodes: see confluent.go.
//   - base64 counts only when every byte is of one alphabet (standard or URL, padded or not, line
//     ends anywhere), AND what comes out decodes as something: as one of the compressions, as a
//     JSON object or array, as the named type with at least one known field, as printable UTF-8
//     text of 16 bytes or more (8 with padding), as a registered type that Match is sure of, as
//     what is plainly a message of some type, or, when the content type says protobuf, as the wire
//     format. "hello123" is of the alphabet and comes out as noise, so it stays text. A body that
//     is JSON, or reads as the named type without an unknown field, is not looked at further.
//
// Beyond three layers the rest is shown as it is, with a step that says so.
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
			break // what was applied before it cannot be reached by name
		}
	}
	if !r.doc.TooLarge {
		r.peelByLooks()
	}
}

// encodings splits a content encoding into names, last applied first.
func encodings(s string) []string {
	var list []string
	for _, n := range strings.SplitN(s, ",", 16) {
		if n = strings.ToLower(strings.TrimSpace(n)); n != "" {
			n, _ = cut(n, 40)
			list = append([]string{n}, list...)
		}
	}
	return list
}

// toldEncoding is the name of a content encoding, as masks leave it.
func (r *reading) toldEncoding(name string) string {
	return r.Mask.told("content-encoding", r.hints.ContentEncoding, name)
}

// peelNamed undoes one encoding that the letter names.
func (r *reading) peelNamed(name string) bool {
	doc := r.doc
	switch name {
	case "gzip", "x-gzip":
		return r.unpack("gzip", ", as the content encoding says")
	case "deflate", "zlib":
		return r.unpack("deflate", ", as the content encoding says")
	case "zstd", "x-zstd":
		return r.unpack("zstd", ", as the content encoding says")
	case "snappy", "x-snappy", "x-snappy-framed":
		return r.unpack("snappy", ", as the content encoding says")
	case "base64":
		shape := base64Shape(doc.Body)
		if shape.why != "" {
			doc.step(false, "base64, named by the content encoding: "+shape.why)
			return false
		}
		out := r.base64(shape.text)
		return out != nil && r.layer(shape.layer(), out, ", as the content encoding says")
	case "identity", "utf-8", "utf8", "us-ascii", "binary", "8bit", "7bit", "none": // .NET and Python clients put the character set here
		return true
	}
	doc.step(false, "content encoding "+visible(r.toldEncoding(name), "")+": not known here")
	return false
}

// peelByLooks undoes what the bytes themselves, or an envelope, show to be wrapped.
func (r *reading) peelByLooks() {
	doc := r.doc
	for len(doc.Body) > 0 && r.peelOnce() {
	}
	// An envelope that is said to be there is looked for in each layer; only at the end it is known
	// to be in none.
	if c := r.envelope(); c.name != "" && !doc.TooLarge {
		if isJSON, why := r.isJSON(doc.Body); !isJSON {
			doc.step(false, c.name+", "+c.by+": "+why)
		}
	}
}

// peelOnce takes one layer off, and says whether it did.
func (r *reading) peelOnce() bool {
	doc := r.doc
	full := len(doc.Layers) == maxLayers
	if isJSON, _ := r.isJSON(doc.Body); isJSON {
		c := r.envelope()
		if c.name == "" {
			return false
		}
		if full {
			doc.step(false, c.name+": "+threeLayers)
			return false
		}
		return r.unfold(c)
	}
	if r.readsAsNamed(doc.Body, true) {
		return false
	}
	if name := compression(doc.Body); name != "" {
		if full {
			doc.step(false, name+": "+threeLayers)
			return false
		}
		return r.unpack(name, "")
	}
	if p := confluentPrefix(doc.Body); p.size > 0 {
		switch {
		case !r.confluent(p, doc.Body):
			doc.step(false, "Confluent: the prefix fits, but what follows it does not decode")
		case full:
			doc.step(false, "Confluent: "+threeLayers)
			return false
		default:
			return r.layer(Layer{Name: "Confluent", Detail: p.detail, Before: doc.Body[:p.size]}, doc.Body[p.size:], "")
		}
	}
	shape := base64Shape(doc.Body)
	if shape.why != "" {
		if len(doc.Layers) == 0 {
			doc.step(false, "base64: "+shape.why)
		}
		doc.step(false, "gzip, zstd, snappy: no magic bytes")
		return false
	}
	out := r.worth(shape.text)
	switch {
	case doc.TooLarge:
		return false
	case out == nil:
		doc.step(false, "base64: the characters fit, but what comes out is neither text nor of a known form")
		return false
	case full:
		doc.step(false, "base64: "+threeLayers)
		return false
	}
	return r.layer(shape.layer(), out, "")
}

// layer replaces the body by what came out of it, whose memory is already paid for.
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

// worth decodes base64 text when what comes out is something, and returns nil when it is noise.
func (r *reading) worth(text []byte) []byte {
	// The first bytes settle it for most noise, so that a large body that only looks like base64 is
	// not decoded for nothing.
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
	packed := compression(probe) != ""
	// A message may begin with any byte, so a type is tried on the whole.
	if !maybeText && !maybeJSON && !packed && len(r.named) == 0 && !r.declaresProtobuf() && !(r.mayMatch() && beginsAsMessage(probe, len(text) > len(head)/3*4)) {
		return nil
	}
	out := r.base64(text)
	if out == nil {
		return nil
	}
	isJSON, _ := r.isJSON(out)
	if isJSON || packed || r.readsAsNamed(out, false) || maybeText && printable(out) || r.confluent(confluentPrefix(out), out) || r.readsAsAny(out) || r.shapedAsDeclared(out) || r.mayMatch() && plainlyMessage(out) {
		return out
	}
	return nil
}

const minPlain = 16 // bytes of what is plainly a message

// plainlyMessage reports whether b is a message of some type, known here or not: it has the wire
// format to its end, low field numbers and a text. Of what is not one, and is decoded as base64
// for a try, hardly any has all of that.
func plainlyMessage(b []byte) bool {
	t := &wireTree{}
	if len(b) < minPlain || printable(b) || !t.read(b, 1000) {
		return false
	}
	texts := 0
	for i := int32(0); int(i) < len(t.nodes); i = t.nodes[i].next {
		n := &t.nodes[i]
		if n.num > 1000 || n.is(nodeLong) {
			return false
		}
		if n.is(nodeText) && n.length >= 4 {
			texts++
		}
	}
	return texts > 0 && !t.cut
}

// shapedAsDeclared reports whether the letter says protobuf and b is of its wire format: that has
// to do where no type here can prove it.
func (r *reading) shapedAsDeclared(b []byte) bool {
	return r.declaresProtobuf() && !printable(b) && wireShaped(b, 1000)
}

// readsAsNamed reports whether b scans as one of the types that are named for the letter, with a
// known field; clean: and without an unknown one.
func (r *reading) readsAsNamed(b []byte, clean bool) bool {
	if len(b) == 0 {
		return false
	}
	for _, c := range r.named {
		for _, def := range c.defs[:min(len(c.defs), maxDefinitions)] {
			s, err := r.scan(b, def)
			if tooLarge := (*budget.TooLargeError)(nil); errors.As(err, &tooLarge) {
				return s.Known > 0 // it is taken for the type until proven otherwise; reading it will say that it is too large
			}
			if err == nil && s.Known > 0 && (!clean || s.Unknown == 0) {
				return true
			}
		}
	}
	return false
}
