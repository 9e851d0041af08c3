// Package payload makes the bodies of letters readable. It removes transport encodings and
// envelopes. It finds out what a body is: protobuf of a known type, JSON, text or bytes. It then
// decodes the body within a budget, and provides the trees, JSON, hex rows and one-line summaries
// that pages, rules and search use. Decoder.Edit writes a person's edit of the JSON back into the
// original bytes and envelopes.
//
// Every body is hostile input, so every function accepts any bytes. Before a decoder runs, a scan
// checks without allocations that the body fits into the budget.
//
// If nothing names the type of a body, the body is matched against all known types: see
// Decoder.Match.
//
// The package does no I/O. Types come from a descriptor.Registry, which other packages fill.
package payload

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// Decoder decodes bodies. The zero value decodes JSON, text and bytes. It keeps no state between
// letters, so several goroutines may use it.
type Decoder struct {
	Types *descriptor.Registry // nil = no protobuf types are known
	// names of headers that may hold the full name of a type, in any case; the first that does
	// counts
	TypeHeaders []string
	Bindings    []deadletter.Binding // the first one that matches a letter is used
	Mask        *Mask                // nil = nothing is masked except fields with debug_redact
	// maximum size in bytes of a body, and of everything that is unpacked from it together; 0 = 16
	// MiB
	MaxBody int64
	// omit the JSON of messages, which takes a quarter of the time; for verdicts and search, which
	// use the tree
	NoJSON bool
}

// budget returns the budget for one letter. If the parameter b is nil, it returns the default
// budget.
func (d *Decoder) budget(b *budget.Budget) *budget.Budget {
	if b != nil {
		return b
	}
	b = budget.NewBudget()
	if d.MaxBody > 0 {
		b.Bytes = d.MaxBody
	}
	return b
}

// Hints contains everything that a letter says about its body. None of it is trusted.
type Hints struct {
	ContentType string // the property content-type, with parameters
	// the property content-encoding: names separated by commas, in the order in which the encodings
	// were applied
	ContentEncoding string
	Compression     string // the header "compression" of kombu
	Type            string // the property type: a full or short name of a type, or any word that the publisher chose
	Queue           string // origin queue, for bindings
	Key             string // routing key, for bindings
	Picked          string // full name of the type that a person picked for this letter or its group; "" = none
	Was             string // full name of the type that the body matched when it was read last; "" = none
	Only            string // full name of the type that all of the newest letters of the queue had; "" = none
	Path            string // of the member of a JSON body that holds this body as base64, for bindings; "" = none
	Crashed         bool   // reading the body has crashed dlo, so it is not decoded again

	// Prior holds, by full type name, how likely each type is before the body is read, from 0 to 1.
	// This number comes from the earlier letters of the queue or the routing key, or from a type
	// that a person picked.
	//
	// If several types can decode the body equally well, a type with a prior of 0.9 or more is
	// chosen. A lower prior only determines the order of these types. A type that cannot decode the
	// body is never used, whatever its prior is.
	Prior map[string]float64

	Headers deadletter.Table // of the letter; an edit checks whether they describe the body

	// the body from which this one was made was hidden because its type is a guess, and so is this
	// one if its type is a guess too
	hidden bool
}

// Decode decodes one body. It always returns a Document and never panics. If nothing can decode the
// body, the Document shows the first bytes in hex, and the reason. Decode uses at most what is left
// of the budget b. If b is nil, the budget is NewBudget() with the limit MaxBody. The Document
// keeps a reference to body, which must not be changed afterwards.
func (d *Decoder) Decode(body []byte, h Hints, b *budget.Budget) (doc *Document) {
	if h.Crashed {
		return d.Bytes(body, h, "dlo died while it was being read, so it is not decoded again")
	}
	b = d.budget(b)
	doc = &Document{Body: body, Size: len(body)}
	// Decoders should not panic. If one does, only the view of this letter is lost. The text of the
	// panic is not shown, because it may quote the body.
	defer func() {
		if recover() != nil {
			doc = d.Bytes(body, h, "a decoder failed on this body (internal error)")
		}
	}()
	switch {
	case len(body) == 0:
		doc.Kind = Empty
		return doc
	case int64(len(body)) > b.Bytes:
		doc.guarded = d.mustHideUndecoded(h)
		doc.tooLarge(fmt.Sprintf("the body has %s, above %s", deadletter.Bytes(len(body)), deadletter.Bytes(int(b.Bytes))))
		return doc
	}
	r := d.reading(doc, h, b)
	r.peel()
	if doc.TooLarge {
		return doc
	}
	r.read()
	doc.Masked = doc.Masked || r.masked
	return doc
}

// Bytes returns a document that shows the bytes of a body without decoding them. The parameter
// "reason" says why the body is not decoded. Bytes is for bodies that crashed a decoder.
func (d *Decoder) Bytes(body []byte, h Hints, reason string) *Document {
	doc := &Document{Kind: Binary, Body: body, Size: len(body), Problem: reason, guarded: d.mustHideUndecoded(h)}
	doc.hideUnread()
	return doc
}

// mustHideUndecoded reports whether a body must be hidden if it cannot be decoded. Nobody can know
// then where in the body a masked value is. The body must be hidden if the mask may hide any part
// of bodies, or if the letter names a type that has fields with debug_redact.
func (d *Decoder) mustHideUndecoded(h Hints) bool {
	return d.Mask.hides() || d.Mask != revealed && redactedByName(d.candidates(h, nil))
}

// reading is the state of decoding one body.
type reading struct {
	*Decoder
	doc      *Document
	hints    Hints             // the hints of the letter; inside an envelope, those of the envelope
	masked   bool              // a part of a removed envelope is masked
	around   *insides          // of the JSON body that holds this one in a member; nil = there is none
	several  string            // "2 gRPC messages", if the body is a stream of messages, which are not decoded
	hideText bool              // the body, if it is a text, is hidden, because of its bytes before they were converted
	outer    spot              // the spot of the body in its envelope
	media    string            // the content type in lower case, without parameters; "" = it is missing or malformed
	params   map[string]string // of the content type
	budget   *budget.Budget
	named    []candidate
	memo     []scanned
	ranked   struct {
		body []byte
		by   Ranking
	}
	json struct {
		body []byte
		ok   bool
		why  string
	}
}

func (d *Decoder) reading(doc *Document, h Hints, b *budget.Budget) *reading {
	r := &reading{Decoder: d, doc: doc, budget: b, memo: make([]scanned, 0, 4)}
	r.useHints(h)
	return r
}

// useHints takes over the hints about the current body. They come from the letter, or from the
// envelope that contains the body. The parameter "innerTypes" holds the type names that only the
// envelope gives.
func (r *reading) useHints(h Hints, innerTypes ...namedType) {
	r.hints = h
	r.media, r.params = mediaType(h.ContentType)
	r.named = r.candidates(h, innerTypes)
	r.doc.guarded = r.doc.guarded || r.Mask.hides() || r.Mask != revealed && redactedByName(r.named)
	for _, n := range slices.Backward(r.named) {
		if n.name != "" {
			r.doc.named = n.name
		}
	}
}

// read finds out what the unwrapped body is, and fills in the document.
func (r *reading) read() {
	doc := r.doc
	if len(doc.Body) == 0 {
		doc.Kind = Empty
		return
	}
	isJSON, why := r.isJSON(doc.Body)
	if !isJSON && r.declaresJSON() { // a single value counts as JSON only if the letter declares JSON
		isJSON, why = looksLikeJSON(doc.Body, true)
	}
	if isJSON && r.declaresJSON() { // the content type and the body agree, so a type name is only a label
		doc.step(true, "JSON, as the content type says")
		r.readJSON()
		return
	}
	if r.several = r.stream(doc.Body); r.several != "" {
		doc.problem("the body is " + r.several + " one after another, and only a body of one message is decoded")
		doc.step(false, "protobuf: "+r.several+" one after another")
		r.readBinary()
		return
	}
	for _, c := range r.named {
		if r.readProtobuf(c) || doc.TooLarge {
			return
		}
	}
	if !isJSON && r.mayMatch() && (r.readMatched() || doc.TooLarge) {
		return
	}
	if len(r.named) == 0 {
		if r.declaresProtobuf() {
			media, _ := cut(visible(r.Mask.maskedPart("content-type", r.hints.ContentType, r.media), ""), 100)
			doc.problem(media + " names no type, and no binding fits")
			doc.step(false, "protobuf: "+doc.Problem)
		} else {
			doc.step(false, "protobuf: no type is named")
		}
	}
	if isJSON {
		doc.step(true, "JSON")
		r.readJSON()
		// A publisher may use the type property for a word of its own, which is not the name of a
		// protobuf type, or write the JSON of the type that a header names. If the body is JSON,
		// this is not a problem to report.
		label := func(c candidate) bool { return c.by == deadletter.ReadByProperty || c.by == deadletter.ReadByHeader }
		if len(r.named) == 1 && label(r.named[0]) && !r.declaresProtobuf() {
			doc.Problem = ""
		}
		return
	}
	doc.step(false, "JSON: "+why)
	why = deadletter.NotText(doc.Body)
	if why == "" && doc.Ranking.Verdict == Ambiguous {
		why = "it may as well be a message"
	}
	if why == "" {
		doc.step(true, "text, UTF-8")
		r.readText()
		r.symfony()
		return
	}
	doc.step(false, "text: "+why)
	r.readBinary()
	r.symfony()
}

// mediaType splits a content type without checking it: "application/x; A=b" becomes "application/x"
// and {"a": "b"}. It removes the quotes around values, and skips parameters that it cannot read.
func mediaType(contentType string) (media string, params map[string]string) {
	parts := strings.SplitN(contentType, ";", 32)
	media = strings.ToLower(strings.TrimSpace(parts[0]))
	for _, p := range parts[1:] {
		k, v, ok := strings.Cut(p, "=")
		if !ok {
			continue
		}
		if params == nil {
			params = make(map[string]string)
		}
		k = strings.ToLower(strings.TrimSpace(k))
		if _, twice := params[k]; !twice {
			params[k] = strings.Trim(strings.TrimSpace(v), `"`)
		}
	}
	return media, params
}

func (r *reading) declaresJSON() bool { return isJSONType(r.media) }

// isJSONType reports whether a media type stands for JSON.
func isJSONType(media string) bool {
	return media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json")
}

func (r *reading) declaresProtobuf() bool { return isProtobuf(r.media) }

// isProtobuf reports whether a media type stands for protobuf (RFC 9996 and the names used before
// it).
func isProtobuf(media string) bool {
	switch media {
	case "application/protobuf", "application/x-protobuf", "application/x-protobuffer", "application/vnd.google.protobuf":
		return true
	}
	return strings.HasSuffix(media, "+proto") || strings.HasSuffix(media, "+protobuf")
}
