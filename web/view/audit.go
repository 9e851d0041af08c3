package view

import (
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
)

// AuditPage is the log of everything that people and dlo did.
type AuditPage struct {
	Shell
	Entries    []AuditRow // the newest entry comes first
	Query      string
	QueryError *query.Error
	After      string // the cursor of this page; "" is the newest page
	Next       string // the cursor of the next page, or "" at the end
}

// AuditRow is one act in the log. Links contains the URL of the page of each target, or "" if the
// target has no page.
type AuditRow struct {
	deadletter.Act
	Links      []string
	Restorable bool // letters that the act discarded are still discarded
}

func (p AuditPage) url(path, after string) string {
	return address(path, "q", p.Query, "after", after)
}

func entriesWord(n int, which string) string {
	return Number(n, which+"entry", which+"entries")
}

// shownTargets is the maximum number of targets that a row shows for one act.
const shownTargets = 3

// targetKindWord returns the word that a row shows before the name of a target.
func targetKindWord(k deadletter.TargetKind) string {
	if k == deadletter.TargetSchema {
		return "schema set"
	}
	return line(string(k), 20)
}

// targetName returns the name of a target in the form that a row shows.
func targetName(t deadletter.Target) string {
	if t.Kind == deadletter.TargetLetter {
		return deadletter.ID(t.Name).Short()
	}
	return line(t.Name, 120)
}

const notRecorded = "not recorded"

func throughWord(w deadletter.Way) string {
	switch w {
	case deadletter.WayAPI:
		return "API"
	case deadletter.WayCLI:
		return "CLI"
	case "":
		return notRecorded
	}
	return line(string(w), 20)
}

// askedWords describes an act by two numbers: how many items the act had to handle, and how many it
// handled. It returns "" if it had to handle one item and handled it.
func (e AuditRow) askedWords() string {
	switch {
	case e.Asked == deadletter.UnknownAmount || e.Done == deadletter.UnknownAmount:
		return "asked and done: " + notRecorded
	case e.Action.Past() != "":
		return "asked " + Count(e.Asked) + ", " + e.Action.Past() + " " + Count(e.Done)
	case e.Asked == 1 && e.Done == 1:
		return ""
	}
	return "asked " + Count(e.Asked) + ", done " + Count(e.Done)
}

// auditMark returns the icon and the tone of a kind of act.
func auditMark(kind string) mark {
	if v := deadletter.Verb(kind); v.Past() != "" {
		m := mark{Word: kind, Icon: verbIcon(v)}
		if v.Sends() {
			m.Tone = "good"
		} else if isDestructive(v) {
			m.Tone = "bad"
		}
		return m
	}
	if m, ok := actMarks[kind]; ok {
		return mark{kind, m.Icon, m.Tone}
	}
	return mark{line(kind, 40), "info", ""}
}

// actMarks are the marks of the acts that have one of their own; the word is the kind of the act.
var actMarks = map[string]mark{
	deadletter.ActCancelled:      {Icon: "x", Tone: "warn"},
	deadletter.ActPaused:         {Icon: "pause", Tone: "warn"},
	deadletter.ActRetriesPaused:  {Icon: "pause", Tone: "warn"},
	deadletter.ActResumed:        {Icon: "play"},
	deadletter.ActRetriesResumed: {Icon: "play"},
	deadletter.ActStopped:        {Icon: "stop", Tone: "bad"},
	deadletter.ActDone:           {Icon: "check", Tone: "good"},
	deadletter.ActResolved:       {Icon: "check", Tone: "good"},
	deadletter.ActSnoozed:        {Icon: "snooze"},
	deadletter.ActAssigned:       {Icon: "user"},
	deadletter.ActUnassigned:     {Icon: "user"},
	deadletter.ActRevealed:       {Icon: "info", Tone: "warn"},
	deadletter.ActRetention:      {Icon: "trash"},
}

// logTime formats the time of an entry. It omits the date if the entry is of today.
func logTime(now, t time.Time) string {
	t = t.UTC()
	if t.Format("2006-01-02") == now.UTC().Format("2006-01-02") {
		return t.Format("15:04:05")
	}
	return t.Format("2 Jan 15:04")
}
