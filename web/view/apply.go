package view

import (
	"strconv"
	"time"

	"github.com/a-h/templ"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// ApplyPage says what the rules in use change about letters that wait for their retry: before it is
// done, or after.
type ApplyPage struct {
	Shell
	Query     string    // with fixed times; "" = all that wait
	Loaded    time.Time // of the rules that were asked; zero: not said
	Done      bool
	Looked    int // letters that wait
	Unchanged int
	Changes   []ApplyChange // most letters first
	Left      []ConfirmSkip // letters that are left alone
	Stopped   bool          // dlo stops: the rest of the letters is as it was
	Restore   string        // how long a discarded letter can be restored: "for 7 days"; "" when not known
	Reason    string        // as it is written
	Typed     string        // the count of discards, as it is written
	Mistakes  map[string]string
	Problem   string // why the last try was refused
}

// ApplyChange is a number of letters that change alike.
type ApplyChange struct {
	From, To ApplyDecision
	Letters  int
	Examples []deadletter.ID
}

// ApplyDecision is what a rule makes of a letter.
type ApplyDecision struct {
	Rule    string
	Outcome deadletter.RuleOutcome
}

// words are a decision in short: webhooks: dead.
func (d ApplyDecision) words() string {
	if d.Rule == "" {
		return "no rule: " + d.Outcome.Past()
	}
	return line(d.Rule, ruleName) + ": " + d.Outcome.Past()
}

// changed counts the letters that change, and those of them that are discarded.
func (p ApplyPage) changed() (all, discarded int) {
	for _, c := range p.Changes {
		all += c.Letters
		if c.To.Outcome == deadletter.RuleDiscard {
			discarded += c.Letters
		}
	}
	return all, discarded
}

// offered says whether there is something to apply, and whether all of it is known.
func (p ApplyPage) offered() bool { return len(p.Changes) > 0 && !p.Done && !p.Stopped }

func (p ApplyPage) title() string {
	n, _ := p.changed()
	switch {
	case p.Done:
		return "The rules were applied: " + Number(n, "letter has", "letters have") + " changed"
	case n == 0:
		return "Nothing would change"
	}
	return "Apply the rules to " + LetterCount(n)
}

// words say how many letters were looked at, and what became of them.
func (p ApplyPage) words() string {
	n, _ := p.changed()
	text := Count(n) + " of " + Number(p.Looked, "scheduled letter", "scheduled letters")
	if p.Done {
		return text + " changed, " + Count(p.Unchanged) + " already match the rules. The audit log has it too."
	}
	return text + " would change, " + Count(p.Unchanged) + " already match the rules. Nothing is changed yet."
}

// losses warn of what is discarded; empty where nothing is.
func (p ApplyPage) losses() string {
	_, n := p.changed()
	if n == 0 {
		return ""
	}
	text := LetterCount(n) + " would be discarded, as known noise, and "
	if p.Done {
		text = Number(n, "letter was", "letters were") + " discarded, as known noise, and "
	}
	if p.Restore == "" {
		return text + "can be restored until they are purged."
	}
	return text + "can be restored " + p.Restore + "."
}

// button says what it does, and what it takes away.
func (p ApplyPage) button() string {
	all, discarded := p.changed()
	text := "Apply to " + LetterCount(all)
	if discarded > 0 {
		text += ", discard " + Count(discarded)
	}
	return text
}

func (p ApplyPage) buttonClass() string {
	if _, discarded := p.changed(); discarded > 0 {
		return confirmClass(deadletter.VerbDiscard)
	}
	return "btn-primary"
}

// mustType is the count that has to be typed; empty where none has.
func (p ApplyPage) mustType() string {
	if _, n := p.changed(); MustType(deadletter.VerbDiscard, n) {
		return strconv.Itoa(n)
	}
	return ""
}

// wrong ties a field to its mistake; the first that is wrong has the focus.
func (p ApplyPage) wrong(name string) templ.Attributes {
	a := ruleWrong(p.Mistakes, name)
	if a != nil {
		a["autofocus"] = name == "reason" || p.Mistakes["reason"] == ""
	}
	return a
}

const changesShown = 50 // rows of what changes; the API has all
