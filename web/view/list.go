package view

import (
	"slices"
	"strconv"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// typeName returns the last part of a type for lists.
func typeName(name string) string {
	if name == "" {
		return "no type"
	}
	_, last := typeParts(name)
	return middle(last, 48)
}

func queueName(name string) string {
	if name == "" {
		return "unknown"
	}
	return middle(name, 48)
}

// errorOf returns the text of the Error column. This is the reason why the letter is held, or the
// error, or else the reason of the death.
func errorOf(r deadletter.Row) string {
	switch {
	case r.State == deadletter.StateHeld && r.Why != "":
		return r.Why
	case r.Error != "":
		return r.Error
	}
	return r.Reason
}

// destroys reports whether a verb is destructive. The button of such a verb is red and never the
// first choice.
func destroys(v deadletter.Verb) bool {
	return v == deadletter.VerbDiscard || v == deadletter.VerbPurge
}

// verbClass returns the CSS class of a verb's button. There is one primary button, and destructive
// verbs are always outlined in red.
func verbClass(v deadletter.Verb, primary bool) string {
	switch {
	case destroys(v):
		return "btn-danger"
	case primary:
		return "btn-primary"
	}
	return ""
}

// seldom reports whether a verb belongs in the More menu, because it cannot be undone or is rarely
// needed.
func seldom(v deadletter.Verb) bool { return v == deadletter.VerbPurge || v == deadletter.VerbHold }

// usual returns the verbs that have their own button. The function "rare" returns the verbs in the
// More menu.
func usual(verbs []deadletter.Verb) []deadletter.Verb {
	return slices.DeleteFunc(slices.Clone(verbs), seldom)
}

func rare(verbs []deadletter.Verb) []deadletter.Verb {
	return slices.DeleteFunc(slices.Clone(verbs), func(v deadletter.Verb) bool { return !seldom(v) })
}

// rareClass returns the CSS class of a verb in the More menu.
func rareClass(v deadletter.Verb) string {
	if destroys(v) {
		return "item bad-text"
	}
	return "item"
}

// errorColumn returns the class of the Error column. The column is narrow if it shows only reasons.
// It is also narrow if the list has a State column, to leave room for the columns that tell letters
// apart.
func (p LettersPage) errorColumn() string {
	for _, r := range p.Rows {
		if errorOf(r) != r.Reason {
			return map[bool]string{true: "c-l", false: "c-err"}[p.wide()]
		}
	}
	return "c-s"
}

// seldomSeen returns the class of a column that narrow screens hide unless the list is sorted by
// that column.
func (p LettersPage) seldomSeen(order deadletter.Order) string {
	if p.Order == order {
		return ""
	}
	return "hide-m"
}

// scopeWords describes all matching letters, with their exact number if it is known.
func (p LettersPage) scopeWords() string {
	if p.Exact {
		return "all " + Count(p.Total) + " that match"
	}
	return "all that match (" + AtLeast(p.Total, p.Exact) + ")"
}

// more reports whether the query matches more letters than this page shows.
func (p LettersPage) more() bool { return !p.All.Until.IsZero() && (p.Newer != "" || p.Older != "") }

func (p LettersPage) until() string { return Stamp(p.All.Until) }

// total returns the number of matches for the script. It is empty if the number is not exact.
func (p LettersPage) total() string {
	if !p.Exact {
		return ""
	}
	return strconv.Itoa(p.Total)
}
