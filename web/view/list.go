package view

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// typeName returns the last part of the name of a type, for lists.
func typeName(name string) string {
	_, last := typeParts(cmp.Or(name, "no type"))
	return cutMiddle(last, 48)
}

func queueName(name string) string { return cutMiddle(unknownIf(name), 48) }

// errorOf returns the text for the column "Error". If a letter is held and the reason for that is
// known, the text is this reason. Otherwise the text is the error. If there is no error, it is the
// reason for the death.
func errorOf(r deadletter.Row) string {
	if r.State == deadletter.StateHeld && r.Why != "" {
		return r.Why
	}
	return cmp.Or(r.Error, r.Reason)
}

// isDestructive reports whether a verb is destructive. The button of a destructive verb is red and
// never the first choice.
func isDestructive(v deadletter.Verb) bool {
	return v == deadletter.VerbDiscard || v == deadletter.VerbPurge
}

// verbClass returns the CSS class of the button of a verb. The button of a destructive verb is
// always outlined in red. The parameter "primary" marks the one most important button.
func verbClass(v deadletter.Verb, primary bool) string {
	switch {
	case isDestructive(v):
		return "btn-danger"
	case primary:
		return "btn-primary"
	}
	return ""
}

// inMoreMenu reports whether a verb belongs in the menu "More", because it cannot be undone or is
// rarely needed.
func inMoreMenu(v deadletter.Verb) bool { return v == deadletter.VerbPurge || v == deadletter.VerbHold }

// usualVerbs returns the verbs that have their own button. rareVerbs returns the verbs in the menu
// "More".
func usualVerbs(verbs []deadletter.Verb) []deadletter.Verb {
	return slices.DeleteFunc(slices.Clone(verbs), inMoreMenu)
}

func rareVerbs(verbs []deadletter.Verb) []deadletter.Verb {
	return slices.DeleteFunc(slices.Clone(verbs), func(v deadletter.Verb) bool { return !inMoreMenu(v) })
}

// rareClass returns the CSS class of a verb in the menu "More".
func rareClass(v deadletter.Verb) string {
	if isDestructive(v) {
		return "item bad-text"
	}
	return "item"
}

// errorColumn returns the CSS class of the column "Error". The column is narrow if it shows only
// the reasons of the deaths, because no letter in the list has an error text. It is also narrow if
// the list has a column "State", because the other columns need the room.
func (p LettersPage) errorColumn() string {
	for _, r := range p.Rows {
		if errorOf(r) != r.Reason {
			return map[bool]string{true: "c-l", false: "c-err"}[p.showsState()]
		}
	}
	return "c-s"
}

// seldomSeen returns the CSS class of a column that narrow screens hide. It returns "" if the list
// is sorted by that column.
func (p LettersPage) seldomSeen(order deadletter.Order) string {
	if p.Order == order {
		return ""
	}
	return "hide-m"
}

// scopeWords returns words for all matching letters, with their number.
func (p LettersPage) scopeWords() string {
	if p.Exact {
		return "all " + Count(p.Total) + " that match"
	}
	return "all that match (" + AtLeast(p.Total, p.Exact) + ")"
}

// hasMore reports whether the query matches more letters than the page shows.
func (p LettersPage) hasMore() bool { return !p.All.Until.IsZero() && (p.Newer != "" || p.Older != "") }

func (p LettersPage) selectedUntil() string { return Stamp(p.All.Until) }

// total returns the number of letters that match the query, as text. The script of the page reads
// it. If the number is not exact, total returns "".
func (p LettersPage) total() string {
	if !p.Exact {
		return ""
	}
	return strconv.Itoa(p.Total)
}
