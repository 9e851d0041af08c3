package payload

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"strings"
)

const maxLayers = 3

// peel takes transport encodings off the body, at most maxLayers of them, and records each attempt.
//
// An encoding that the content encoding names counts when it can be undone. Without a name the bytes decide:
//
//   - gzip counts when the magic bytes 1f 8b 08 are there and the whole of it unpacks, checksum included. No protobuf message and no text begins so.
//   - base64 counts only when every byte is of one alphabet (standard or URL, padded or not, line ends anywhere), AND what comes out decodes as
//     something: as gzip, as a JSON object or array, as the named type with at least one known field, as printable UTF-8 text of 16 bytes or more (8 with
//     padding), as a registered type that Match is sure of, or, when the content type says protobuf, as the wire format. "hello123" is of the alphabet and comes out as noise, so it stays
//     text. A body that is JSON, or reads as the named type without an unknown field, is not looked at further.
//
// Beyond three layers the rest is shown as it is, with a step that says so.
func (r *reading) peel() {
	for _, name := range encodings(r.hints.ContentEncoding) {
		if len(r.doc.Layers) == maxLayers {
			r.doc.step(false, visible(name, "")+": three layers are the most that are peeled")
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

// peelNamed undoes one encoding that the letter names.
func (r *reading) peelNamed(name string) bool {
	doc := r.doc
	switch name {
	case "gzip", "x-gzip":
		return r.unpack("gzip", ", as the content encoding says")
	case "deflate", "zlib":
		return r.unpack("deflate", ", as the content encoding says")
	case "base64":
		text, detail, why := base64Shape(doc.Body)
		if why != "" {
			doc.step(false, "base64, named by the content encoding: "+why)
			return false
		}
		out := r.base64(text)
		return out != nil && r.layer(Layer{"base64", detail, len(out)}, out, ", as the content encoding says")
	case "identity", "utf-8", "utf8", "us-ascii", "binary", "8bit", "7bit", "none": // .NET and Python clients put the character set here
		return true
	}
	doc.step(false, "content encoding "+visible(name, "")+": not known here")
	return false
}

// peelByLooks undoes what the bytes themselves show to be an encoding.
func (r *reading) peelByLooks() {
	doc := r.doc
	for len(doc.Body) > 0 {
		if ok, _ := r.isJSON(doc.Body); ok {
			return
		}
		if r.readsAsNamed(doc.Body, true) {
			return
		}
		full := len(doc.Layers) == maxLayers
		if bytes.HasPrefix(doc.Body, gzipMagic) {
			if full {
				doc.step(false, "gzip: three layers are the most that are peeled")
				return
			}
			if !r.unpack("gzip", "") {
				return
			}
			continue
		}
		text, detail, why := base64Shape(doc.Body)
		if why != "" {
			if len(doc.Layers) == 0 {
				doc.step(false, "base64: "+why)
			}
			doc.step(false, "gzip: no magic bytes")
			return
		}
		out := r.worth(text)
		switch {
		case doc.TooLarge:
			return
		case out == nil:
			doc.step(false, "base64: the characters fit, but what comes out is neither text nor of a known form")
			return
		case full:
			doc.step(false, "base64: three layers are the most that are peeled")
			return
		case !r.layer(Layer{"base64", detail, len(out)}, out, ""):
			return
		}
	}
}

// layer replaces the body by what came out of it, whose memory is already paid for.
func (r *reading) layer(l Layer, out []byte, how string) bool {
	doc := r.doc
	text := l.Name
	if l.Detail != "" {
		text += ", " + l.Detail
	}
	if err := r.budget.takeBytes(int64(len(out))); err != nil {
		doc.step(false, text+": "+err.Error())
		doc.tooLarge(err.Error())
		return false
	}
	doc.Body = out
	doc.Layers = append(doc.Layers, l)
	doc.step(true, text+how)
	return true
}

// worth decodes base64 text when what comes out is something, and returns nil when it is noise.
func (r *reading) worth(text []byte) []byte {
	// The first bytes settle it for most noise, so that a large body that only looks like base64 is not decoded for nothing.
	var head [768]byte
	n := decodeBase64(head[:], text[:min(len(text), len(head)/3*4)])
	if n < 0 {
		return nil
	}
	probe := head[:n]
	padded := text[len(text)-1] == '='
	maybeText := (n >= 16 || n >= 8 && padded) && printable(trimPartialRune(probe))
	first := trimSpace(probe)
	maybeJSON := len(first) > 0 && (first[0] == '{' || first[0] == '[')
	isGzip := bytes.HasPrefix(probe, gzipMagic)
	// A message may begin with any byte, so a type is tried on the whole.
	if !maybeText && !maybeJSON && !isGzip && len(r.named) == 0 && !r.declaresProtobuf() && !(r.mayMatch() && beginsAsMessage(probe, len(text) > len(head)/3*4)) {
		return nil
	}
	out := r.base64(text)
	if out == nil {
		return nil
	}
	if ok, _ := r.isJSON(out); ok || isGzip {
		return out
	}
	if r.readsAsNamed(out, false) || maybeText && printable(out) || r.readsAsAny(out) {
		return out
	}
	// The letter says protobuf, but no type here can prove it: the wire format has to do.
	if r.declaresProtobuf() && !printable(out) && wireShaped(out, 1000) {
		return out
	}
	return nil
}

// readsAsNamed reports whether b scans as one of the types that are named for the letter, with a known field; clean: and without an unknown one.
func (r *reading) readsAsNamed(b []byte, clean bool) bool {
	if len(b) == 0 {
		return false
	}
	for _, c := range r.named {
		for _, def := range c.defs[:min(len(c.defs), maxDefinitions)] {
			s, err := r.scan(b, def)
			if tooLarge := (*tooLargeError)(nil); errors.As(err, &tooLarge) {
				return s.known > 0 // it is taken for the type until proven otherwise; reading it will say that it is too large
			}
			if err == nil && s.known > 0 && (!clean || s.unknown == 0) {
				return true
			}
		}
	}
	return false
}

var gzipMagic = []byte{0x1f, 0x8b, 0x08}

// unpack undoes gzip or deflate (zlib, or bare as some clients send it).
func (r *reading) unpack(name, how string) bool {
	doc := r.doc
	out, err := inflate(name, doc.Body, r.budget)
	if tooLarge := (*tooLargeError)(nil); errors.As(err, &tooLarge) {
		doc.step(false, name+": "+tooLarge.what)
		doc.tooLarge(tooLarge.what)
		return false
	}
	if err != nil {
		doc.step(false, name+": "+err.Error())
		return false
	}
	return r.layer(Layer{Name: name, Bytes: len(out)}, out, how)
}

// inflate returns the whole output, or an error without any. A buffer is filled in steps that double, so a lie about the size costs at most
// twice the true size, and the budget is asked before each step.
func inflate(name string, b []byte, budget *Budget) ([]byte, error) {
	var z io.Reader
	switch name {
	case "gzip":
		if !bytes.HasPrefix(b, gzipMagic) {
			return nil, errors.New("no magic bytes")
		}
		g, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, fmt.Errorf("the header is damaged")
		}
		z = g
	default:
		if f, err := zlib.NewReader(bytes.NewReader(b)); err == nil {
			z = f
		} else {
			z = flate.NewReader(bytes.NewReader(b))
		}
	}
	var out []byte
	for size := int64(4*len(b) + 512); ; size = 2 * int64(cap(out)) {
		spare := budget.spareBytes()
		if size = min(size, spare); size <= int64(len(out)) {
			return nil, &tooLargeError{"more than " + bytesText(int(budget.Bytes)) + " when unpacked"}
		}
		if err := budget.takeMemory(size); err != nil {
			return nil, err
		}
		out = append(make([]byte, 0, size), out...)
		for len(out) < cap(out) {
			n, err := z.Read(out[len(out):cap(out)])
			out = out[:len(out)+n]
			if err == io.EOF {
				return out, nil
			}
			if err != nil {
				return nil, errors.New("it does not unpack: damaged or incomplete")
			}
		}
	}
}
