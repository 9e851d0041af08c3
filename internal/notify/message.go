package notify

import (
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Event says what a message does to the incident of its key.
type Event string

const (
	Fires    Event = "fires"    // something needs people
	Updates  Event = "updates"  // it still does, and has changed
	Resolves Event = "resolves" // it needs nobody any more
	Told     Event = "told"     // said once: nothing will close it
)

// Message is what a channel says. No text in it is escaped for anything, and all may come from
// letters, so whoever renders one treats every field but ID, Event, Severity and URL as hostile.
type Message struct {
	ID       string // of one notice of one installation; the same whenever it is sent again
	Key      string // of the cause: messages of one key are one incident, and one thread
	Kind     deadletter.NoticeKind
	Event    Event
	Severity deadletter.Severity
	Title    string // one line
	Facts    []Fact // in the order in which they are shown; empty ones are left out
	Text     string // lines; "" = the title says it all
	Lines    []Line // one a group, of an incident of several, of a digest or of several notices at once
	URL      string // where to go on
	At       time.Time
	Since    time.Time // zero = not known

	// For machines, which read numbers and times rather than text.
	Count     *int      // letters that need people; nil = it is not about any
	Last      time.Time // when the last one died; zero = not known
	Operation *deadletter.Operation
	Left      []Cause // groups that belonged to the incident, and that nobody is told of any more
}

// Cause is what an alert is known by.
type Cause struct{ Broker, VHost, Queue, Group string }

// Fact is something known about a cause.
type Fact struct{ Name, Value string }

// Line is one group among several.
type Line struct {
	Title, Text, URL string
	Group            string // "" = it is about none
	Count            *int   // as of a Message
	Last             time.Time
}

// Names of facts.
const (
	factGroup   = "group"
	factQueue   = "queue"
	factBroker  = "broker"
	factVHost   = "vhost"
	factReason  = "reason"
	factType    = "type"
	factLetters = "letters"
	factOverdue = "overdue"
	factWaiting = "waiting"
	factSince   = "since"
	factLast    = "last"
	factOwner   = "owner"
	factTicket  = "ticket"
	factCauses  = "causes"
)

// Fact returns the value of a fact, or "".
func (m *Message) Fact(name string) string {
	for _, f := range m.Facts {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// Bounds of what a message says, in bytes. The page behind the link shows the rest.
const (
	titleBytes = 250 // a line in a chat, in a list of mails, on a telephone
	factBytes  = 300
	textBytes  = 1500
)

// line returns s as at most n bytes of visible text on one line.
func line(s string, n int) string {
	return deadletter.Cut(deadletter.Visible(deadletter.Cut(s, n)), n)
}

// lines is line that keeps line breaks.
func lines(s string, n int) string {
	return deadletter.Cut(deadletter.VisibleLines(deadletter.Cut(s, n)), n)
}

// linkName says where a link leads: to a group by its id.
func linkName(url string) string {
	if i := strings.LastIndex(url, "/groups/G-"); i >= 0 && strings.Trim(url[i+len("/groups/G-"):], "0123456789") == "" {
		return "Open " + url[i+len("/groups/"):]
	}
	switch {
	case strings.HasSuffix(url, "?tab=digest"):
		return "Open the digest"
	case strings.Contains(url, "/triage?q=group"):
		return "Open the groups"
	}
	return "Open Dead Letter Office"
}

const keyBytes = 255 // the longest dedup_key of PagerDuty

// boundKey returns a key as it is where that is short and visible, else one that stands for it.
func boundKey(key string) string {
	if key != "" && len(key) <= keyBytes && deadletter.Visible(key) == key {
		return key
	}
	return "dlo-" + digestOf(key)
}
