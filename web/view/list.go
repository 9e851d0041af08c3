package view

import (
	"slices"
	"strconv"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// typeName is the last part of a type, as lists show it.
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

// errorOf is what the Error column says: the error where one is known, else why the letter is held,
// else the reason of its death.
func errorOf(r deadletter.Row) string {
	switch {
	case r.State == deadletter.StateHeld && r.Why != "":
		return r.Why
	case r.Error != "":
		return r.Error
	}
	return r.Reason
}

// destroys says whether a verb takes something away: its button is red and never the first choice.
func destroys(v deadletter.Verb) bool {
	return v == deadletter.VerbDiscard || v == deadletter.VerbPurge
}

// verbClass is the look of the button of a verb: one primary button, what destroys always outlined
// in red.
func verbClass(v deadletter.Verb, primary bool) string {
	switch {
	case destroys(v):
		return "btn-danger"
	case primary:
		return "btn-primary"
	}
	return ""
}

// seldom says whether a verb is in the menu of further ones: it cannot be taken back, or is not
// what people come for.
func seldom(v deadletter.Verb) bool { return v == deadletter.VerbPurge || v == deadletter.VerbHold }

// usual are the verbs with a button of their own, rare those of the menu.
func usual(verbs []deadletter.Verb) []deadletter.Verb {
	return slices.DeleteFunc(slices.Clone(verbs), seldom)
}

func rare(verbs []deadletter.Verb) []deadletter.Verb {
	return slices.DeleteFunc(slices.Clone(verbs), func(v deadletter.Verb) bool { return !seldom(v) })
}

// rareClass is the look of the button of a verb in that menu.
func rareClass(v deadletter.Verb) string {
	if destroys(v) {
		return "item bad-text"
	}
	return "item"
}

// errorColumn is the class of the column that says what went wrong: narrow where it has only
// reasons to say or where a state is beside it, so that what tells letters apart has the room.
func (p LettersPage) errorColumn() string {
	for _, r := range p.Rows {
		if errorOf(r) != r.Reason {
			return map[bool]string{true: "c-l", false: "c-err"}[p.wide()]
		}
	}
	return "c-s"
}

// seldomSeen is the class of a column that narrow screens leave out, unless the list is sorted by
// it.
func (p LettersPage) seldomSeen(order deadletter.Order) string {
	if p.Order == order {
		return ""
	}
	return "hide-m"
}

// scopeWords names all letters that match: their exact number where it is known.
func (p LettersPage) scopeWords() string {
	if p.Exact {
		return "all " + Count(p.Total) + " that match"
	}
	return "all that match (" + AtLeast(p.Total, p.Exact) + ")"
}

// more says whether the query matches more letters than stand on this page.
func (p LettersPage) more() bool { return !p.All.Until.IsZero() && (p.Newer != "" || p.Older != "") }

func (p LettersPage) until() string { return Stamp(p.All.Until) }

// total is the number of matches for the script; empty where it is not exact.
func (p LettersPage) total() string {
	if !p.Exact {
		return ""
	}
	return strconv.Itoa(p.Total)
}
