package view

import (
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

func shellWord(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// safe says whether text can be in a command that a person copies: it pastes as exactly what
// meets the eye.
func safe(text string) bool { return deadletter.Visible(text) == text }

// listCommand is the same list on the command line; empty for a query that would paste more than
// meets the eye.
func (p LettersPage) listCommand() string {
	if !safe(p.Query) {
		return ""
	}
	return "dlo letters list -q " + shellWord(p.Query)
}

// allCommand acts on all letters that match, as the page shows them; the verb is the first that the
// states allow. Empty where there is none.
func (p LettersPage) allCommand() string {
	verbs := p.verbs()
	if len(verbs) == 0 || !safe(p.All.Typed) || p.All.Until.IsZero() {
		return ""
	}
	return actCommand(verbs[0]) + "-q " + shellWord(p.All.Typed)
}

// actCommand is the beginning of a command that acts on letters.
func actCommand(v deadletter.Verb) string {
	return "dlo letters " + strings.ReplaceAll(string(v), "_", "-") + " "
}
