package view

import (
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// NextGroups is the maximum number of groups for which the page of an operation suggests next
// steps.
const NextGroups = 5

// MaxFrom is the maximum length in bytes of the URL of a list that the page of an operation
// remembers. The length is limited because every link on the page repeats the URL.
const MaxFrom = 1000

// nextStep is one suggestion for what to do after an operation.
type nextStep struct {
	text   string
	button string
	group  deadletter.GroupID    // the group that the step is about; 0 if it is about others or the letters of a result
	clear  []deadletter.GroupRow // the groups that the step resolves
	result deadletter.Result     // the result whose letters the step is about
}

// steps returns the suggested next steps once all letters of the operation are sent or changed.
func (p OperationPage) steps() []nextStep {
	if !p.hasVerdict() {
		return nil
	}
	var list []nextStep
	if n := p.count(deadletter.ResultSkipped); n > 0 && p.Operation.Action != deadletter.VerbEdit {
		list = append(list, nextStep{
			text: LetterCount(n) + plural(n, " was", " were") +
				" skipped. Try again once the cause is gone.",
			button: VerbWord(p.Operation.Action) + " " + theSkipped(n), result: deadletter.ResultSkipped,
		})
	}
	if !p.isRequeue() && p.Operation.Action != deadletter.VerbDiscard {
		return list
	}
	var clear []deadletter.GroupRow
	for _, g := range p.Groups {
		step := nextStep{group: g.ID}
		const none = "none of its letters is dead, held or waiting to be retried."
		switch waiting := g.Overdue + g.Waiting; {
		case g.Status == deadletter.GroupResolved:
			step.text = "it is resolved."
		case g.Count > 0:
			step.text = LetterCount(g.Count) + " of it " + plural(g.Count, "is", "are") + " dead or held."
			step.button = "Requeue " + Count(g.Count)
		case waiting > 0:
			step.text = LetterCount(waiting) + plural(waiting, " waits", " wait") + " to be retried."
		case p.isIn(deadletter.PhaseWatching):
			step.text = none + " Letters are watched" + p.watchEnd() + "; resolve it when they stay quiet."
		default:
			clear = append(clear, g)
			continue
		}
		step.text = groupTitle(g) + ": " + step.text
		list = append(list, step)
	}
	if n := len(clear); n > 0 {
		list = append(list, nextStep{
			text: Number(n, "group is", "groups are") + " clear: none of " + plural(n, "its", "their") +
				" letters is dead, held or waiting to be retried.",
			clear: clear,
		})
	}
	return list
}

func theSkipped(n int) string {
	if n == 1 {
		return "the skipped one"
	}
	return "the " + Count(n) + " skipped"
}

// sameMark returns the coloured mark that shows whether a letter came back with its old error or
// another one.
func sameMark(same bool) mark {
	if same {
		return mark{"The same error", "return", ""}
	}
	return mark{"Another error", "warn", "warn"}
}

// backWord returns the text of a link back to the list with the given address.
func backWord(address string) string {
	path, _, _ := strings.Cut(address, "?")
	switch {
	case path == "/letters":
		return "Back to the letters"
	case path == "/triage":
		return "Back to Triage"
	case strings.HasPrefix(path, "/groups/"):
		return "Back to " + line(strings.TrimPrefix(path, "/groups/"), 20)
	case strings.HasPrefix(path, "/letters/"):
		return "Back to the letter"
	}
	return "Back"
}

// LookEvery is the interval at which a page without scripts reloads itself, if a person asked for
// that.
const LookEvery = 5 * time.Second

// reloadURL returns the URL of the page of the operation. If the interval is not 0, the page with
// that URL reloads itself at this interval.
func (p OperationPage) reloadURL(interval time.Duration) string {
	look := ""
	if interval > 0 {
		look = interval.String()
	}
	return address(OperationURL(p.Operation.ID), "look", look, "from", p.From)
}
