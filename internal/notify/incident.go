package notify

import (
	"net/url"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// incident fills in the message about an incident, which consists of several groups. The message
// has a line for each of the first groups. The first group identifies the incident.
func (m *Message) incident(o Office, d *deadletter.Delivery) {
	groups := d.Incident
	m.group(o, &groups[0])
	m.Text, m.URL = "", o.groups(groups)
	letters := 0
	queues := map[string]bool{}
	for i := range groups {
		g := &groups[i]
		letters += g.Needs()
		queues[g.Queue] = true
		if g.FirstAt.Before(m.Since) {
			m.Since = g.FirstAt
		}
		if g.LastAt.After(m.Last) {
			m.Last = g.LastAt
		}
		if !m.Kind.Closes() && louder(g.Severity, m.Severity) {
			m.Severity = g.Severity
		}
		if i < digestLines {
			m.Lines = append(m.Lines, groupLine(o, g))
		}
	}
	if more := len(groups) - digestLines; more > 0 {
		m.Lines = append(m.Lines, Line{Title: "and " + countOf(more, "more group"), URL: m.URL})
	}
	m.Count = &letters
	m.setFacts(map[string]string{
		factLetters: numberText(letters),
		factCauses:  numberText(len(groups)),
		factSince:   timeText(m.Since),
		factLast:    timeText(m.Last),
	})
	where := line(groups[0].Queue, factBytes)
	if len(queues) > 1 {
		where = countOf(len(queues), "queue")
	}
	causes := countOf(len(groups), "cause") + " in " + where
	if d.After != nil {
		causes += " after " + line(d.After.Service+" "+d.After.Version, factBytes)
	}
	switch m.Kind {
	case deadletter.NoticeQuiet:
		m.Title = "No longer fails" + waitingSuffix(letters) + ": " + causes
	case deadletter.NoticeResolved:
		m.Title = "No longer needs anyone: " + causes
	case deadletter.NoticeOpened, deadletter.NoticeRegressed:
		m.Title = causes + ", " + countOf(letters, "letter") + " dead"
	default:
		m.Title = "Now " + causes + ", " + countOf(letters, "letter") + " dead"
	}
	m.Title = line(m.Title+": "+line(groups[0].Title, titleBytes)+" and "+numberText(len(groups)-1)+" more", titleBytes)
}

// setFacts gives new values to the facts in a message about an incident. The values of one group
// are not enough, because an incident can have several groups. setFacts changes only facts that the
// message already contains. Only the number of causes may be added.
func (m *Message) setFacts(values map[string]string) {
	for i, f := range m.Facts {
		if v, ok := values[f.Name]; ok {
			m.Facts[i].Value = v
			delete(values, f.Name)
		}
	}
	if v := values[factCauses]; v != "" {
		m.Facts = append(m.Facts, Fact{factCauses, v})
	}
}

// groupLine returns the line about one group of an incident.
func groupLine(o Office, g *deadletter.GroupRow) Line {
	one := Message{Kind: deadletter.NoticeOpened}
	switch g.Status {
	case deadletter.GroupRegressed:
		one.Kind = deadletter.NoticeRegressed
	case deadletter.GroupEscalating:
		one.Kind = deadletter.NoticeEscalated
	}
	one.group(o, g)
	return Line{
		Title: one.Title,
		Text:  lineText(&one),
		URL:   one.URL,
		Group: g.ID.String(),
		Count: one.Count,
		Last:  g.LastAt,
	}
}

// groups returns the URL of a page that lists the given groups.
func (o Office) groups(list []deadletter.GroupRow) string {
	names := make([]string, 0, len(list))
	for _, g := range list[:min(len(list), digestLines)] {
		names = append(names, g.ID.String())
	}
	return o.link("/triage?q=" + url.QueryEscape("group:"+strings.Join(names, ",")))
}

// endedCauses returns the groups that no longer belong to an incident, so that their alerts end.
func endedCauses(d *deadletter.Delivery) []Cause {
	list := d.Left
	if d.Notice.Kind.Closes() && len(d.Incident) > 0 {
		list = append(list[:len(list):len(list)], d.Incident...)
	}
	var causes []Cause
	for _, g := range list {
		causes = append(causes, Cause{g.Broker, g.VHost, line(g.Queue, factBytes), g.ID.String()})
	}
	return causes
}
