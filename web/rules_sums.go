package web

import (
	"cmp"
	"slices"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/rules"
	"github.com/deadletteroffice/dlo/web/view"
)

const (
	fateExamples = 3
	fateNamed    = 100 // letters that a query names by their ids: as many as fit
)

// sums count what rules would have made of letters.
type sums struct {
	set, use *rules.Set
	rules    []view.RuleCount // of set, the default last
	at       map[string]int   // the place of each in rules
	totals   map[deadletter.State]*view.RuleTotal
	fates    map[[2]view.Decided]*fate
}

// fate is what became of letters, and what would have, with all of them.
type fate struct {
	view.Fate
	ids []deadletter.ID
}

func newSums(set, use *rules.Set) *sums {
	s := &sums{set: set, use: use, at: map[string]int{}, totals: map[deadletter.State]*view.RuleTotal{}, fates: map[[2]view.Decided]*fate{}}
	for i := range set.Rules {
		s.rules = append(s.rules, view.RuleCount{Rule: set.Rules[i].Name, Delays: delaysOf(set, &set.Rules[i], "")})
	}
	s.rules = append(s.rules, view.RuleCount{Rule: set.Default.Name, Delays: delaysOf(set, &set.Default, "")})
	for i := len(s.rules) - 1; i >= 0; i-- {
		s.at[s.rules[i].Rule] = i
	}
	return s
}

// add counts a letter by what the rules of the set decide.
func (s *sums) add(l *deadletter.Letter, d rules.Decision) {
	n := &s.rules[s.at[d.Rule]]
	n.Letters++
	n.Become = oneMore(n.Become, d.Outcome)
	t := s.totals[l.State]
	if t == nil {
		t = &view.RuleTotal{State: l.State}
		s.totals[l.State] = t
	}
	t.Letters++
	t.Become = oneMore(t.Become, d.Outcome)

	was, would := s.was(l), s.would(l, d)
	f := s.fates[[2]view.Decided{was, would}]
	if f == nil {
		f = &fate{Fate: view.Fate{Was: was, Would: would, Same: asItIs(was, would)}}
		s.fates[[2]view.Decided{was, would}] = f
	}
	f.ids = append(f.ids, l.ID)
}

func oneMore(of map[deadletter.RuleOutcome]int, o deadletter.RuleOutcome) map[deadletter.RuleOutcome]int {
	if of == nil {
		of = map[deadletter.RuleOutcome]int{}
	}
	of[o]++
	return of
}

// was is what became of a letter, with the delays that its rule has now, if it is still in use.
func (s *sums) was(l *deadletter.Letter) view.Decided {
	v := view.Decided{State: l.State, Rule: l.Rule}
	if l.State == deadletter.StateDead {
		v.Severity = l.Severity
	}
	if rule, ok := s.use.Named(l.Rule); ok {
		v.Delays = delaysOf(s.use, rule, l.Reason)
	}
	return v
}

// would is what rules make of a letter.
func (s *sums) would(l *deadletter.Letter, d rules.Decision) view.Decided {
	v := view.Decided{Rule: d.Rule, Outcome: d.Outcome}
	if d.Outcome == deadletter.RuleDead {
		v.Severity = d.Severity
	}
	rule, _ := s.set.Named(d.Rule)
	v.Delays = delaysOf(s.set, rule, l.Reason)
	return v
}

// asItIs says that nothing would have been otherwise. What is held stays held: a guard or a person
// goes before the rules.
func asItIs(was, would view.Decided) bool {
	return was.State == deadletter.StateHeld ||
		was.State.Ruled() == would.Outcome && was.Severity == would.Severity && (would.Outcome != deadletter.RuleRetry || was.Delays == would.Delays)
}

// fill writes the sums down: what would change first, most letters first; q selected the letters.
func (s *sums) fill(out *view.WhatIf, q query.Query) {
	out.Rules = s.rules
	for _, state := range deadletter.States {
		if t := s.totals[state]; t != nil {
			out.Totals = append(out.Totals, *t)
		}
	}
	alike := map[view.Decided]int{} // fates that begin so
	for key := range s.fates {
		alike[stateAndRule(key[0])]++
	}
	all := out.Exact && out.Looked == out.Matching
	for key, f := range s.fates {
		f.Letters, f.Examples = len(f.ids), f.ids[:min(len(f.ids), fateExamples)]
		switch only := stateAndRule(key[0]); {
		case f.Letters <= fateNamed:
			f.Query = query.Query{}.With(query.ID, each(f.ids, func(id deadletter.ID) string { return string(id) })...).String()
		case all && alike[only] == 1 && only.Rule != "":
			if text := q.Fixed().With(query.State, string(only.State)).With(query.Rule, only.Rule).String(); len(text) <= query.MaxText {
				f.Query = text
			}
		}
		out.Fates = append(out.Fates, f.Fate)
	}
	slices.SortFunc(out.Fates, func(a, b view.Fate) int {
		changed := map[bool]int{true: 1}
		return cmp.Or(changed[a.Same]-changed[b.Same], cmp.Compare(b.Letters, a.Letters), strings.Compare(a.Was.Rule, b.Was.Rule), strings.Compare(a.Would.Rule, b.Would.Rule), strings.Compare(string(a.Examples[0]), string(b.Examples[0])))
	})
}

// stateAndRule is what a query can ask for of what became of letters.
func stateAndRule(d view.Decided) view.Decided { return view.Decided{State: d.State, Rule: d.Rule} }
