package payload

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
	"google.golang.org/protobuf/encoding/protowire"
)

// A frame is a head of a few bytes before a message, and nothing after it. Most heads hold the
// length of the message.
type frame struct {
	name string
	// read splits a body into its head and its content. It returns false unless all bytes of the
	// body fit the frame.
	read func(body []byte) (framed, bool)
	// next returns the first message of a body of several frames, and what follows it; nil = there
	// are no such bodies
	next func(body []byte) (message, rest []byte, ok bool)
}

var frames = []frame{
	{"AMQP 1.0", readSection, nil},
	{"gRPC", readGRPC, nextGRPC},
	{"Confluent", readConfluent, nextConfluent},
	{"length-delimited", readDelimited, nextDelimited},
}

// framed is a body in a frame.
type framed struct {
	name, detail string
	head         []byte // the bytes before the content
	content      []byte
	newHead      func(n int) []byte // makes the head for a content of n bytes; nil = the head stays
	holds        contents
}

// contents says what a frame may hold.
type contents int

const (
	holdsAnything contents = iota // messages, JSON and compressed data
	holdsText                     // the same, in UTF-8
	holdsMessages
	holdsJSON
	holdsCompressed
)

// readGRPC reads a gRPC frame: a flag, which is 1 if the message is compressed, and the length of
// the message in 4 big-endian bytes (gRPC over HTTP/2, "Length-Prefixed-Message").
func readGRPC(b []byte) (framed, bool) {
	content, rest, ok := nextGRPC(b)
	if !ok || len(rest) > 0 {
		return framed{}, false
	}
	f := framed{head: b[:grpcHeader], content: content}
	if b[0] == 1 {
		f.holds = holdsCompressed
	}
	f.newHead = func(n int) []byte { return binary.BigEndian.AppendUint32([]byte{b[0]}, uint32(n)) }
	return f, true
}

const grpcHeader = 5

func nextGRPC(b []byte) (message, rest []byte, ok bool) {
	if len(b) < grpcHeader || b[0] > 1 {
		return nil, nil, false
	}
	return split(b[grpcHeader:], uint64(binary.BigEndian.Uint32(b[1:])))
}

// readDelimited reads a message after its length as a varint, as writeDelimitedTo of the protobuf
// libraries writes it.
func readDelimited(b []byte) (framed, bool) {
	content, rest, ok := nextDelimited(b)
	if !ok || len(rest) > 0 {
		return framed{}, false
	}
	newHead := func(n int) []byte { return protowire.AppendVarint(nil, uint64(n)) }
	return framed{head: b[:len(b)-len(content)], content: content, newHead: newHead}, true
}

func nextDelimited(b []byte) (message, rest []byte, ok bool) {
	size, n := protowire.ConsumeVarint(b)
	if n < 0 || n != protowire.SizeVarint(size) {
		return nil, nil, false
	}
	return split(b[n:], size)
}

func split(b []byte, at uint64) (before, after []byte, ok bool) {
	if at > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:at], b[at:], true
}

// stream splits a body into frames. It returns their number, the first message that is not empty,
// and whether the frames fill the body.
func (f *frame) stream(body []byte) (n int, first []byte, whole bool) {
	for rest := body; f.next != nil; n++ {
		message, after, ok := f.next(rest)
		if !ok {
			return n, first, len(rest) == 0
		}
		if rest = after; len(first) == 0 {
			first = message
		}
	}
	return n, first, false
}

const maxCompared = 16 // maximum number of messages of a stream that are compared with a type

// stream says how many messages a body holds if it is a stream of them, and "" otherwise. Without
// this check, it may be read as one message, with values in other fields than those that the masks
// hide. All messages must fit the type that the letter names. If it names none, the first one must
// fit a registered type.
func (r *reading) stream(body []byte) string {
	for _, f := range frames {
		n, first, whole := f.stream(body)
		if n < 2 || !whole || !wireShaped(first, 1000) || len(r.named) == 0 && deadletter.IsText(body) {
			continue
		}
		known := r.readsAsNamed(body, true)
		fits := func(b []byte) bool { return r.readsAsNamed(b, known) }
		if !fits(first) {
			if !r.mayMatch() || r.ranking(first).Verdict == Unknown && !r.matches(first) || r.matchesWhole(body) {
				continue
			}
			fits = func(b []byte) bool { return wireShaped(b, 1000) }
		}
		rest, ok := body, true
		for i := 0; i < maxCompared && ok && len(rest) > 0; i++ {
			var message []byte
			message, rest, _ = f.next(rest)
			ok = len(message) == 0 || fits(message)
		}
		if ok {
			return deadletter.Count(n) + " " + f.name + " messages"
		}
	}
	return ""
}

// beginsFramed reports whether the body begins with a frame around a message of the given type,
// which knows all of it. What follows is no frame. Read as one message, the values are in other
// fields.
func (r *reading) beginsFramed(def *descriptor.Type) bool {
	message, rest, ok := nextDelimited(r.doc.Body)
	return ok && len(rest) > 0 && r.readsAs(message, []*descriptor.Type{def}, true)
}

// mayHideFramed reports whether a body that could not be decoded begins with a frame around a
// message that may hide anything.
func (r *reading) mayHideFramed(body []byte) bool {
	return r.mayMatch() && slices.ContainsFunc(frames, func(f frame) bool {
		_, first, _ := f.stream(body)
		return wireShaped(first, 1000) && r.mayHideAny(first)
	})
}

// readFrame returns the frame around a body, if there is one. The head alone proves nothing,
// because other data may begin with the same bytes. Therefore the content decides: see fits.
// The parameter "layers" is the number of layers that may still be removed.
func (r *reading) readFrame(body []byte, layers int) (framed, bool) {
	for _, kind := range frames {
		f, ok := kind.read(body)
		if !ok && r.otherSections(body) != "" {
			return framed{}, false
		} else if !ok {
			continue
		}
		f.name = kind.name
		if r.hints.Type == amqpType && f.name == "AMQP 1.0" || r.fits(body, f, layers) {
			return f, true
		}
		why := "the prefix fits, but what follows it does not decode"
		if len(f.content) > 0 && r.mayMatch() && r.ranking(f.content).Verdict == Ambiguous {
			// nobody knows which of the types it is, so it is hidden if any of them hides anything
			r.outer.hidden = r.outer.hidden || r.mayHideAny(f.content)
			why = "the prefix fits, but several types fit what follows it"
		}
		r.doc.step(false, f.name+": "+why)
	}
	return framed{}, false
}

// fits reports whether the content of a frame proves that the frame is one. The content must be a
// JSON object or list, compressed data, another frame, or a message. A message must have a type
// that the letter names or that was read in its queue before, or exactly one registered type must
// fit. If the letter declares protobuf, the wire format is enough.
func (r *reading) fits(body []byte, f framed, layers int) bool {
	rest := f.content
	if isJSON, _ := looksLikeJSON(rest, false); isJSON {
		byChance := f.name == "length-delimited" && deadletter.IsText(body)
		return !byChance && (f.holds <= holdsText || f.holds == holdsJSON)
	}
	switch {
	case f.holds == holdsJSON:
		return false
	case f.holds == holdsCompressed:
		return compression(rest) != ""
	case f.name == "length-delimited" && r.readsUnframed(body, rest):
		return false
	case f.holds != holdsMessages && compression(rest) != "":
		return true
	case r.readsAsNamed(rest, false), r.declaresProtobuf() && len(rest) == 0, r.shapedAsDeclared(rest):
		return true
	case r.mayMatch() && r.matches(rest):
		return true
	case layers <= 1:
		return false
	}
	_, nested := r.readFrame(rest, layers-1)
	return nested
}

// readsUnframed reports whether a body that begins with its length may be something without the
// length: a text, or a message. The head of one or two bytes then has the length by chance.
func (r *reading) readsUnframed(body, rest []byte) bool {
	switch {
	case len(r.named) == 0 && !r.declaresProtobuf() && deadletter.IsText(body):
		return true
	case !wireShaped(body, math.MaxInt):
		return false
	case r.readsAsNamed(body, false):
		return !r.readsAsNamed(rest, true)
	case !r.mayMatch():
		return r.shapedAsDeclared(body)
	}
	return (r.ranking(body).Verdict == Ambiguous || r.matches(body)) && (r.matchesWhole(body) || !r.matchesWhole(rest))
}

// matches reports whether exactly one registered type fits b, which is the type that its queue had
// before or the only one that fits well.
func (r *reading) matches(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	verdict := r.ranking(b).Verdict
	return verdict == Matched || verdict == Unknown && r.knownBefore(b) || r.drifted(b)
}

// matchesWhole reports whether exactly one registered type fits b, and knows all fields of b.
func (r *reading) matchesWhole(b []byte) bool {
	by := r.ranking(b)
	if by.Verdict != Matched {
		return false
	}
	defs, _ := r.Types.Lookup(by.Matches[0].Type)
	return r.readsAs(b, defs, true)
}

// mayHideAny reports whether a type that fits b may hide anything in it.
func (r *reading) mayHideAny(b []byte) bool {
	if r.Mask == revealed || len(b) == 0 {
		return false
	}
	by := r.ranking(b)
	if by.Left > 0 && r.mayHideFields() {
		return true
	}
	return slices.ContainsFunc(by.plausible, r.mayHide)
}

// beginsAsFrame reports whether base64 text may hold a frame. The parameter "probe" holds the first
// of its bytes.
func beginsAsFrame(probe, text []byte) bool {
	size, n := protowire.ConsumeVarint(probe)
	whole := base64.RawStdEncoding.DecodedLen(len(bytes.TrimRight(text, "=")))
	return len(probe) > confluentHeader && (probe[0] <= 1 || n > 0 && size == uint64(whole-n))
}
