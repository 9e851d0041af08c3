package view

import (
	"context"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// TypedQueue is a queue with the types of its letters.
type TypedQueue struct {
	deadletter.Origin
	Letters   int
	Unread    int
	Unmatched int         // letters for which no type was found
	Types     []TypeCount // the type with the most letters comes first
	// how the letters of the queue were decoded; the most frequent way comes first
	By         []deadletter.ReadCount
	Bound      *deadletter.Pick    // the first matching binding made by a person
	Configured *deadletter.Binding // the first matching binding from the configuration
	Exact      bool                // Bound applies to this queue alone, with any routing key
}

// TypeCount is the number of letters of one type.
type TypeCount struct {
	Type    string
	Letters int
}

// ofTotal returns words for the total number of letters. The page shows which share of this total
// was decoded.
func (q TypedQueue) ofTotal() string {
	if q.Unread > 0 {
		return " of the " + LetterCount(q.read()) + " read by this version could be decoded"
	}
	return " of " + Number(q.read(), "stored letter decodes", "stored letters decode")
}

// unread returns a sentence with the number of letters that have not been read yet. It returns ""
// if all have been read.
func (q TypedQueue) unread() string {
	if q.Unread == 0 {
		return ""
	}
	return Number(q.Unread, "letter has", "letters have") +
		" not been read by this version yet, so it is unknown how they decode."
}

// readingKinds are the ways in which pages count how letters were decoded.
var readingKinds = []string{
	"matched one type", "JSON and text", "ambiguous", "with no matching schema", "too large or undecodable",
}

// readingKind returns the index of the way among readingKinds.
func readingKind(r deadletter.Reading) int {
	switch {
	case r.Typed():
		return 0
	case r.Readable():
		return 1
	case r == deadletter.ReadAmbiguous:
		return 2
	case r == deadletter.ReadUnknown:
		return 3
	}
	return 4
}

// howDecoded says how many letters were decoded in which way.
func (q TypedQueue) howDecoded() string {
	counts := make([]int, len(readingKinds))
	for _, c := range q.By {
		counts[readingKind(c.Reading)] += c.Letters
	}
	var parts []string
	for i, n := range counts {
		if n > 0 {
			parts = append(parts, Count(n)+" "+readingKinds[i])
		}
	}
	return strings.Join(parts, ", ")
}

// rereadingWords returns a sentence with the number of letters that dlo still has to read again.
func rereadingWords(a deadletter.RereadProgress) string {
	text := Count(a.Left) + " of " + LetterCount(a.Total) + " left to read again"
	if a.Total == 0 { // the letters are not listed yet
		text = "Letters to be read again are being listed"
	}
	return text + "; " + Number(a.Changed, "was", "were") + " found to be something else."
}

func (q TypedQueue) count(r deadletter.Reading) int {
	n := 0
	for _, c := range q.By {
		if c.Reading == r {
			n += c.Letters
		}
	}
	return n
}

// read returns the number of letters of a queue that this version of dlo has tried to decode, and
// decoded returns the number of letters that were decoded to something that people can read.
func (q TypedQueue) read() int { return q.Letters - q.Unread }

func (q TypedQueue) decoded() int {
	n := 0
	for _, r := range deadletter.Readings {
		if r.Readable() {
			n += q.count(r)
		}
	}
	return n
}

// share returns the share of the letters of a queue that were decoded. It returns "unknown" if none
// was read.
func (q TypedQueue) share() string {
	if q.read() == 0 {
		return "unknown"
	}
	return Percent(q.decoded(), q.read())
}

func (q TypedQueue) isBad() bool { return q.read() > 0 && q.decoded() == 0 }

// plainType describes the letters of a queue without types. The tone is "bad" if their format is
// unknown.
func (q TypedQueue) plainType() (text, tone string) {
	switch {
	case q.read() == 0:
		return "not read yet", "faint"
	case q.count(deadletter.ReadAsJSON) > 0:
		return "JSON", "dim"
	case q.count(deadletter.ReadAsText) > 0:
		return "text", "dim"
	case q.count(deadletter.ReadEmpty) > 0:
		return "empty", "dim"
	}
	return "none", "bad"
}

// typeSource describes how dlo found the types of the letters in a queue, for example by a binding.
// A present binding comes first. The other ways follow, the most frequent one first.
func (q TypedQueue) typeSource(ctx context.Context) []Span {
	var parts [][]Span
	add := func(spans ...Span) { parts = append(parts, spans) }
	bound := q.Bound != nil || q.Configured != nil
	if q.Bound != nil {
		add(boundBy("bound by "+person(ctx, q.Bound.By), q.Bound.Queue, q.Bound.Key, q.Queue)...)
	} else if bound {
		add(boundBy("configuration", q.Configured.Queue, q.Configured.Key, q.Queue)...)
	}
	seen := map[deadletter.Reading]bool{}
	for _, c := range q.By {
		if seen[c.Reading] {
			continue
		}
		seen[c.Reading] = true
		switch c.Reading {
		case deadletter.ReadByContentType:
			add(Span{Text: "content type"})
		case deadletter.ReadByEnvelope:
			add(Span{Text: "envelope"})
		case deadletter.ReadByProperty:
			add(Span{Text: "property "}, Span{Text: "type", Code: true})
		case deadletter.ReadByHeader:
			add(Span{Text: "header"})
		case deadletter.ReadByBinding:
			if !bound {
				add(Span{Text: "a binding that is gone"})
			}
		case deadletter.ReadByPick:
			add(Span{Text: "picked by people"})
		case deadletter.ReadByMatch:
			how := "learned, "
			if !q.hasNamedType() {
				how = "matched by shape only, "
			}
			add(Span{Text: how + Count(q.comparedCount()) + " of " + Count(q.read())})
		}
	}
	if len(parts) == 0 {
		switch {
		case q.read() == 0:
			add(Span{Text: "unknown"})
		case q.count(deadletter.ReadAmbiguous) > 0:
			add(Span{Text: "several types fit"})
		case q.count(deadletter.ReadUnknown) > 0:
			add(Span{Text: "no type matches"})
		default:
			add(Span{Text: "needs none"})
		}
	}
	var out []Span
	for i, p := range parts {
		if i > 0 {
			out = append(out, Span{Text: ", "})
		}
		out = append(out, p...)
	}
	return out
}

// hasNamedType reports whether some letters of the queue have a type that was named, for example in
// a header or by a person. The alternative is a type that dlo found by comparing bodies with the
// schemas.
func (q TypedQueue) hasNamedType() bool {
	return slices.ContainsFunc(q.By, func(c deadletter.ReadCount) bool {
		return c.Letters > 0 && c.Reading.Typed() && c.Reading != deadletter.ReadByMatch
	})
}

// comparedCount returns the number of letters of the most frequent type that was found by comparing
// bodies with the schemas.
func (q TypedQueue) comparedCount() int {
	most := 0
	for _, c := range q.By {
		if c.Reading == deadletter.ReadByMatch {
			most = max(most, c.Letters)
		}
	}
	return most
}

// boundBy says who made the binding of a queue. It adds the pattern of the binding if the pattern
// is not the name of the queue, and the routing key if there is one.
func boundBy(by, glob, key, queue string) []Span {
	out := []Span{{Text: by}}
	if glob != queue {
		out = append(out, Span{Text: " for "}, Span{Text: line(glob, 60), Code: true})
	}
	if key != "" {
		out = append(out, Span{Text: " with key "}, Span{Text: line(key, 60), Code: true})
	}
	return out
}

// bindLink returns the URL of the form for a binding of this queue, filled with the current
// binding.
func (q TypedQueue) bindLink() string {
	switch {
	case q.Exact:
		return bindURL(q.Queue, q.Bound.Key, q.Bound.Type)
	case len(q.Types) == 1:
		return bindURL(q.Queue, "", q.Types[0].Type)
	}
	return bindURL(q.Queue, "", "")
}

func (q TypedQueue) bindWord() string {
	if q.Exact {
		return "Edit"
	}
	return "Bind"
}
