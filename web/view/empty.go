package view

import "github.com/deadletteroffice/dlo/internal/deadletter"

// nothingWord is the title of an empty list if that is good news.
func (p LettersPage) nothingWord() string {
	if p.Needy {
		return "Nothing is dead or held"
	}
	return "Nothing is dead"
}

// onlyDead reports whether a query selects only dead letters, or only dead and held letters. An
// empty result is then good news.
func (p LettersPage) onlyDead() bool {
	return p.Needy || len(p.Tokens) == 1 && len(p.States) == 1 && p.States[0] == deadletter.StateDead
}
