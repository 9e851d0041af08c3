package view

import (
	"slices"
	"strconv"
)

// RuleStep says whether one rule matches a letter. If it does not match, RuleStep says why.
type RuleStep struct {
	Rule             string
	Matched, Applies bool
	Clauses          []Clause
}

// whyURL returns the URL of the part of a letter's page that explains which rule applies.
func (p LetterPage) whyURL() string { return LetterURL(p.Letter.ID, p.Query, TabHistory) + "#why" }

// ruleNumber returns the number of the rule with index i. The default rule has no number.
func (p LetterPage) ruleNumber(i int) string {
	if i == len(p.Steps)-1 {
		return ""
	}
	return strconv.Itoa(i+1) + " "
}

// reason explains why a rule does not apply to the letter.
func (s RuleStep) reason() []Span {
	if s.Matched {
		return []Span{{Text: "would match, but comes later"}}
	}
	missed := slices.DeleteFunc(slices.Clone(s.Clauses), func(c Clause) bool { return c.Fits })
	if len(missed) == 0 {
		return []Span{{Text: "does not match"}}
	}
	return clauses(missed, "not ", clausesInRow)
}

// stepsShown is the maximum number of rules that the page lists, besides the one that applies. It
// keeps the page under 300 KB. The API returns all of them.
const stepsShown = 4
