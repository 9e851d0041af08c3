package view

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/rules"
)

// ApplyPage shows how the current rules change letters that wait for their retry. The page is shown
// before the changes are made and after them.
type ApplyPage struct {
	Shell
	rules.Applied
	Query    string    // the query with fixed times; "" selects all letters that wait
	Loaded   time.Time // when the current rules were loaded; a zero time is not shown
	Restore  string    // how long a discarded letter can be restored, for example "for 7 days", or ""
	Reason   string    // the reason as the person typed it
	Typed    string    // the number of discards as the person typed it
	Mistakes map[string]string
	Problem  string // why the last attempt was refused
}

// skipped returns the letters that stay unchanged.
func (p ApplyPage) skipped() (list []deadletter.PlanSkip) {
	for _, reason := range slices.Sorted(maps.Keys(p.Left)) {
		list = append(list, deadletter.PlanSkip{Reason: reason, Letters: p.Left[reason]})
	}
	return list
}

// decisionWords returns a decision in short form, such as "webhooks: dead".
func decisionWords(d rules.Decided) string {
	if d.Rule == "" {
		return "no rule: " + d.Outcome.Past()
	}
	return line(d.Rule, ruleName) + ": " + d.Outcome.Past()
}

// changedCount returns the number of letters for which the decision changes. The second result says
// how many of them are discarded.
func (p ApplyPage) changedCount() (all, discarded int) {
	for _, c := range p.Changes {
		all += c.Letters
		if c.To.Outcome == deadletter.RuleDiscard {
			discarded += c.Letters
		}
	}
	return all, discarded
}

// canApply reports whether the page offers to apply the changes. There must be changes, they must
// not have been applied yet, and the preview must be complete.
func (p ApplyPage) canApply() bool { return len(p.Changes) > 0 && p.DryRun && !p.Stopped }

func (p ApplyPage) title() string {
	n, _ := p.changedCount()
	switch {
	case !p.DryRun:
		return "The rules were applied: " + Number(n, "letter has", "letters have") + " changed"
	case n == 0:
		return "Nothing would change"
	}
	return "Apply the rules to " + LetterCount(n)
}

// words returns a sentence with three numbers: the letters that were examined, the letters that
// change, and the letters that already match the rules.
func (p ApplyPage) words() string {
	n, _ := p.changedCount()
	text := Count(n) + " of " + Number(p.Looked, "scheduled letter", "scheduled letters")
	if !p.DryRun {
		return text + " changed, " + Count(p.Unchanged) + " already match the rules. The audit log has it too."
	}
	return text + " would change, " + Count(p.Unchanged) + " already match the rules. Nothing is changed yet."
}

// lossWarning returns a warning about letters that are discarded. It returns "" if no letter is
// discarded.
func (p ApplyPage) lossWarning() string {
	_, n := p.changedCount()
	if n == 0 {
		return ""
	}
	text := LetterCount(n) + " would be discarded, as known noise, and "
	if !p.DryRun {
		text = Number(n, "letter was", "letters were") + " discarded, as known noise, and "
	}
	if p.Restore == "" {
		return text + "can be restored until they are purged."
	}
	return text + "can be restored " + p.Restore + "."
}

// button returns the label of the button. The label says how many letters the button changes and
// how many it discards.
func (p ApplyPage) button() string {
	all, discarded := p.changedCount()
	text := "Apply to " + LetterCount(all)
	if discarded > 0 {
		text += ", discard " + Count(discarded)
	}
	return text
}

func (p ApplyPage) buttonClass() string {
	if _, discarded := p.changedCount(); discarded > 0 {
		return confirmClass(deadletter.VerbDiscard)
	}
	return "btn-primary"
}

// mustType returns the number that a person has to type to confirm the discards. It returns "" if
// no number is needed.
func (p ApplyPage) mustType() string {
	if _, n := p.changedCount(); MustType(deadletter.VerbDiscard, n) {
		return strconv.Itoa(n)
	}
	return ""
}

// errorAttributes returns the HTML attributes that link a field to its error message. The first
// invalid field gets the focus.
func (p ApplyPage) errorAttributes(name string) templ.Attributes {
	a := ruleWrong(p.Mistakes, name)
	if a != nil {
		a["autofocus"] = name == "reason" || p.Mistakes["reason"] == ""
	}
	return a
}

const changesShown = 50 // the maximum number of changes on the page; the API returns all
