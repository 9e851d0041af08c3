package view

import (
	"context"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// GroupPage is the content of the page /groups/{id}.
type GroupPage struct {
	Shell
	Group GroupView
	Done  *Done
}

// GroupView contains everything that is shown about one group. It is used in the panel beside the
// list and on the page of the group.
type GroupView struct {
	deadletter.Group
	Page      bool // the group is shown on its own page
	Whole     bool // the newest letter and the comparison with quiet letters are included
	Now       time.Time
	Morning   time.Time // when the next digest is due, in its time zone
	People    []string  // on the page of the group: the known names of people to whom it can be assigned
	QueueLink string    // the link to the letters of the same queue
	Latest    []deadletter.Row
	deadletter.GroupValues
	Newest *LetterPage // the decoded newest letter; nil if there is none or the page is not that of the group
	Error  string      // the error of the newest letter
}

// query returns the query that selects the letters of the group. If "states" is not "", the query
// selects only letters in these states.
func (g GroupView) query(states string) string {
	q := "group:" + g.ID.String()
	if states != "" {
		q += " state:" + states
	}
	return q
}

// stateSentences describes the state of the group in a few sentences. They say whether the group is
// failing or quiet, since when, and after which deploy. They also say how many letters wait for a
// person.
func (g GroupView) stateSentences() []Span {
	var text []Span
	if g.failing() {
		text = append(
			text, words("Failing now: the last letter died at "), clockSpan(g.Now, g.LastAt),
			words(", "+Ago(g.Now, g.LastAt)+". "),
		)
	} else {
		text = append(text, Span{Text: "Not failing since "}, clockSpan(g.Now, g.LastAt), Span{Text: ". "})
		if g.AllQuiet() {
			text = append(text, words("All its letters that were sent again stayed quiet. "))
		}
		if d := g.Fix; d != nil {
			text = append(
				text, Span{Text: "None has died since "}, Span{Text: deployName(*d), Code: true},
				Span{Text: " went live at "}, clockSpan(g.Now, d.At), Span{Text: ". "},
			)
		}
	}
	word := "It began "
	if !g.Back.Since.IsZero() {
		word = "It came back "
		if !g.AllQuiet() {
			text = append(append(text, backWords(g.Now, g.GroupRow)...), Span{Text: ". "})
		}
	}
	if d := g.Suspect; d != nil {
		since := g.Began().Sub(d.At)
		if since >= time.Second {
			word += Duration(since) + " after "
		} else {
			word += "right after "
		}
		text = append(text, Span{Text: word}, Span{Text: deployName(*d), Code: true}, Span{Text: " went live. "})
	}
	switch {
	case g.Count > 0:
		text = append(text, words(Number(g.Count, "letter waits", "letters wait")+" to be requeued or discarded."))
	case g.Waiting > 0:
		text = append(text, Span{Text: LetterCount(g.Waiting) + " waiting to be retried."})
	}
	return text
}

// headline returns the sentence about the value that distinguishes the group. It returns nil if
// there is none.
func (g GroupView) headline() []Span {
	h := g.Headline
	if h == nil {
		return nil
	}
	counted := Count(h.Sampled)
	if h.Sampled < g.Count {
		counted = "the newest " + counted
	}
	switch {
	case h.Share < 1:
		counted = percentOf(h.Share) + " of " + counted
	case h.Sampled < g.Count:
		counted = "All of " + counted
	default:
		counted = "All " + counted
	}
	return []Span{
		{Text: counted + " have "},
		{Text: line(h.Path, 40) + " " + line(h.Value, 60), Code: true},
		{Text: "; " + percentOf(h.Elsewhere) + " elsewhere."},
	}
}

// percentOf formats a share, which is from 0 to 1, as Percent does.
func percentOf(share float64) string {
	const whole = 1_000_000
	return Percent(int(share*whole), whole)
}

// failing reports whether letters of the group are dying now. A group whose letters all stayed
// quiet is not failing, even if the last death was a moment ago.
func (g GroupView) failing() bool { return g.Failing && !g.AllQuiet() }

// statusMark returns the mark of the group's status. A group in the inbox whose letters all stayed
// quiet has the mark "Quiet". The second result is false if the status has no mark.
func (g GroupView) statusMark() (mark, bool) {
	if g.AllQuiet() && g.Status != deadletter.GroupSnoozed && g.Status != deadletter.GroupResolved {
		return mark{"Quiet", "check", "good"}, true
	}
	m, ok := groupStatusMarks[g.Status]
	return m, ok
}

// newestBudget is the maximum number of bytes of HTML that the newest letter takes on the page of a
// group.
const newestBudget = 24_000

// tryable reports whether a person can requeue the newest letter of the group alone.
func (g GroupView) tryable() bool {
	l := &g.Newest.Letter
	return deadletter.VerbRequeue.May(l.State) && !l.InBroker(g.Now)
}

// comparedWords describes the comparison of the group with quiet letters, or says why there was
// nothing to compare.
func (g GroupView) comparedWords() string {
	switch {
	case g.Quiet == 0:
		return "No letter of this queue and type has stayed quiet after it was sent again. There is nothing to compare with."
	case g.Sampled < CompareAtLeast || g.Quiet < CompareAtLeast:
		return "Too few letters to compare: " + Count(g.Sampled) + " here, and " + Count(g.Quiet) +
			" letters of this queue and type that did not come back."
	case len(g.Different) == 0:
		return "Nothing stands out: the newest " + LetterCount(g.Sampled) +
			" here have the same values as the newest " + Count(g.Quiet) +
			" letters of this queue and type that did not come back."
	}
	return "The newest " + LetterCount(g.Sampled) + " here, compared with the newest " + Count(g.Quiet) +
		" letters of this queue and type that did not come back after a retry or requeue."
}

// CompareAtLeast is the minimum number of letters on each side of a comparison.
const CompareAtLeast = 5

// editable reports whether the page has the forms that change the facts of the group.
func (g GroupView) editable(ctx context.Context) bool {
	return g.Whole && g.Head == 0 && mayUse(ctx, deadletter.VerbTriage)
}

// stateCount is the number of letters of a group in one state.
type stateCount struct {
	state   deadletter.State
	letters int
}

// stateCounts returns the number of letters in each state that occurs.
func (g GroupView) stateCounts() (list []stateCount) {
	for _, s := range []deadletter.State{
		deadletter.StateDead, deadletter.StateHeld, deadletter.StateScheduled, deadletter.StatePublishing,
		deadletter.StateRequeued, deadletter.StateQuiet, deadletter.StateDiscarded,
	} {
		if n := g.Letters[s]; n > 0 {
			list = append(list, stateCount{s, n})
		}
	}
	return list
}

// chosenSeverity returns the severity that a person chose for the group, or "".
func (g GroupView) chosenSeverity() string {
	if !g.Chosen {
		return ""
	}
	return string(g.Severity)
}

// lastDay returns the chart of the letters of the last 24 hours, with a bar for each hour.
func (g GroupView) lastDay() deadletter.Histogram {
	h := deadletter.Histogram{From: g.Now.Add(-24 * time.Hour), To: g.Now, Step: time.Hour}
	for i, n := range g.Spark {
		h.Bars = append(h.Bars, deadletter.Bar{At: h.From.Add(time.Duration(i) * time.Hour), Dead: n})
	}
	return h
}

// verdictOf summarises the result of an operation in a few words.
func verdictOf(o deadletter.Operation) string {
	parts := []string{Number(o.Total, "letter", "letters")}
	for _, r := range []deadletter.Result{
		deadletter.ResultQuiet, deadletter.ResultUnverified, deadletter.ResultCameBack, deadletter.ResultReturned,
		deadletter.ResultFailed, deadletter.ResultChanged, deadletter.ResultSkipped,
	} {
		if n := o.Counts[r]; n > 0 {
			parts = append(parts, Count(n)+" "+strings.ToLower(resultMark(r).Word))
		}
	}
	return strings.Join(parts, ", ")
}

// externalLink reports whether a text can be a link, and also returns the text unchanged. It can be
// a link if it is an http or https URL without invisible characters.
func externalLink(text string) (string, bool) {
	return text, (strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")) &&
		deadletter.Visible(text) == text
}

// wentLive returns the URL that was recorded for a deploy, for example the page of a release. It
// uses the deploy that may have caused the failures of the group. The second result is false if
// there is no such deploy, or if its URL is not a safe link.
func (g GroupView) wentLive() (string, bool) {
	if g.Suspect == nil {
		return "", false
	}
	return externalLink(g.Suspect.Link)
}

// severityChoices are the options of the severity field and their values in the form.
var severityChoices = []struct {
	value deadletter.Severity
	word  string
}{
	{"", "from the rules"},
	{deadletter.SeverityPage, "Page"},
	{deadletter.SeverityNotify, "Notify"},
	{deadletter.SeverityDigest, "Digest"},
}
