package payload

import (
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
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
	if r.readDrifted() || doc.TooLarge {
		return !doc.TooLarge
	}
	if by.Verdict == Matched {
		before := doc.Problem
		c := r.candidate(
			by.Matches[0].Type,
			fmt.Sprintf(
				"matching against %s, score %.2f", deadletter.Plural(by.Types, "type", "types"), by.Matches[0].Score,
			),
			deadletter.ReadByMatch,
		)
		if r.readProtobuf(c) || doc.TooLarge {
			return !doc.TooLarge
		}
		doc.Problem = before
		return false
	}
	if by.Verdict == Unknown && r.readAsBefore() {
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

// readAsBefore is called if no current type fits the body well. If a version of the type that the
// body matched before knows all of the body, readAsBefore turns the document into a message of that
// type. An old letter thus stays readable after its set has changed.
func (r *reading) readAsBefore() bool {
	if !r.knownBefore(r.doc.Body) {
		return false
	}
	before := r.doc.Problem
	if r.readProtobuf(r.candidate(r.hints.Was, "what it matched before", deadletter.ReadByMatch)) {
		return true
	}
	r.doc.Problem = before
	return false
}

// knownBefore reports whether b contains only fields that a certain type knows: the type that the
// body matched when it was read before. It is enough if one version of this type knows all of these
// fields.
func (r *reading) knownBefore(b []byte) bool {
	if r.hints.Was == "" || len(b) == 0 {
		return false
	}
	defs, _ := r.Types.Lookup(r.hints.Was)
	for _, def := range defs[:min(len(defs), descriptor.MaxDefinitions)] {
		if s, err := r.scan(b, def); err == nil && s.Known > 0 && s.Unknown == 0 {
			return true
		}
	}
	return false
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
