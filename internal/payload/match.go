package payload

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// Verdict is the result of a Ranking.
type Verdict string

const (
	Matched Verdict = "matched" // the first match is the type
	// the types in Tied are (almost) equally likely, or the body may just as well be a text
	Ambiguous Verdict = "ambiguous"
	Unknown   Verdict = "unknown" // no type fits the body well, or the body says too little
)

// Match is a type that can decode a body.
type Match struct {
	Type  string   `json:"type"`
	Score float64  `json:"score"`   // from 0 to 1; above 0.9 only if there is more evidence than the shape of the body
	Why   []string `json:"reasons"` // in words
}

// Ranking lists the types that can decode a body and that are worth mentioning.
type Ranking struct {
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why"`     // if no type is matched, one sentence with the reason
	Types   int     `json:"types"`   // number of registered types
	Matches []Match `json:"matches"` // at most eight, the best first; tied types are sorted by their priors
	// number of types whose score is within the margin of the first one, including the first
	Tied int `json:"tied,omitzero"`
	// number of types that might fit the body but were not compared, because the budget was used up
	Left int `json:"not_compared,omitzero"`
	// the body is certainly a message of a type like the first one, even if the verdict is ambiguous
	Enough bool `json:"-"`

	leftFrom, leftTo string // the first and the last name of the types that were not compared

	drifted bool // the body has the only type of its queue, plus new fields: see drift.go
	// types that are tied with the first one or know the whole body; set only if the decoder hides
	// anything
	plausible []*descriptor.Type
	fields    int64 // number of fields on the wire, at all levels
}

// These are the limits of one ranking.
const (
	maxMatches = 8
	maxVisits  = 500_000 // maximum number of nodes that are visited, for all types together
	minMatched = 8       // in bytes; shorter bodies are not matched
	shapeMost  = 0.9     // maximum score of a type for which only the shape of the body is evidence
)

// A prior says how likely a type is before the body is read. If several types can decode a body
// equally well, a type whose prior is at least the constant "likely" is chosen. A lower prior only
// determines the order of the types.
//
// The constant is so high because a queue may have two common types. If a letter can be decoded as
// both types and the more common one were always chosen, the share of this type would grow. In the
// end, every later letter would get this type.
const (
	likely   = 0.9
	ordering = likely - 0.01 // shares are multiplied by this factor, so that they never decide
)

// Match ranks the registered types for a body whose type nothing names. It uses the newest version
// of each set. A text does not count as protobuf, unless the content type says so or the body
// consists only of tagged texts (taggedTexts). Match uses at most half of what is left of the
// budget b, never fails, and allocates only its result. A nil b means NewBudget().
//
// Match sorts types by evidence.score. The score is 1 if the type knows every field, and if every
// value is one that publishers of the type write. Ties are broken by h.Prior, then by a type
// property that is similar to the name, then by the name. Only the first two can turn a tie into a
// match.
func (d *Decoder) Match(body []byte, h Hints, b *budget.Budget) (ranking Ranking) {
	b = d.budget(b)
	defer func() {
		if recover() != nil {
			ranking = Ranking{Verdict: Unknown, Why: "the comparison failed on this body (internal error)"}
		}
	}()
	media, _ := mediaType(h.ContentType)
	declared := isProtobuf(media)
	if why := whyNotCompared(body, declared); why != "" {
		return Ranking{Verdict: Unknown, Why: why}
	}
	types := typesOf(d.Types)
	if len(types.types) == 0 {
		return Ranking{Verdict: Unknown, Why: "no types are registered"}
	}
	m := matchers.Get().(*matcher)
	defer func() {
		m.tree.body = nil
		matchers.Put(m)
	}()
	return m.rank(types, body, h, declared, b, d.mayHideFields())
}

// whyNotCompared returns why a body is not compared with any types. It returns "" if the body is
// compared.
func whyNotCompared(body []byte, declared bool) string {
	switch {
	case len(body) == 0:
		return "the body is empty"
	case declared:
		return ""
	case len(body) < minMatched:
		return "the body is too short to tell"
	case deadletter.IsText(body) && !taggedTexts(body):
		return "the body is text"
	}
	return ""
}

// matcher is the memory that a ranking needs. It is used again for the next ranking.
type matcher struct {
	tree     wireTree
	outline  outline
	compared []compared
}

// compared is a type that can decode the body.
type compared struct {
	rank   float64 // the score plus its prior
	prior  float32 // what was known about the type before the body was read
	id     int32   // index of the type in typeIndex
	done   bool    // the type is listed already
	unread bool    // the type does not know all of the body
}

var matchers = sync.Pool{New: func() any { return &matcher{} }}

// matcherMemory is the memory in bytes that a matcher keeps, without the memory of its field
// "compared".
const matcherMemory = 48*maxWireNodes + 2<<10

func (m *matcher) rank(types *typeIndex, body []byte, h Hints, declared bool, b *budget.Budget, hides bool) Ranking {
	half := b.Left().Fields / 2
	if err := b.TakeMemory(matcherMemory + 24*int64(len(types.types))); err != nil {
		return Ranking{Verdict: Unknown, Why: "matching " + err.Error()[len("it "):]}
	}
	shaped := m.tree.read(body, half)
	b.Spend(min(m.tree.fields, half))
	if !shaped {
		why := "it does not read as protobuf of any type"
		if m.tree.fields > m.tree.limit {
			why = "it has more than " + deadletter.Count(m.tree.limit) + " fields, too many to compare"
		}
		return Ranking{Verdict: Unknown, Why: why}
	}
	m.outline.fill(&m.tree)
	c := &comparison{tree: &m.tree, unread: int64(unreadMost * float64(m.tree.bytes))}
	visits := min(maxVisits, half-min(m.tree.fields, half))
	r := Ranking{Types: types.names, fields: m.tree.fields}
	hint := plainName(h.Type)
	m.compared = m.compared[:0]
	var e evidence
	best := -1
	for id := range types.types {
		if m.outline.refuses(&types.signatures[id], c.unread) {
			continue
		}
		t := &types.types[id]
		before := h.Prior[t.name]
		if c.visits >= visits && before <= 0 && t.name != h.Only {
			r.skip(t.name)
			continue
		}
		if !c.decodes(t.shape, &e) {
			continue
		}
		score := e.score()
		if t.name == h.Only && e.drifted() {
			r.drifted = true
		}
		if hides && e.unread == 0 {
			r.plausible = append(r.plausible, t.def)
		}
		if score < listedFrom {
			continue
		}
		rank := score + prior(t, before, hint)
		if best < 0 || rank > m.compared[best].rank {
			best = len(m.compared)
		}
		m.compared = append(m.compared, compared{
			rank:   rank,
			prior:  float32(before),
			id:     int32(id),
			unread: e.unread > 0,
		})
	}
	b.Spend(min(c.visits, visits))
	if best < 0 {
		r.Verdict, r.Why = Unknown, cmp.Or(r.notCompared(), "no type can decode it")
		return r
	}
	m.list(&r, types, c, hint, m.compared[best].rank, hides)
	r.judge(m, types, c, h, hint, declared)
	return r
}

// skip records a type that is not compared. It must be called in the order of the type names.
func (r *Ranking) skip(name string) {
	if name == r.leftTo {
		return // another set has a type with the same name
	}
	r.Left++
	r.leftFrom, r.leftTo = cmp.Or(r.leftFrom, name), name
}

// prior returns the weight that a type gets before the body is read. The weight has one of three
// sources: a person, the earlier letters with the same queue or routing key, or a type property
// that is similar to the name of the type.
func prior(t *matchable, before float64, hint string) float64 {
	p := min(1, before)
	if p < likely {
		p = 0
	}
	if hint != "" && hint == t.short {
		p = max(p, 0.5)
	}
	return priorWeight * p
}

// list adds to the ranking the types that can decode the body, the best first. If several types
// share the best score, they are sorted by their prior and then by name. If a type is in several
// sets, its name is listed only once. The types in m.compared are already sorted by name, like
// those of the index.
func (m *matcher) list(r *Ranking, types *typeIndex, c *comparison, hint string, top float64, hides bool) {
	for len(r.Matches) < maxMatches {
		best := -1
		for i := range m.compared {
			if x := &m.compared[i]; !x.done && (best < 0 || x.ranksBefore(&m.compared[best], top)) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		x := &m.compared[best]
		t := &types.types[x.id]
		var e evidence
		c.decodes(t.shape, &e)
		why, score := e.reasons(), shapeMost*min(1, x.rank)
		if x.prior > 0 {
			why = append(why, "used here before")
		}
		if hint != "" && hint == t.short {
			why, score = append(why, "like the type property"), score+1-shapeMost
		}
		r.Matches = append(r.Matches, Match{Type: t.name, Score: score, Why: why})
		for i := range m.compared { // another set has the same type
			if y := &m.compared[i]; types.types[y.id].name == t.name {
				y.done = true
			}
		}
	}
	last := ""
	for i := range m.compared {
		if x := &m.compared[i]; top-x.rank <= margin {
			if hides && x.unread {
				r.plausible = append(r.plausible, types.types[x.id].def)
			}
			if name := types.types[x.id].name; name != last {
				r.Tied++
				last = name
			}
		}
	}
}

// ranksBefore reports whether x comes before y in the list of types that fit a body. The parameter
// "top" is the highest rank of all types in this list.
func (x *compared) ranksBefore(y *compared, top float64) bool {
	if x.prior != y.prior && top-x.rank <= margin && top-y.rank <= margin {
		return x.prior > y.prior
	}
	return x.rank > y.rank
}

// judge sets the verdict of a ranking that has at least one match.
func (r *Ranking) judge(m *matcher, types *typeIndex, c *comparison, h Hints, hint string, declared bool) {
	// Earlier letters and hints help to decide which of several types fits the body. They do not
	// help to decide whether any type fits, so the evidence in the body alone must be good enough.
	var e evidence
	var best *matchable
	score := 0.0
	for i := range m.compared {
		t := &types.types[m.compared[i].id]
		if t.name != r.Matches[0].Type {
			continue
		}
		var one evidence
		if c.decodes(t.shape, &one); one.score() > score || best == nil {
			e, best, score = one, t, one.score()
		}
	}
	need := enoughBits
	if declared {
		need -= 10
	}
	known := prior(best, h.Prior[best.name], hint)
	if known > 0 {
		need -= 8
	}
	text := !declared && deadletter.IsText(m.tree.body)
	r.Enough = score >= matchedFrom && e.bits() >= need
	switch {
	case score < matchedFrom:
		r.Verdict, r.Why = Unknown, fmt.Sprintf(
			"no type decodes it well: the best is %s, score %.2f", best.name, r.Matches[0].Score,
		)
	case r.Tied > 1:
		r.Verdict, r.Why = Ambiguous, "ambiguous: "+r.names(3)
		if text {
			r.Why += ", or text"
		}
		if r.Left > 0 {
			r.Why += "; " + r.notCompared()
		}
	case e.bits() < need && text:
		r.Verdict, r.Why = Ambiguous, "ambiguous: "+best.name+", or text"
	case e.bits() < need:
		r.Verdict, r.Why = Unknown, "the body says too little to tell types apart"
	case r.Left > 0 && (hint != "" || score+known <= 1+margin):
		// one of the types that were not compared may fit just as well
		r.Verdict, r.Why = Ambiguous, r.notCompared()
	default:
		r.Verdict = Matched
	}
}

// notCompared says which types were not compared. It returns "" if all were compared.
func (r *Ranking) notCompared() string {
	if r.Left == 0 {
		return ""
	}
	which := r.leftFrom
	if r.leftTo != r.leftFrom {
		which = "from " + r.leftFrom + " to " + r.leftTo
	}
	return fmt.Sprintf(
		"too large to compare with %s of %s: %s", deadletter.Count(r.Left), deadletter.Plural(r.Types, "type", "types"),
		which,
	)
}

// names returns a text with the names of the first n types that fit the body about equally well.
func (r *Ranking) names(n int) string {
	var list []string
	for _, m := range r.Matches[:min(n, len(r.Matches), r.Tied)] {
		list = append(list, m.Type)
	}
	if left := r.Tied - len(list); left > 0 {
		return strings.Join(list, ", ") + " and " + deadletter.Count(left) + " more"
	}
	return strings.Join(list, ", ")
}
