package view

import (
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// OverviewPage is the first page: how it stands in a sentence, then in numbers.
type OverviewPage struct {
	Shell
	Range     string // one of Presets
	Arrivals  deadletter.Histogram
	Dead      int
	Held      int
	Scheduled int
	HeldBack  bool                  // a breaker holds retries back
	Groups    []deadletter.GroupRow // those with most letters that need a person first
	MoreThan  bool                  // there are more groups than these
	Disk      string                // what is known of the room for letters; "" = nothing
	Told      []string              // channels that are told of problems; nil = not known
	Unindexed int                   // letters that search by words does not see yet
	Restore   string                // how long a discarded letter can be restored; "" when not known
	FirstRun  *FirstRun
	Deploys   []deadletter.Deploy // in the time of the chart, newest first
}

// tile is a number that leads to its letters.
type tile struct{ Label, Icon, Tone, Value, Sub, Link string }

// sums adds up the outcomes of all bars.
func sums(bars []deadletter.Bar) deadletter.Bar {
	var all deadletter.Bar
	for _, b := range bars {
		all.Waiting += b.Waiting
		all.Recovered += b.Recovered
		all.Dead += b.Dead
		all.Discarded += b.Discarded
	}
	return all
}

func (p OverviewPage) tiles() []tile {
	in := sums(p.Arrivals.Bars)
	since := " since:" + p.Range
	recovered := "none of the arrivals"
	if in.Recovered > 0 {
		recovered = Percent(in.Recovered, in.Total()) + " of the arrivals"
	}
	discarded := "restorable until purged"
	if p.Restore != "" {
		discarded = "restorable " + p.Restore
	}
	return []tile{
		{"Dead", "x", "bad", Count(p.Dead), "+" + Count(in.Dead) + " in " + p.rangeWord(), LettersURL("state:dead", "", "")},
		{"Held", "pause", "", Count(p.Held), "stopped by a guard or a person", LettersURL("state:held", "", "")},
		{"Scheduled for retry", "clock", "wait", Count(p.Scheduled), "wait for their retry", LettersURL("state:scheduled", "", "")},
		{"Recovered, " + p.short(), "check", "good", Count(in.Recovered), recovered, LettersURL("state:settled"+since, "", "")},
		{"Discarded, " + p.short(), "trash", "", Count(in.Discarded), discarded, LettersURL("state:discarded"+since, "", "")},
	}
}

func (p OverviewPage) rangeWord() string {
	for _, r := range Presets {
		if r.Value == p.Range {
			return "the " + strings.ToLower(r.Name)
		}
	}
	return line(p.Range, 20)
}

func (p OverviewPage) short() string { return shortRange(p.Range) }

// shortRange writes 24h as 24 h.
func shortRange(r string) string {
	if r == "" {
		return ""
	}
	return r[:len(r)-1] + " " + r[len(r)-1:]
}

// OverviewURL is the overview of a time range.
func OverviewURL(r string) string { return "/?range=" + r }

// judgement is the verdict of the overview.
type judgement struct {
	tone, icon, title string
	text              []Span
	link, word        string // of its button; "" = none
}

// verdict says in words how it stands: what fails now comes before what waits for a person.
func (p OverviewPage) verdict() judgement {
	for _, b := range p.Brokers {
		if !b.Up {
			return judgement{"bad", "stop", "Broker " + line(b.Name, 60) + " is not connected. What is stored here is complete.", b.down(p.Now), "", ""}
		}
	}
	failing := p.failing()
	switch {
	case len(failing) == 1:
		g := failing[0]
		return judgement{"bad", "stop", queueName(g.Queue) + " is failing. Everything else is holding.", p.story(g), GroupURL(g.ID), "Open group " + g.ID.String()}
	case len(failing) > 1:
		g := failing[0]
		names := queueName(g.Queue) + " and " + queueName(failing[1].Queue) + " are failing."
		if len(failing) > 2 {
			names = Count(len(failing)) + " causes are failing, first of all " + queueName(g.Queue) + "."
		}
		if g.Queue == failing[1].Queue && len(failing) == 2 {
			names = queueName(g.Queue) + " is failing for two causes."
		}
		return judgement{"bad", "stop", names, p.story(g), LettersURL("state:dead since:1h", "", ""), "Open the letters"}
	case p.Dead > 0:
		return judgement{"", "warn", LetterCount(p.Dead) + map[bool]string{true: " needs", false: " need"}[p.Dead == 1] + " a person. Nothing new died in the last hour.", nil, LettersURL("state:dead", "", ""), "Open the letters"}
	case p.Held > 0:
		return judgement{"", "pause", LetterCount(p.Held) + " held. Nothing is dead.", []Span{{Text: "A guard or a person stopped them; each says why."}}, LettersURL("state:held", "", ""), "Open the letters"}
	case p.HeldBack:
		return judgement{"", "warn", "Almost all retries come back. No letter is dead yet.", p.waiting(), "/queues", "Open the queues"}
	case p.paged() != nil:
		return judgement{"bad", "stop", line(p.paged().Title, 200), p.paged().said(), "", ""}
	case p.Scheduled > 0:
		return judgement{"good", "check", "Nothing needs a person yet.", p.waiting(), "", ""}
	}
	return judgement{"good", "check", "Nothing needs a person.", []Span{{Text: "No letter waits, and none is dead."}}, "", ""}
}

// paged is the first problem that is worth a page: with one, nobody is told that nothing needs a
// person.
func (p OverviewPage) paged() *Problem {
	for i := range p.Problems {
		if p.Problems[i].Pages {
			return &p.Problems[i]
		}
	}
	return nil
}

// waiting says how many letters wait for their retry.
func (p OverviewPage) waiting() []Span {
	return []Span{{Text: LetterCount(p.Scheduled) + " " + map[bool]string{true: "waits", false: "wait"}[p.Scheduled == 1] + " for a retry."}}
}

// overdueWord says how many letters of a group wait for longer than their retries should have
// lasted.
func overdueWord(g deadletter.GroupRow) string {
	if g.Overdue == 0 {
		return ""
	}
	return ", " + Count(g.Overdue) + " of them overdue"
}

// overdueToo is overdueWord beside those that are dead.
func overdueToo(g deadletter.GroupRow) string {
	if g.Overdue == 0 {
		return ""
	}
	return ", " + Count(g.Overdue) + " overdue"
}

// failing lists the groups that needed a person for new letters within the last hour, or whose
// retries are held back for longer than they should have lasted, most of them first.
func (p OverviewPage) failing() []deadletter.GroupRow {
	var out []deadletter.GroupRow
	for _, g := range p.Groups {
		if g.Overdue > 0 || g.Count > 0 && !g.LastAt.IsZero() && p.Now.Sub(g.LastAt) < time.Hour {
			out = append(out, g)
		}
	}
	return out
}

func (p OverviewPage) story(g deadletter.GroupRow) []Span {
	return []Span{
		{Text: LetterCount(g.Needs()) + " of "},
		{Text: queueName(g.Queue), Code: true},
		{Text: " " + map[bool]string{true: "needs", false: "need"}[g.Needs() == 1] + " a person" + overdueWord(g) + ": " + line(g.Title, 160) + ". First " + Ago(p.Now, g.FirstAt) + ", last " + Ago(p.Now, g.LastAt) + "."},
	}
}

// fact is a line of the health panel.
type fact struct {
	Name, Tone string
	Text       []Span
}

// health lists what dlo itself needs, each with what is known of it.
func (p OverviewPage) health() []fact {
	var out []fact
	for _, b := range p.Brokers {
		name := "Broker"
		if len(p.Brokers) > 1 {
			name += " " + line(b.Name, 40)
		}
		if b.Up {
			out = append(out, fact{name, "good", []Span{{Text: line(b.Detail, 80) + ", connected " + Ago(p.Now, b.Since)}}})
		} else {
			out = append(out, fact{name, "bad", []Span{{Text: "not connected: " + line(b.Detail, 120)}}})
		}
		for _, i := range b.Inboxes[:min(len(b.Inboxes), 20)] {
			tone, word := "good", " is read"
			switch {
			case !b.Up:
				tone, word = "bad", " waits for the broker"
			case p.unread(i):
				tone, word = "bad", " is not read"
			}
			out = append(out, fact{"Inbox", tone, []Span{{Text: line(i, 80), Code: true}, {Text: word}}})
		}
	}
	if len(p.Brokers) == 0 {
		out = append(out, fact{"Broker", "", []Span{{Text: "unknown"}}})
	}
	if p.Disk != "" {
		out = append(out, fact{"Disk", "good", []Span{{Text: line(p.Disk, 120)}}})
	}
	if p.Unindexed > 0 {
		out = append(out, fact{"Search", "warn", []Span{{Text: LetterCount(p.Unindexed) + " cannot be found by words yet"}}})
	} else {
		out = append(out, fact{"Search", "good", []Span{{Text: "every letter can be found"}}})
	}
	switch {
	case p.Told == nil:
	case len(p.Told) == 0:
		out = append(out, fact{"Pager", "warn", []Span{{Text: "nobody is told when dlo itself has a problem: no rule pages, and "}, {Text: "problems.notify", Code: true}, {Text: " names no channel"}}})
	default:
		out = append(out, fact{"Pager", "good", []Span{{Text: "problems of dlo go to " + line(strings.Join(p.Told, ", "), 120)}}})
	}
	return out
}

// unread says whether a problem of the shell is about an inbox.
func (p OverviewPage) unread(inbox string) bool {
	for _, problem := range p.Problems {
		if problem.Unread && problem.Inbox == inbox {
			return true
		}
	}
	return false
}

func (p OverviewPage) healthy() bool {
	for _, f := range p.health() {
		if f.Tone == "bad" {
			return false
		}
	}
	return len(p.Problems) == 0
}

// deployed names the newest deploys of the chart.
func deployed(list []deadletter.Deploy) string {
	const named = 3
	var names []string
	for _, d := range list[:min(len(list), named)] {
		names = append(names, strings.TrimSpace(line(d.Service, 40)+" "+line(d.Version, 40)))
	}
	text := "Deployed: " + strings.Join(names, ", ")
	if more := len(list) - named; more > 0 {
		text += " and " + Count(more) + " more"
	}
	return text
}

// urgent says whether a group is painted red: it pages.
func urgent(g deadletter.GroupRow) bool { return g.Severity == deadletter.SeverityPage }

func groupTitle(g deadletter.GroupRow) string {
	if g.Title == "" {
		return g.ID.String()
	}
	return line(g.Title, 160)
}
