// Package payload makes the bodies of letters readable: it peels transport encodings and envelopes
// off them, decides what they are (protobuf of a known type, JSON, text or bytes), decodes them
// under a budget, and gives the trees, JSON, hex rows and one-line summaries that pages, rules and
// search use. What people make of that JSON goes back into the bytes and the envelopes that it came
// out of: Decoder.Edit. Every body is hostile input: all functions are total, and a decoder is only
// started on a body that a scan without allocations has found to fit the budget.
//
// A body for which nothing names a type is matched against all known ones; see Decoder.Match.
//
// It does no input or output. Types come out of a descriptor.Registry, which others fill.
package payload

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// Decoder is how bodies are read. The zero value reads JSON, text and bytes. It holds no state of a
// letter, so it may be used concurrently.
type Decoder struct {
	Types    *descriptor.Registry // nil: no protobuf types are known
	Bindings []Binding            // the first that fits a letter counts
	Mask     *Mask                // nil: nothing is masked but the fields with debug_redact
	MaxBody  int64                // most bytes of a body, and of all that is peeled off it together; 0 is 16 MiB
	NoJSON   bool                 // leave the JSON of messages out, which takes a quarter of the time: for verdicts and search, which look at the tree
}

// budget is what one letter may cost: b, or what it may where the caller does not say.
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

// Hints is what a letter says about its body, besides the body. All of it is untrusted.
type Hints struct {
	ContentType     string // property content-type, with parameters
	ContentEncoding string // property content-encoding: names in the order in which they were applied, separated by commas
	Compression     string // header compression, of kombu
	Type            string // property type: a full or short type name, or any other word of the publisher
	Queue           string // the origin queue, and
	Key             string // routing key, for bindings
	Picked          string // full name of the type that a person picked for this letter or its group; "" = none
	Was             string // full name of the type that the body matched when it was read before; "" = none
	Only            string // full name of the type that the last letters of the queue were of, all of them; "" = none
	Crashed         bool   // dlo died of reading it: nothing decodes it again

	// Prior says of full type names how likely they are before the body is looked at, 0 to 1: from
	// what was on this queue or routing key before, or what a person picked. From 0.9 on it decides
	// between types that read the body alike, below that it orders them. It never makes one of a
	// type that does not.
	Prior map[string]float64

	hidden []deadletter.FieldPath // by field numbers: what was hidden in the body that this one was made of, should it be matched too
}

// Decode reads one body. It always returns a Document, whatever the body: at worst one that shows
// the first bytes in hex and says why. It never panics, and never uses more than what is left of b;
// a nil b stands for NewBudget() with MaxBody. The Document keeps a reference to body, which must
// not be changed afterwards.
func (d *Decoder) Decode(body []byte, h Hints, b *budget.Budget) (doc *Document) {
	if h.Crashed {
		return d.Bytes(body, h, "dlo died while it was being read, so it is not decoded again")
	}
	b = d.budget(b)
	doc = &Document{Body: body, Size: len(body)}
	// The decoders are careful and so are we; a defect in one of them must still cost no more than
	// the view of one letter. The panic's text may quote the body, so it is not repeated.
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
		doc.guarded = d.guarded(h)
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

// Bytes returns a body as bytes only, without reading it: why says why. For a body that a decoder
// has died of.
func (d *Decoder) Bytes(body []byte, h Hints, why string) *Document {
	doc := &Document{Kind: Binary, Body: body, Size: len(body), Problem: why, guarded: d.guarded(h)}
	doc.hideUnread()
	return doc
}

// guarded says whether a body must be hidden when it cannot be read: nobody can say where a masked
// value would be. Fields with debug_redact count where the letter names a type that has some.
func (d *Decoder) guarded(h Hints) bool {
	return d.Mask.hides() || d.Mask != revealed && redactedByName(d.candidates(h, nil))
}

// reading is the work on one body.
type reading struct {
	*Decoder
	doc    *Document
	hints  Hints  // of the letter; inside an envelope, what that says
	masked bool   // something in an envelope that was taken off is masked
	outer  spot   // of the body in the envelope that it came out of
	media  string // of the content type, lower case, without parameters; "" when absent or malformed
	budget *budget.Budget
	named  []candidate
	memo   []scanned
	ranked struct {
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
	r := &reading{Decoder: d, doc: doc, budget: b}
	r.heed(h)
	return r
}

// heed takes in what is said of the body as it is now: by the letter, or by the envelope that it
// came out of. Inside are names of types that only the envelope gives.
func (r *reading) heed(h Hints, inside ...namedType) {
	r.hints = h
	r.media, _ = mediaType(h.ContentType)
	r.named = r.candidates(h, inside)
	r.doc.guarded = r.doc.guarded || r.Mask.hides() || r.Mask != revealed && redactedByName(r.named)
	for _, n := range slices.Backward(r.named) {
		if n.name != "" {
			r.doc.Named = n.told
		}
	}
}

// read decides what the peeled body is and fills the document.
func (r *reading) read() {
	doc := r.doc
	if len(doc.Body) == 0 {
		doc.Kind = Empty
		return
	}
	isJSON, why := r.isJSON(doc.Body)
	if !isJSON && r.declaresJSON() { // a lone value is JSON only where it is said to be
		isJSON, why = looksLikeJSON(doc.Body, true)
	}
	if isJSON && r.declaresJSON() { // content type and body agree: a type name is then only a name
		doc.step(true, "JSON, as the content type says")
		r.readJSON()
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
			media, _ := cut(visible(r.Mask.told("content-type", r.hints.ContentType, r.media), ""), 100)
			doc.problem(media + " names no type, and no binding fits")
			doc.step(false, "protobuf: "+doc.Problem)
		} else {
			doc.step(false, "protobuf: no type is named")
		}
	}
	if isJSON {
		doc.step(true, "JSON")
		r.readJSON()
		// A property type that is no protobuf name is the publisher's own word; next to a JSON body
		// it is no problem to report.
		if len(r.named) == 1 && r.named[0].source == sourceProperty && !r.declaresProtobuf() {
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
		return
	}
	doc.step(false, "text: "+why)
	doc.Kind = Binary
	r.readBinary()
}

// mediaType splits a content type without judging it: "application/x; A=b" is "application/x" and
// {"a": "b"}. Quotes around values are taken off; what cannot be read is left out.
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

// isJSONType reports whether a media type is one of JSON's.
func isJSONType(media string) bool {
	return media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json")
}

func (r *reading) declaresProtobuf() bool { return isProtobuf(r.media) }

// isProtobuf reports whether a media type is one of protobuf's (RFC 9996 and the names in use
// before it).
func isProtobuf(media string) bool {
	switch media {
	case "application/protobuf", "application/x-protobuf", "application/x-protobuffer", "application/vnd.google.protobuf":
		return true
	}
	return strings.HasSuffix(media, "+proto") || strings.HasSuffix(media, "+protobuf")
}
