package notify

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Office describes the installation of dlo that sends messages.
type Office struct {
	PublicURL string // beginning of every link
	// distinguishes this installation from others with the same receivers, even if PublicURL
	// changes; "" = PublicURL
	Name string
}

// link returns the address of a page.
func (o Office) link(path string) string { return strings.TrimRight(o.PublicURL, "/") + path }

func (o Office) name() string {
	return cmp.Or(o.Name, strings.TrimRight(o.PublicURL, "/"))
}

// Compose returns the message of a delivery. The message depends only on what the delivery
// contains. It does not depend on the present time or on earlier attempts.
func Compose(o Office, d deadletter.Delivery) Message {
	n := d.Notice
	m := Message{
		ID:   digestOf(o.name(), strconv.FormatInt(n.ID, 10), strconv.FormatInt(n.At.UnixMilli(), 10), n.Key),
		Key:  boundKey("dlo-" + digestOf(o.name())[:8] + "-" + n.Key),
		Kind: n.Kind, Event: eventOf(n.Kind), Severity: n.Severity, At: n.At, URL: o.link(""),
	}
	switch {
	case d.Digest != nil:
		m.digest(o, d.Digest)
	case d.Operation != nil:
		m.operation(o, d.Operation)
	case len(d.Incident) > 1:
		m.incident(o, &d)
	case d.Group != nil:
		m.group(o, d.Group)
	case n.Group != 0:
		m.URL = o.link("/groups/" + n.Group.String())
		m.Facts = []Fact{{factGroup, n.Group.String()}}
		m.Title, m.Text = fmt.Sprintf("%s %s", n.Group, kindWords(n.Kind)), lines(n.Text, textBytes)
	default:
		title, text, _ := strings.Cut(n.Text, "\n")
		m.Title = cmp.Or(line(title, titleBytes), kindWords(n.Kind))
		if len(title) > len(m.Title) {
			text = n.Text // the title was cut, so the text contains all of it
		}
		m.Text = lines(text, textBytes)
	}
	m.Left = endedCauses(&d)
	return m
}

func eventOf(k deadletter.NoticeKind) Event {
	switch {
	case k.Closes():
		return Resolves
	case k == deadletter.NoticeOpened || k == deadletter.NoticeRegressed || k == deadletter.NoticeProblem:
		return Fires
	case k == deadletter.NoticeEscalated || k == deadletter.NoticeUpdated || k == deadletter.NoticeJoined:
		return Updates
	}
	return Told
}

var sayings = map[deadletter.NoticeKind]string{
	deadletter.NoticeOpened:    "needs people",
	deadletter.NoticeRegressed: "came back",
	deadletter.NoticeJoined:    "needs people too",
	deadletter.NoticeEscalated: "grows faster",
	deadletter.NoticeUpdated:   "has many more letters",
	deadletter.NoticeQuiet:     "no longer fails",
	deadletter.NoticeResolved:  "no longer needs anyone",
	deadletter.NoticeRefused:   "a queue refuses requeued letters",
	deadletter.NoticeBreaker:   "retries are held back",
	deadletter.NoticeProblem:   "a problem of dlo",
	deadletter.NoticeOver:      "a problem of dlo is over",
	deadletter.NoticeDigest:    "digest",
	deadletter.NoticeTest:      "a test",

	deadletter.EventGroupQuiet:        "no longer fails",
	deadletter.EventGroupResolved:     "no longer needs anyone",
	deadletter.EventOperationFinished: "an operation is over",
}

// kindWords describes a kind of notice in a few words, without the group of the notice.
func kindWords(k deadletter.NoticeKind) string { return cmp.Or(sayings[k], "a notice") }

// group sets all fields of a message about a group.
func (m *Message) group(o Office, g *deadletter.GroupRow) {
	queue, title := line(g.Queue, factBytes), line(g.Title, titleBytes)
	where := deathText(g)
	switch m.Kind {
	case deadletter.NoticeRegressed:
		m.Title = "Came back: " + where
	case deadletter.NoticeEscalated:
		m.Title = "Grows faster: " + where
	case deadletter.NoticeUpdated:
		m.Title = "Now " + strings.ToLower(where[:1]) + where[1:]
	case deadletter.NoticeJoined:
		m.Title = "Also: " + where
	case deadletter.NoticeResolved, deadletter.EventGroupResolved:
		m.Title = fmt.Sprintf("No longer needs anyone: %s: %s", queue, title)
	case deadletter.NoticeQuiet, deadletter.EventGroupQuiet:
		m.Title = fmt.Sprintf("No longer fails%s: %s: %s", waitingSuffix(g.Needs()), queue, title)
	default:
		m.Title = where
	}
	m.Title = line(m.Title, titleBytes)
	m.URL = o.link("/groups/" + g.ID.String())
	m.Since, m.Count, m.Last = g.FirstAt, new(g.Needs()), g.LastAt
	for _, f := range []Fact{
		{factGroup, g.ID.String()},
		{factQueue, queue},
		{factBroker, g.Broker},
		{factVHost, g.VHost},
		{factReason, g.Reason},
		{factType, g.Type},
		{factLetters, numberText(g.Count)},
		{factOverdue, numberText(g.Overdue)},
		{factWaiting, numberText(g.Waiting)},
		{factSince, timeText(g.FirstAt)},
		{factLast, timeText(g.LastAt)},
		{factOwner, g.Owner},
		{factTicket, g.Ticket},
	} {
		if f.Value != "" && (f.Value != "0" || f.Name == factLetters) {
			m.Facts = append(m.Facts, Fact{f.Name, line(f.Value, factBytes)})
		}
	}
	if text := lines(g.Error, textBytes); text != title {
		m.Text = text
	}
}

// deathText returns how many letters of a group are dead and how many are overdue, in which queue
// they died, and why. If no letter is dead or overdue any more, it only says that letters died.
func deathText(g *deadletter.GroupRow) string {
	s := needyLetters(g) + " in " + line(g.Queue, factBytes)
	if title := line(g.Title, titleBytes); title != "" {
		s += ": " + title
	}
	return s
}

// waitingSuffix returns how many letters wait for people, as the end of a title. It returns "" if
// no letter waits.
func waitingSuffix(letters int) string {
	switch letters {
	case 0:
		return ""
	case 1:
		return ", 1 letter waits for people"
	}
	return ", " + numberText(letters) + " letters wait for people"
}

// needyLetters returns how many letters of a group are dead or overdue, as text.
func needyLetters(g *deadletter.GroupRow) string {
	switch {
	case g.Count > 0 && g.Overdue > 0:
		return countOf(g.Count, "letter") + " dead and " + numberText(g.Overdue) + " overdue"
	case g.Count > 0:
		return countOf(g.Count, "letter") + " dead"
	case g.Overdue > 0:
		return countOf(g.Overdue, "letter") + " overdue"
	}
	return "Letters died" // people have dealt with the letters in the meantime
}

// digestOf returns 32 hex digits of a hash of several texts. The order of the texts matters.
func digestOf(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))[:32]
}

// timeText formats a time for people, in UTC and to the minute.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04 UTC")
}

// numberText formats a number for people, for example 12480 as 12,480.
func numberText(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// countOf formats a number of things for people, for example "1 letter" or "12,480 letters".
func countOf(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return numberText(n) + " " + thing + "s"
}
