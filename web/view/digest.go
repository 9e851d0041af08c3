package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// DigestView shows the morning digest as it would be sent now.
type DigestView struct {
	deadletter.Digest
	Next     time.Time // when the next digest is due; a zero time means never
	Channels []string  // the channels to which the digest is sent
	Sent     string    // the local day of the last digest, or ""

	// Operations and Decisions contain what people have done since the time From, newest first.
	Operations []deadletter.Operation
	Decisions  []deadletter.Decided

	Fixed map[deadletter.GroupID]deadletter.Deploy // for each group, the deploy after which no letter of the group died
}

// ready finds the groups of the digest that a deploy may have fixed, because no letter has died in
// them since the deploy. It returns how many letters of these groups are dead, held or overdue, the
// number of the groups, and a link to the dead and held letters.
func (d DigestView) ready() (letters, groups int, link string) {
	var ids []string
	for _, l := range d.Lines {
		if _, ok := d.Fixed[l.Group.ID]; ok && l.Group.Needs() > 0 {
			letters, ids = letters+l.Group.Needs(), append(ids, l.Group.ID.String())
		}
	}
	return letters, len(ids), LettersURL("group:"+strings.Join(ids, ",")+" state:dead,held", "", "")
}

// evidence returns a short text that helps people decide about a group. If a deploy may have fixed
// the group, because no letter of it has died since, the text names that deploy. Otherwise, the
// text is the suggested action.
func (d DigestView) evidence(l deadletter.DigestLine) string {
	if deploy, ok := d.Fixed[l.Group.ID]; ok {
		return "Not failing since " + line(deploy.Service+" "+deploy.Version, 60) + ": ready to requeue"
	}
	return line(l.Suggestion, 100)
}

func (d DigestView) verdict() string {
	if d.Groups == 0 {
		return "All clear: nothing needs you."
	}
	parts := []string{Number(d.Groups, "group", "groups"), LetterCount(d.Letters)}
	if d.New > 0 {
		parts = append(parts, Count(d.New)+" new")
	}
	if d.CameBack > 0 {
		parts = append(parts, Count(d.CameBack)+" came back")
	}
	return strings.Join(parts, ", ") + "."
}

func (d DigestView) periodWords() string {
	return "Since " + d.From.Format("Mon 2 Jan 15:04") + ", until " + d.To.Format("Mon 2 Jan 15:04 MST")
}

func (d DigestView) comparisonWords() string {
	return fmt.Sprintf("before: %s in %s", Count(d.Before.Letters), Number(d.Before.Groups, "group", "groups"))
}

func (d DigestView) nextWords() string {
	if d.Next.IsZero() {
		return "It is not sent automatically."
	}
	text := "The next one is due " + d.Next.Format("Mon 2 Jan 15:04 MST")
	if len(d.Channels) == 0 {
		return text + ", and shown here only: no channel is configured."
	}
	return text + ", to " + line(strings.Join(d.Channels, ", "), 120) + "."
}

// asMessage returns the digest as text.
func (d DigestView) asMessage() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Dead letters since %s\n", d.From.Format("Mon 15:04"))
	for _, l := range d.Lines {
		fmt.Fprintf(&b, "%6s  %-20s %s\n", "+"+Count(l.Letters), line(l.Group.Queue, 20), line(l.Group.Title, 100))
	}
	for _, f := range d.Pauses {
		fmt.Fprintln(&b, line(f.Said(), 200))
	}
	return b.String()
}
