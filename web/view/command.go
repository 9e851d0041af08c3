package view

import (
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// isCopyable reports whether a text may be part of a command that people copy. The text must have
// no invisible characters, because the pasted command has to be exactly what people see.
func isCopyable(text string) bool { return deadletter.Visible(text) == text }

// listCommand returns the dlo command that shows the same list as the page. It returns "" if the
// query contains invisible characters.
func (p LettersPage) listCommand() string {
	if !isCopyable(p.Query) {
		return ""
	}
	return "dlo letters list -q " + deadletter.ShellWord(p.Query)
}

// allCommand returns the dlo command that acts on all letters that match the query of the page. The
// command uses the first verb that the states of the letters allow. It returns "" if no verb is
// allowed or if the query contains invisible characters.
func (p LettersPage) allCommand() string {
	verbs := p.verbs()
	if len(verbs) == 0 || !isCopyable(p.All.Typed) || p.All.Until.IsZero() {
		return ""
	}
	return actCommand(verbs[0]) + "-q " + deadletter.ShellWord(p.All.Typed)
}

// actCommand returns the beginning of a dlo command that acts on letters.
func actCommand(v deadletter.Verb) string {
	return "dlo letters " + strings.ReplaceAll(string(v), "_", "-") + " "
}
