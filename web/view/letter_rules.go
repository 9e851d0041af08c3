package view

import (
	"strconv"

	"github.com/deadletteroffice/dlo/internal/rules"
)

// whyURL returns the URL of the part of a letter's page that explains which rule applies.
func (p LetterPage) whyURL() string { return LetterURL(p.Letter.ID, p.Query, TabHistory) + "#why" }

// ruleNumber returns the number of the rule with index i. The default rule has no number.
func (p LetterPage) ruleNumber(i int) string {
	if i == len(p.Steps)-1 {
		return ""
	}
	return strconv.Itoa(i+1) + " "
}

// stepReason explains why a rule does not apply to the letter.
func stepReason(s rules.Step) []Span {
	if s.Matched {
		return []Span{{Text: "would match, but comes later"}}
	}
	var missed []rules.Condition
	for _, c := range s.Clauses {
		if !c.Fits {
			missed = append(missed, c.Condition)
		}
	}
	if len(missed) == 0 {
		return []Span{{Text: "does not match"}}
	}
	return conditionWords(missed, "not ", clausesInRow)
}

// stepsShown is the maximum number of rules that the page lists, besides the one that applies. It
// keeps the page under 300 KB. The API returns all of them.
const stepsShown = 4
