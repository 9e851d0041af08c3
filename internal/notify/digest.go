package notify

import (
	"fmt"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// maximum number of groups of a digest or incident that a message lists; the linked page lists all
const digestLines = 40

// digest sets all fields of a message about a digest.
func (m *Message) digest(o Office, d *deadletter.Digest) {
	m.URL = o.link("/triage?tab=digest")
	m.Title, m.Count = digestTitle(d), new(d.Letters)
	m.Text = fmt.Sprintf("From %s to %s.\nThe window before: %s, %s; %s.", zoneTime(d.From), zoneTime(d.To),
		countOf(d.Before.Groups, "group"), countOf(d.Before.Letters, "letter"), recoveredText(d.Before.Recovered))
	more := d.More
	for i, l := range d.Lines {
		if i == digestLines {
			more += len(d.Lines) - i
			break
		}
		m.Lines = append(m.Lines, digestLine(o, l))
	}
	if more > 0 {
		m.Lines = append(m.Lines, Line{Title: "and " + countOf(more, "more group"), URL: m.URL})
	}
	for _, p := range d.Pauses[:min(len(d.Pauses), digestLines)] {
		m.Lines = append(m.Lines, Line{
			Title: line(p.Said(), titleBytes),
			Text:  line(p.Why, factBytes),
			URL:   o.link("/queues"),
		})
	}
}

// digestTitle returns the title of a digest. On a morning without problems, people need to read
// only the title.
func digestTitle(d *deadletter.Digest) string {
	paged := ""
	if d.Paged > 0 {
		paged = "paged " + times(d.Paged)
	}
	if d.Groups == 0 && d.Letters == 0 {
		s := "Nothing died that needs you."
		if d.Recovered > 0 {
			s += fmt.Sprintf(" %s recovered by %s.", countOf(d.Recovered, "letter"), itself(d.Recovered))
		}
		if paged != "" {
			s += " P" + paged[1:] + "."
		}
		return s
	}
	parts := []string{countOf(d.Groups, "group"), countOf(d.Letters, "letter")}
	if d.New > 0 {
		parts = append(parts, numberText(d.New)+" new")
	}
	if d.CameBack > 0 {
		parts = append(parts, numberText(d.CameBack)+" came back")
	}
	if paged == "" {
		paged = "nothing paged"
	}
	return strings.Join(parts, ", ") + "; " + recoveredText(d.Recovered) + "; " + paged
}

func recoveredText(n int) string {
	if n == 0 {
		return "none recovered by themselves"
	}
	return numberText(n) + " recovered by " + itself(n)
}

func itself(n int) string {
	if n == 1 {
		return "itself"
	}
	return "themselves"
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return numberText(n) + " times"
}

// digestLine describes a group in a digest: what failed, how often and where. It also contains
// everything else from which people can judge the group without opening it.
func digestLine(o Office, l deadletter.DigestLine) Line {
	g := &l.Group
	parts := []string{countOf(l.Letters, "letter") + " in " + g.Queue}
	switch g.Status {
	case deadletter.GroupNew:
		parts = append(parts, "new")
	case deadletter.GroupRegressed:
		parts = append(parts, "came back")
	case deadletter.GroupEscalating:
		parts = append(parts, "grows faster")
	}
	if g.Severity != "" && g.Severity != deadletter.SeverityDigest {
		parts = append(parts, string(g.Severity))
	}
	if g.Needs() != l.Letters {
		parts = append(parts, numberText(g.Count)+" dead in all")
	}
	if g.Overdue > 0 {
		parts = append(parts, numberText(g.Overdue)+" overdue")
	}
	if g.Owner != "" {
		parts = append(parts, "owner "+g.Owner)
	}
	if l.Suggestion != "" {
		parts = append(parts, l.Suggestion)
	}
	return Line{
		Title: line(g.Title, titleBytes),
		Text:  line(strings.Join(parts, ", "), factBytes),
		URL:   o.link("/groups/" + g.ID.String()),
		Group: g.ID.String(),
		Count: new(l.Letters),
		Last:  g.LastAt,
	}
}

// zoneTime formats a time in the time zone of the digest.
func zoneTime(t time.Time) string { return t.Format("Mon 2 Jan 15:04 MST") }
