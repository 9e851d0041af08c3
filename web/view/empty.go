package view

import "github.com/deadletteroffice/dlo/internal/deadletter"

// onlyDead reports whether a query selects only dead letters. In that case, an empty result is good
// news.
func (p LettersPage) onlyDead() bool {
	return len(p.Tokens) == 1 && len(p.States) == 1 && p.States[0] == deadletter.StateDead
}
