package notify

import (
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Event is the effect of a message on the incident with its key.
type Event string

const (
	Fires    Event = "fires"    // something needs people
	Updates  Event = "updates"  // people are still needed, but something has changed
	Resolves Event = "resolves" // nobody is needed any more
	Told     Event = "told"     // sent once: nothing will close it
)

// Message is the content that a channel sends. Its texts are not escaped and may come from letters.
// When rendering it, treat every field except ID, Event, Severity and URL as hostile.
type Message struct {
	ID       string // identifies one notice of one installation; unchanged when it is sent again
	Key      string // key of the cause: equal keys are one incident and one thread
	Kind     deadletter.NoticeKind
	Event    Event
	Severity deadletter.Severity
	Title    string // one line
	Facts    []Fact // in display order; empty ones are left out
	Text     string // lines; "" = the title says it all
	Lines    []Line // one per group, for an incident, a digest or several notices sent together
	URL      string // page with more details
	At       time.Time
	Since    time.Time // zero = unknown

	// The next fields are for machines, which read numbers and times rather than text.
	Count     *int      // letters that need people; nil = not about letters
	Last      time.Time // when the last one died; zero = unknown
	Operation *deadletter.Operation
	Left      []Cause // former groups of the incident that nobody is told about any more
}

// Cause identifies an alert.
type Cause struct{ Broker, VHost, Queue, Group string }

// Fact is a known property of a cause.
type Fact struct{ Name, Value string }

// Line is one of several groups in a message.
type Line struct {
	Title, Text, URL string
	Group            string // "" = the line is not about a group
	Count            *int   // as in Message
	Last             time.Time
}

// These are the names of facts.
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

// These are the limits on the parts of a message, in bytes. The linked page shows the rest.
const (
	titleBytes = 250 // fits on a line in a chat, in a list of mails, on a phone
	factBytes  = 300
	textBytes  = 1500
)

// line returns s as visible text on one line, cut to n bytes.
func line(s string, n int) string {
	return deadletter.Cut(deadletter.Visible(deadletter.Cut(s, n)), n)
}

// lines is like line but keeps line breaks.
func lines(s string, n int) string {
	return deadletter.Cut(deadletter.VisibleLines(deadletter.Cut(s, n)), n)
}

// linkName returns the text of a link. For a group, it includes the group's id.
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

const keyBytes = 255 // longest dedup_key that PagerDuty accepts

// boundKey returns a key unchanged if it is short and visible, and a hash of it otherwise.
func boundKey(key string) string {
	if key != "" && len(key) <= keyBytes && deadletter.Visible(key) == key {
		return key
	}
	return "dlo-" + digestOf(key)
}
