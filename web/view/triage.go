package view

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// TriagePage is the content of the page /triage.
type TriagePage struct {
	Shell
	Tab        TriageTab
	Query      string
	QueryError *query.Error
	InRetry    InRetry
	DigestSize int // the number of groups in the current digest
	Rows       []deadletter.GroupRow
	After      string // the cursor of this page; "" is the first page
	Next       string // the cursor of the next page, or ""
	Peek       *GroupView
	Morning    time.Time // when the next digest is due, in its time zone
	People     []string  // the known names of people to whom groups can be assigned
	Done       *Done     // the decision that was just made
	Halted     []deadletter.Operation
	Decisions  []deadletter.Decided // the decisions of today
	Digest     *DigestView
	WorkedOn   map[deadletter.GroupID]deadletter.Operation // the newest unfinished operation of each group
}

// TriageTab is one of the tabs of the page.
type TriageTab string

const (
	TriageInbox    TriageTab = "inbox"
	TriageMine     TriageTab = "mine"
	TriageRetrying TriageTab = "retrying"
	TriageDigest   TriageTab = "digest"
	TriageQuiet    TriageTab = "quiet"
	TriageSnoozed  TriageTab = "snoozed"
	TriageResolved TriageTab = "resolved"
)

// ParseTriageTab parses the tab in a URL. It returns the inbox for an unknown tab.
func ParseTriageTab(s string) TriageTab {
	switch t := TriageTab(s); t {
	case TriageMine, TriageRetrying, TriageDigest, TriageQuiet, TriageSnoozed, TriageResolved:
		return t
	}
	return TriageInbox
}

// Done describes a decision that was just made. The field Decision is the id for undoing it, or 0
// if there is nothing to undo.
type Done struct {
	Decision int64
	Text     string
	Undone   string // the groups of an undone decision, separated by spaces
}

// StayWords returns a sentence that says that n letters of resolved groups stay dead or held.
func StayWords(n int) string {
	if n == 0 {
		return ""
	}
	return ". " + LetterCount(n) + plural(n, " stays dead or held.", " stay dead or held.")
}

// DecidedWords describes a decision in a sentence, for example "Resolved 3 groups".
func DecidedWords(d deadletter.Decided) string {
	what := Number(len(d.Groups), "group", "groups")
	if len(d.Groups) == 1 {
		what = d.Groups[0].String()
		if d.Title != "" {
			what += ` "` + line(d.Title, 80) + `"`
		}
	}
	kind := d.Kind
	if kind == "severity" || kind == "ticket" || kind == "note" {
		kind = "changed the " + kind + " of"
	}
	text := upperFirst(kind) + " " + what
	if d.Detail != "" && d.Kind != "note" {
		text += " " + line(d.Detail, 120)
	}
	if n := len(d.Skipped); n > 0 {
		names := make([]string, n)
		for i, s := range d.Skipped {
			names[i] = s.Group.String()
		}
		text += "; " + Number(n, "group", "groups") + " left alone: " + strings.Join(names, ", ")
	}
	return text
}

// TriageURL returns the URL of a tab with a query. The cursor selects a page.
func TriageURL(tab TriageTab, q, cursor string) string {
	if tab == TriageInbox {
		tab = ""
	}
	return address("/triage", "tab", string(tab), "q", q, "after", cursor)
}

func (p TriagePage) pageURL() string { return TriageURL(p.Tab, p.Query, p.After) }

type triageTab struct {
	tab   TriageTab
	word  string
	count int
}

func (p TriagePage) tabs() []triageTab {
	return []triageTab{
		{TriageInbox, "Inbox", p.Groups.Inbox},
		{TriageMine, "Mine", p.Groups.Mine},
		{TriageRetrying, "Retrying", p.InRetry.Groups},
		{TriageDigest, "Digest", p.DigestSize},
		{TriageQuiet, "Quiet", p.Groups.Quiet},
		{TriageSnoozed, "Snoozed", p.Groups.Snoozed},
		{TriageResolved, "Resolved", p.Groups.Resolved},
	}
}

func (p TriagePage) foundWords() string {
	return Number(p.Groups.Inbox, "group", "groups") + ", " + Number(p.Groups.Letters, "letter needs", "letters need") +
		" a person"
}

// section contains the groups of one severity.
type section struct {
	word  string
	count string // the number of groups with that severity on all pages, or "" if it is not known
	rows  []deadletter.GroupRow
}

// sections splits the rows of the tabs "Inbox" and "Mine" by severity. Other tabs have one section
// without a title.
func (p TriagePage) sections() []section {
	if p.Tab != TriageInbox && p.Tab != TriageMine {
		return []section{{rows: p.Rows}}
	}
	var list []section
	for _, s := range []struct {
		severity deadletter.Severity
		word     string
	}{
		{deadletter.SeverityPage, "Page now"},
		{deadletter.SeverityNotify, "Notify, working hours"},
		{deadletter.SeverityDigest, "Morning digest"},
	} {
		sec := section{word: s.word}
		for _, r := range p.Rows {
			if cmp.Or(r.Severity, deadletter.SeverityDigest) == s.severity {
				sec.rows = append(sec.rows, r)
			}
		}
		if len(sec.rows) > 0 {
			sec.count = p.groupsOf(s.severity, len(sec.rows))
			list = append(list, sec)
		}
	}
	return list
}

// groupsOf returns the number of groups of a severity on all pages of the list. It returns "" if
// that is not known.
func (p TriagePage) groupsOf(s deadletter.Severity, here int) string {
	switch {
	case p.After == "" && p.Next == "":
		return Count(here)
	case p.Tab != TriageInbox || p.Query != "":
		return ""
	case s == deadletter.SeverityDigest:
		return Count(p.Groups.Severities[s] + p.Groups.Severities[""])
	}
	return Count(p.Groups.Severities[s])
}

// groupStatusMarks are the marks of the statuses that a row of a group shows.
var groupStatusMarks = map[deadletter.GroupStatus]mark{
	deadletter.GroupNew:        {"New", "bell", "accent"},
	deadletter.GroupRegressed:  {"Regressed", "regress", "warn"},
	deadletter.GroupEscalating: {"Escalating", "up", "bad"},
	deadletter.GroupSnoozed:    {"Snoozed", "snooze", ""},
	deadletter.GroupResolved:   {"Resolved", "check", "good"},
}

// backWords says since when a group is failing again, and after what it came back.
func backWords(now time.Time, g deadletter.GroupRow) []Span {
	return []Span{{Text: "Back since "}, clockSpan(now, g.Back.Since), {Text: ", " + g.Back.Cause()}}
}

// whatDied returns the reason for the deaths in a group and the type of its letters. Rows show
// both, because two groups may differ in nothing else.
func whatDied(g deadletter.GroupRow) string {
	text := line(g.Reason, 40)
	if g.Type != "" {
		_, last := typeParts(g.Type)
		text += " " + line(last, 60)
	}
	return strings.TrimSpace(text)
}

// noteWords returns the note of a group in one line. The line begins with the author if that is
// known.
func noteWords(ctx context.Context, g deadletter.GroupRow) string {
	note := strings.ReplaceAll(g.Note, "\n", " ")
	if g.NoteBy == "" {
		return note
	}
	return person(ctx, g.NoteBy) + ": " + note
}

// snoozeWords says when a snoozed group returns to the list.
func snoozeWords(g deadletter.GroupRow) string {
	text := "until " + dayClock(g.Snooze.Until.UTC())
	if g.Snooze.After > 0 {
		text += ", or " + Number(g.Snooze.After, "more letter", "more letters")
	}
	if g.Snooze.Queue {
		text += ", or another queue has it"
	}
	return text
}

// resolvedWords says when a group was resolved, by whom and in which version.
func resolvedWords(ctx context.Context, now time.Time, g deadletter.GroupRow) string {
	text := "resolved " + When(now, g.Resolved.At) + " by " + person(ctx, g.Resolved.By)
	if g.Resolved.Version != "" {
		text += " in " + line(g.Resolved.Version, 60)
	}
	return text
}

// rangeWords says which part of the list is on the page.
func (p TriagePage) rangeWords() string {
	switch {
	case p.Next == "" && p.After == "" && len(p.Rows) == 1:
		return "1 group"
	case p.Next == "" && p.After == "":
		return "All " + Number(len(p.Rows), "group", "groups") + " shown"
	case p.Next == "":
		return "The last " + Number(len(p.Rows), "group", "groups")
	}
	return Number(len(p.Rows), "group", "groups") + " on this page"
}

// snoozeChoice is an option of the form for snoozing. Its value is a duration or a time.
type snoozeChoice struct {
	value, word string
	chosen      bool
}

// snoozes returns the options of the form for snoozing, each with the day and the time at which it
// ends. The parameter "morning" is the time at which the next digest is due; its time of day is
// also that of Monday.
func snoozes(now, morning time.Time) []snoozeChoice {
	today := now.In(morning.Location())
	choice := func(word string, d time.Duration) snoozeChoice {
		return snoozeChoice{d.String(), word + ", until " + dayClock(today.Add(d)), false}
	}
	word := dayClock(morning)
	if today.AddDate(0, 0, 1).YearDay() == morning.YearDay() {
		word = "tomorrow, " + word
	}
	list := []snoozeChoice{choice("4 hours", 4*time.Hour), {Stamp(morning), word, true}}
	monday := morning
	for monday.Weekday() != time.Monday {
		monday = monday.AddDate(0, 0, 1)
	}
	if monday != morning {
		list = append(list, snoozeChoice{Stamp(monday), dayClock(monday), false})
	}
	const day = 24 * time.Hour
	return append(
		list, choice("3 days", 3*day), choice("a week", 7*day), choice("30 days", 30*day),
		snoozeChoice{"", "the maximum, until " + dayClock(today.Add(deadletter.MaxSnooze)), false},
	)
}

// dayClock formats a time with its day, in its own time zone.
func dayClock(t time.Time) string { return t.Format("Mon 2 Jan 15:04 MST") }

// quietWords describes the groups of the tab "Quiet".
func (p TriagePage) quietWords() string {
	return p.rangeWords() + ": their letters were sent again, and none of them came back while it was watched."
}

// resolveWord returns the text of the button that resolves groups.
func resolveWord(groups []deadletter.GroupRow) string {
	if len(groups) == 1 {
		return "Resolve " + groups[0].ID.String()
	}
	return "Resolve all " + Count(len(groups))
}

// emptyWords returns the title and the text of a tab without groups.
func (p TriagePage) emptyWords() (title, text string) {
	switch {
	case p.Query != "":
		return "No group matches", "Take a term away, or look into another tab."
	case p.Tab == TriageMine:
		return "Nothing is assigned to you", "Assign a group from the inbox with the key a."
	case p.Tab == TriageRetrying:
		return "Nothing is retried", "A group is here while its letters are retried and none of them needs a person."
	case p.Tab == TriageQuiet:
		return "No group is quiet", "A group comes here when its letters were sent again and none of them came back."
	case p.Tab == TriageSnoozed:
		return "Nothing is snoozed", "A snoozed group comes back automatically, at its time or when it gets worse."
	case p.Tab == TriageResolved:
		return "Nothing resolved yet", "A resolved group reopens as regressed if it fails again."
	}
	return "Inbox zero", "No group has letters that need a person."
}

// rowProgress returns a summary of the progress of an operation for one row.
func rowProgress(o deadletter.Operation, n progress) string {
	words := Count(n.Done) + " of " + Count(n.Total)
	switch {
	case o.State != deadletter.OperationRunning:
		words += ", " + string(o.State)
	case o.Phase == deadletter.PhaseWatching:
		words += ", watched"
	}
	if n.Back > 0 {
		words += ", " + Count(n.Back) + " came back"
	}
	return words
}
