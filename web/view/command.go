package view

import (
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

func shellWord(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// safe reports whether text can be part of a command that people copy. Text with invisible
// characters is not safe, because the pasted command has to be exactly the command that people see.
func safe(text string) bool { return deadletter.Visible(text) == text }

// listCommand returns the command that shows this list on the command line. It is empty if the
// query contains invisible characters.
func (p LettersPage) listCommand() string {
	if !safe(p.Query) {
		return ""
	}
	return "dlo letters list -q " + shellWord(p.Query)
}

// allCommand returns the command that acts on all matching letters that the page shows. It uses the
// first verb that the states of the letters allow. It is empty if no verb is allowed or the query
// contains invisible characters.
func (p LettersPage) allCommand() string {
	verbs := p.verbs()
	if len(verbs) == 0 || !safe(p.All.Typed) || p.All.Until.IsZero() {
		return ""
	}
	return actCommand(verbs[0]) + "-q " + shellWord(p.All.Typed)
}

// actCommand returns the beginning of a command that acts on letters.
func actCommand(v deadletter.Verb) string {
	return "dlo letters " + strings.ReplaceAll(string(v), "_", "-") + " "
}
