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
	fateNamed    = 100 // the maximum number of letters that a query names by id
)

// sums contains the letters on which rules were tried. Letters are together if they had the same
// real outcome, and would all have the same outcome under these rules.
type sums struct {
	set, use *rules.Set
	letters  map[[2]rules.Outcome][]deadletter.ID
}

// add adds a letter. The parameter d is the decision of the tried rules about it.
func (s *sums) add(l *deadletter.Letter, d rules.Decision) {
	key := [2]rules.Outcome{s.realOutcome(l), s.triedOutcome(l, d)}
	s.letters[key] = append(s.letters[key], l.ID)
}

// realOutcome returns what became of a letter. If the rule of the letter still exists, the outcome
// contains the current delays of that rule.
func (s *sums) realOutcome(l *deadletter.Letter) rules.Outcome {
	v := rules.Outcome{State: l.State, Rule: l.Rule}
	if l.State == deadletter.StateDead {
		v.Severity = l.Severity
	}
	if rule, ok := s.use.Named(l.Rule); ok {
		v.Delays = view.Delays(s.use, rule, l.Reason)
	}
	return v
}

// triedOutcome returns what would become of a letter under the tried rules.
func (s *sums) triedOutcome(l *deadletter.Letter, d rules.Decision) rules.Outcome {
	v := rules.Outcome{Rule: d.Rule, Action: d.Outcome}
	if d.Outcome == deadletter.RuleDead {
		v.Severity = d.Severity
	}
	rule, _ := s.set.Named(d.Rule)
	v.Delays = view.Delays(s.set, rule, l.Reason)
	return v
}

// asItIs reports whether the outcome under the tried rules is the same as the real outcome. For a
// held letter the result is always true, because a person or a guard holds it whatever the rules
// decide.
func asItIs(was, would rules.Outcome) bool {
	return was.State == deadletter.StateHeld ||
		was.State.Ruled() == would.Action && was.Severity == would.Severity &&
			(would.Action != deadletter.RuleRetry || was.Delays == would.Delays)
}

// fill writes the results to the parameter "out". Changed outcomes come before unchanged ones.
// Within each of these two groups, the more frequent outcome comes first. The parameter "q" is the
// query that selected the letters.
func (s *sums) fill(out *rules.WhatIf, q query.Query) {
	alike := map[rules.Outcome]int{} // the number of fates with the same state and rule
	for key := range s.letters {
		alike[stateAndRule(key[0])]++
	}
	all := out.Exact && out.Looked == out.Matching
	for key, ids := range s.letters {
		f := rules.Fate{
			Was: key[0], Would: key[1], Same: asItIs(key[0], key[1]),
			Letters: len(ids), Examples: ids[:min(len(ids), fateExamples)],
		}
		switch only := stateAndRule(key[0]); {
		case f.Letters <= fateNamed:
			f.Query = query.Query{}.With(
				query.ID, each(ids, func(id deadletter.ID) string { return string(id) })...,
			).String()
		case all && alike[only] == 1 && only.Rule != "":
			if text := q.Fixed().With(
				query.State, string(only.State),
			).With(query.Rule, only.Rule).String(); len(text) <= query.MaxText {
				f.Query = text
			}
		}
		out.Fates = append(out.Fates, f)
	}
	slices.SortFunc(out.Fates, func(a, b rules.Fate) int {
		changed := map[bool]int{true: 1}
		return cmp.Or(
			changed[a.Same]-changed[b.Same], cmp.Compare(b.Letters, a.Letters), strings.Compare(a.Was.Rule, b.Was.Rule),
			strings.Compare(a.Would.Rule, b.Would.Rule), strings.Compare(string(a.Examples[0]), string(b.Examples[0])),
		)
	})
}

// stateAndRule returns a copy of an outcome that contains only the state and the rule. The other
// fields are removed, because no query can select letters by them.
func stateAndRule(d rules.Outcome) rules.Outcome { return rules.Outcome{State: d.State, Rule: d.Rule} }
