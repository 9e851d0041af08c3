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

// Verdict is what a ranking comes to.
type Verdict string

const (
	Matched   Verdict = "matched"   // the first is the type
	Ambiguous Verdict = "ambiguous" // Tied types are equally likely, or nearly so, or it may as well be a text
	Unknown   Verdict = "unknown"   // none reads the body well, or the body says too little
)

// Match is one type that reads a body.
type Match struct {
	Type  string
	Score float64  // 0 to 1; above 0.9 only where more than the shape of the body speaks for it
	Why   []string // reasons, in words
}

// Ranking is the types that read a body, as far as they are worth naming.
type Ranking struct {
	Verdict Verdict
	Why     string  // one sentence where nothing is matched
	Types   int     // that are registered
	Matches []Match // best first, at most eight; of those that are tied, the likelier ones from before
	Tied    int     // types that the margin does not tell from the first, and the first
	Left    int     // types that might read the body and were not compared, as the budget had ended
	Enough  bool    // the body is surely a message of a type like the first, even when the verdict is ambiguous

	leftFrom, leftTo string // the first and the last of those that are left, by name

	drifted   bool               // the body is of the only type of its queue but for new fields: see drift.go
	plausible []*descriptor.Type // that are tied with the first, or know all of the body; of a decoder that hides something
	fields    int64              // on the wire, on all levels
}

// Limits of one ranking.
const (
	maxMatches = 8
	maxVisits  = 500_000 // nodes, over all types
	minMatched = 8       // bytes; shorter bodies are not matched
	shapeMost  = 0.9     // score of a type that only the shape of the body speaks for
)

// likely is the prior from which on it decides between types that read a body alike; below, it only
// orders them. Where two types are common on a queue, it would make a confident guess of each
// letter that both read, and that of every one after it.
const (
	likely   = 0.9
	ordering = likely - 0.01 // of a share: it never decides
)

// Match ranks all registered types for a body that names none: those of the newest version of each
// set. A body that is text is not protobuf, unless the content type says so, or it is nothing but
// tagged texts; see taggedTexts. It costs no more than half of what is left of b, never fails, and
// allocates only for its answer; a nil b stands for NewBudget().
//
// Types are ranked by evidence.score: 1 when the type knows every field, and every value is one
// that its publishers write. Ties are broken by h.Prior, by a type property that is like the name,
// then by name; only the first two can make a tie a match.
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
	case deadletter.IsText(body) && !taggedTexts(body):
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
	prior  float32 // what it was before
	id     int32   // in the index
	done   bool    // listed
	unread bool    // it does not know all of the body
}

var matchers = sync.Pool{New: func() any { return &matcher{} }}

// matcherMemory is what a matcher keeps, without compared.
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
		t := &types.types[id]
		before := h.Prior[t.name]
		if c.visits >= visits && before <= 0 && t.name != h.Only {
			r.leave(t.name)
			continue
		}
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
		rank := score + prior(t, before, hint)
		if best < 0 || rank > m.compared[best].rank {
			best = len(m.compared)
		}
		m.compared = append(m.compared, compared{rank: rank, prior: float32(before), id: int32(id), unread: e.unread > 0})
	}
	b.Spend(min(c.visits, visits))
	if best < 0 {
		r.Verdict, r.Why = Unknown, cmp.Or(r.partly(), "no type reads it")
		return r
	}
	m.list(&r, types, c, hint, m.compared[best].rank, hides)
	r.judge(m, types, c, h, hint, declared)
	return r
}

// leave notes a type that is not compared. They come by name.
func (r *Ranking) leave(name string) {
	if name == r.leftTo {
		return // of another set
	}
	r.Left++
	r.leftFrom, r.leftTo = cmp.Or(r.leftFrom, name), name
}

// prior is what is known of a type from before the body: what its queue, its routing key or a
// person says, and a type property like its name.
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

// list fills the matches: best first, those that are tied with the top by what was before, equals
// by name, and each name once. The types stand by name in the index, and so in m.compared.
func (m *matcher) list(r *Ranking, types *typeIndex, c *comparison, hint string, top float64, hides bool) {
	for len(r.Matches) < maxMatches {
		best := -1
		for i := range m.compared {
			if x := &m.compared[i]; !x.done && (best < 0 || x.before(&m.compared[best], top)) {
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
		why, score := e.words(), shapeMost*min(1, x.rank)
		if x.prior > 0 {
			why = append(why, "used here before")
		}
		if hint != "" && hint == t.short {
			why, score = append(why, "like the type property"), score+1-shapeMost
		}
		r.Matches = append(r.Matches, Match{Type: t.name, Score: score, Why: why})
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

// before reports whether x is listed before y, where the highest rank is top.
func (x *compared) before(y *compared, top float64) bool {
	if x.prior != y.prior && top-x.rank <= margin && top-y.rank <= margin {
		return x.prior > y.prior
	}
	return x.rank > y.rank
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
	known := prior(best, h.Prior[best.name], hint)
	if known > 0 {
		need -= 8
	}
	text := !declared && deadletter.IsText(m.tree.body)
	r.Enough = score >= matchedFrom && e.bits() >= need
	switch {
	case score < matchedFrom:
		r.Verdict, r.Why = Unknown, fmt.Sprintf("no type reads it well: the best is %s, score %.2f", best.name, r.Matches[0].Score)
	case r.Tied > 1:
		r.Verdict, r.Why = Ambiguous, "ambiguous: "+r.names(3)
		if text {
			r.Why += ", or text"
		}
		if r.Left > 0 {
			r.Why += "; " + r.partly()
		}
	case e.bits() < need && text:
		r.Verdict, r.Why = Ambiguous, "ambiguous: "+best.name+", or text"
	case e.bits() < need:
		r.Verdict, r.Why = Unknown, "the body says too little to tell types apart"
	case r.Left > 0 && (hint != "" || score+known <= 1+margin): // one of them may be as good
		r.Verdict, r.Why = Ambiguous, r.partly()
	default:
		r.Verdict = Matched
	}
}

// partly says which types were not compared; "" when all were.
func (r *Ranking) partly() string {
	if r.Left == 0 {
		return ""
	}
	which := r.leftFrom
	if r.leftTo != r.leftFrom {
		which = "from " + r.leftFrom + " to " + r.leftTo
	}
	return fmt.Sprintf("too large to compare with %s of %s: %s", deadletter.Count(r.Left), deadletter.Plural(r.Types, "type", "types"), which)
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
