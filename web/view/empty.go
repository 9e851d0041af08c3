package view

import "github.com/deadletteroffice/dlo/internal/deadletter"

// onlyDead says whether the query asks for nothing but what needs a person: its empty answer is
// good news.
func (p LettersPage) onlyDead() bool {
	return len(p.Tokens) == 1 && len(p.States) == 1 && p.States[0] == deadletter.StateDead
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
