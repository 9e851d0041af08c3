package payload

import (
	"fmt"
	"strings"
	"sync"

	"github.com/deadletteroffice/dlo/internal/budget"
	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/descriptor"
)

// Verdict is what a ranking comes to.
type Verdict string

const (
	Matched   Verdict = "matched"   // the first is the type
	Ambiguous Verdict = "ambiguous" // the first Tied are equally likely, or nearly so
	Unknown   Verdict = "unknown"   // none reads the body well, or the body says too little
)

// Match is one type that reads a body.
type Match struct {
	Type  string
	Score float64  // 0 to 1, raised by what is known from before
	Why   []string // reasons, in words
}

// Ranking is the types that read a body, as far as they are worth naming.
type Ranking struct {
	Verdict Verdict
	Why     string  // one sentence where nothing is matched
	Types   int     // that the body was compared with
	Matches []Match // best first, at most eight
	Tied    int     // types that the margin does not tell from the first, and the first
	Partial bool    // the budget ended before all types were compared: nothing is then called matched
	Enough  bool    // the body is surely a message of a type like the first, even when the verdict is ambiguous

	drifted   bool               // the body is of the only type of its queue but for new fields: see drift.go
	plausible []*descriptor.Type // that are tied with the first, or know all of the body; of a decoder that hides something
	fields    int64              // on the wire, on all levels
}

// Limits of one ranking.
const (
	maxMatches = 8
	maxVisits  = 500_000 // nodes, over all types
	minMatched = 8       // bytes; shorter bodies are not matched
)

// Match ranks all registered types for a body that names none: those of the newest version of each
// set. A body that is text is not protobuf, unless the content type says so. It costs no more than
// half of what is left of b, never fails, and allocates only for its answer; a nil b stands for
// NewBudget().
//
// The score is evidence.score: 1 when the type knows every field, and every value is one that its
// publishers write. Ties are broken by h.Prior, by a type property that is like the name, then by
// name; only the first two can make a tie a match.
func (d *Decoder) Match(body []byte, h Hints, b *budget.Budget) (ranking Ranking) {
	b = d.budget(b)
	defer func() {
		if recover() != nil {
			ranking = Ranking{Verdict: Unknown, Why: "the comparison failed on this body (internal error)"}
		}
	}()
	media, _ := mediaType(h.ContentType)
	declared := isProtobuf(media)
	if why := unmatchable(body, declared); why != "" {
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

// unmatchable says why a body is not compared with types at all.
func unmatchable(body []byte, declared bool) string {
	switch {
	case len(body) == 0:
		return "the body is empty"
	case declared:
		return ""
	case len(body) < minMatched:
		return "the body is too short to tell"
	case deadletter.IsText(body):
		return "the body is text"
	}
	return ""
}

// matcher is the memory of one ranking; it is used again.
type matcher struct {
	tree     wireTree
	outline  outline
	compared []compared
}

// compared is one type that reads the body.
type compared struct {
	rank   float64 // the score and its priors
	id     int32   // in the index
	done   bool    // listed
	unread bool    // it does not know all of the body
}

var matchers = sync.Pool{New: func() any { return &matcher{} }}

// matcherMemory is what a matcher keeps, without compared.
const matcherMemory = 48*maxWireNodes + 2<<10

func (m *matcher) rank(types *typeIndex, body []byte, h Hints, declared bool, b *budget.Budget, hides bool) Ranking {
	half := b.Left().Fields / 2
	if err := b.TakeMemory(matcherMemory + 16*int64(len(types.types))); err != nil {
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
	m.outline.of(&m.tree)
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
		if c.visits >= visits {
			r.Partial = true
			r.Types = id
			break
		}
		t := &types.types[id]
		if !c.as(t.shape, &e) {
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
		rank := score + prior(t, h.Prior, hint)
		if best < 0 || rank > m.compared[best].rank {
			best = len(m.compared)
		}
		m.compared = append(m.compared, compared{rank: rank, id: int32(id), unread: e.unread > 0})
	}
	b.Spend(min(c.visits, visits))
	if best < 0 {
		r.Verdict, r.Why = Unknown, "no type reads it"
		if r.Partial {
			r.Why = r.partly(types)
		}
		return r
	}
	m.list(&r, types, c, h, hint, hides)
	r.judge(m, types, c, h, hint, declared)
	return r
}

// prior is what is known of a type from before the body: what its queue, its routing key or a
// person says, and a type property like its name.
func prior(t *matchable, priors map[string]float64, hint string) float64 {
	p := max(0, min(1, priors[t.name]))
	if hint != "" && hint == t.short {
		p = max(p, 0.5)
	}
	return priorWeight * p
}

// list fills the matches: best first, of equals by name, and each name once. The types stand by
// name in the index, and so in m.compared.
func (m *matcher) list(r *Ranking, types *typeIndex, c *comparison, h Hints, hint string, hides bool) {
	top := 0.0
	for len(r.Matches) < maxMatches {
		best := -1
		for i := range m.compared {
			if x := &m.compared[i]; !x.done && (best < 0 || x.rank > m.compared[best].rank) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		x := &m.compared[best]
		t := &types.types[x.id]
		var e evidence
		c.as(t.shape, &e)
		if len(r.Matches) == 0 {
			top = x.rank
		}
		why := e.words()
		if prior(t, h.Prior, "") > 0 {
			why = append(why, "used here before")
		}
		if hint != "" && hint == t.short {
			why = append(why, "like the type property")
		}
		r.Matches = append(r.Matches, Match{Type: t.name, Score: min(1, x.rank), Why: why})
		for i := range m.compared { // the same type in another set
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

// judge sets the verdict on a ranking with at least one match.
func (r *Ranking) judge(m *matcher, types *typeIndex, c *comparison, h Hints, hint string, declared bool) {
	// What is known from before says which type it is, not that it fits: the evidence alone has to
	// be good enough.
	var e evidence
	var best *matchable
	score := 0.0
	for i := range m.compared {
		t := &types.types[m.compared[i].id]
		if t.name != r.Matches[0].Type {
			continue
		}
		var one evidence
		if c.as(t.shape, &one); one.score() > score || best == nil {
			e, best, score = one, t, one.score()
		}
	}
	need := enoughBits
	if declared {
		need -= 10
	}
	if prior(best, h.Prior, hint) > 0 {
		need -= 8
	}
	r.Enough = score >= matchedFrom && e.bits() >= need
	switch {
	case score < matchedFrom:
		r.Verdict, r.Why = Unknown, fmt.Sprintf("no type reads it well: the best is %s, score %.2f", best.name, r.Matches[0].Score)
	case r.Tied > 1:
		r.Verdict, r.Why = Ambiguous, "ambiguous: "+r.names(3)
	case e.bits() < need:
		r.Verdict, r.Why = Unknown, "the body says too little to tell types apart"
	case r.Partial:
		r.Verdict, r.Why = Ambiguous, r.partly(types)
	default:
		r.Verdict = Matched
	}
}

func (r *Ranking) partly(types *typeIndex) string {
	return fmt.Sprintf("only %s of %s types could be compared", deadletter.Count(r.Types), deadletter.Count(len(types.types)))
}

// names gives the first n types that are tied.
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
