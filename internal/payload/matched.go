package payload

import (
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// mayMatch reports whether the body of a letter is matched against the registered types. It is not
// matched if the letter or a binding names a type, even one that cannot be used. A match would then
// be a wrong answer that looks certain. A type property such as "user.created" does not name a
// type.
func (r *reading) mayMatch() bool {
	if r.Types == nil {
		return false
	}
	for _, c := range r.named {
		if c.final || c.others || namesType(c.name) {
			return false
		}
	}
	return true
}

// namesType reports whether a word is written like the name of a type: "OrderPlaced",
// "acme.v1.OrderPlaced".
func namesType(name string) bool {
	full := protoreflect.FullName(name)
	if !full.IsValid() {
		return false
	}
	first := full.Name()[0]
	return 'A' <= first && first <= 'Z'
}

// ranking returns the result of Match for a body of at least one byte. It caches the result,
// because dlo needs it when it looks for layers of the body and when it decodes the body.
func (r *reading) ranking(body []byte) *Ranking {
	if m := &r.ranked; len(m.body) != len(body) || &m.body[0] != &body[0] {
		m.body, m.by = body, r.Match(body, r.hints, r.budget)
	}
	return &r.ranked.by
}

// readsAsAny reports whether b is certainly a message of a registered type. It may be unclear which
// of the registered types this is.
func (r *reading) readsAsAny(b []byte) bool {
	return len(b) > 0 && r.mayMatch() && (r.ranking(b).Enough || r.knownBefore(b) || r.drifted(b))
}

// readMatched compares the body with the registered types. If one of them matches, readMatched
// decodes the body as this type and fills in the document. Otherwise, the document lists the types
// that fit best.
func (r *reading) readMatched() bool {
	doc := r.doc
	by := r.ranking(doc.Body)
	if by.Types == 0 {
		return false // the body was not compared
	}
	doc.Ranking = *by
	// The only type that the earlier letters of the queue had comes first, even if another type knows
	// all fields of the body: with thousands of registered types, one of them often fits by chance.
	if by.drifted && r.readAs(r.hints.Only, "what the letters of its queue are") || doc.TooLarge {
		return !doc.TooLarge
	}
	if by.Verdict == Matched {
		return r.readAs(by.Matches[0].Type, fmt.Sprintf(
			"matching against %s, score %.2f", deadletter.Plural(by.Types, "type", "types"), by.Matches[0].Score,
		))
	}
	// an old letter stays readable after its set has changed
	if by.Verdict == Unknown && r.knownBefore(doc.Body) && r.readAs(r.hints.Was, "what it matched before") {
		return true
	}
	text := "protobuf: matched against " + deadletter.Plural(by.Types, "type", "types") + ": " + by.Why
	if by.Verdict == Unknown && len(by.Matches) > 0 {
		var near []string
		for _, m := range by.Matches[:min(3, len(by.Matches))] {
			near = append(near, fmt.Sprintf("%s %.2f", m.Type, m.Score))
		}
		text += "; nearest: " + strings.Join(near, ", ")
	}
	doc.step(false, text)
	return false
}

// readAs decodes the body as a type of which the letter says nothing. If the body is not of this
// type, the document stays as it is, apart from a step.
func (r *reading) readAs(name, source string) bool {
	before := r.doc.Problem
	if r.readProtobuf(r.candidate(name, source, deadletter.ReadByMatch)) {
		return true
	}
	if !r.doc.TooLarge {
		r.doc.Problem = before
	}
	return false
}

// knownBefore reports whether b contains only fields that a certain type knows: the type that the
// body matched when it was read before. It is enough if one version of this type knows all of these
// fields.
func (r *reading) knownBefore(b []byte) bool {
	if r.hints.Was == "" {
		return false
	}
	defs, _ := r.Types.Lookup(r.hints.Was)
	return r.readsAs(b, defs, true)
}

// beginsAsMessage reports whether the first bytes of a body have the wire format, as far as their
// fields are complete. The parameter "truncated" is true if further bytes follow.
func beginsAsMessage(b []byte, truncated bool) bool {
	for len(b) > 0 {
		num, _, n := protowire.ConsumeField(b)
		if n < 0 {
			return truncated && protowire.ParseError(n) == io.ErrUnexpectedEOF
		}
		if num > protowire.MaxValidNumber {
			return false
		}
		b = b[n:]
	}
	return true
}
