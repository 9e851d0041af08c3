package notify

import (
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// Event says what a message does to the incident that has the same key, for example that it begins
// or ends the incident.
type Event string

const (
	Fires    Event = "fires"    // the incident begins: something needs people
	Updates  Event = "updates"  // people are still needed, and something has changed
	Resolves Event = "resolves" // the incident is over: nobody is needed any more
	Told     Event = "told"     // the message has no incident, so nothing ends it later
)

// Message is the content that a channel sends. Its texts are not escaped and may come from letters.
// A channel must treat every field except ID, Event, Severity and URL as hostile.
type Message struct {
	ID       string // identifies a notice of an installation; the same if the notice is sent again
	Key      string // identifies a cause; messages with the same key belong to one incident and one thread
	Kind     deadletter.NoticeKind
	Event    Event
	Severity deadletter.Severity
	Title    string // a single line
	Facts    []Fact // facts in the order in which they are shown, without empty ones
	Text     string // one or more lines; "" = the title is enough
	Lines    []Line // one line per group of an incident or digest, or per notice if several are sent together
	URL      string // address of a page with more details
	At       time.Time
	Since    time.Time // time at which the cause began; zero = unknown

	// The following fields are for machines, which need numbers and times instead of texts.
	Count     *int      // number of letters that need people; nil = the message is not about letters
	Last      time.Time // time at which the last letter died; zero = unknown
	Operation *deadletter.Operation
	Left      []Cause // groups that no longer belong to the incident
}

// Cause identifies the alert of a group.
type Cause struct{ Broker, VHost, Queue, Group string }

// Fact is one line of a message about a failure, such as the queue. It consists of a name and a
// value.
type Fact struct{ Name, Value string }

// Line is one line of a message about several groups or notices. Each line is about one group or
// one notice.
type Line struct {
	Title, Text, URL string
	Group            string // id of the group; "" = the line is not about a group
	Count            *int   // number of letters of the group; nil = the line is not about letters
	Last             time.Time
}

// A message contains facts, for example the name of a queue. These are the names of the facts.
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

// Fact returns the value of the named fact. If the message does not contain the fact, it returns
// "".
func (m *Message) Fact(name string) string {
	for _, f := range m.Facts {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// These are the maximum lengths of the parts of a notification, in bytes. The page to which the
// notification links shows the full texts.
const (
	titleBytes = 250 // fits on one line of a chat, a list of mails or a phone
	factBytes  = 300
	textBytes  = 1500
)

// line returns visible text on one line, with at most n bytes.
func line(s string, n int) string {
	return deadletter.Cut(deadletter.Visible(deadletter.Cut(s, n)), n)
}

// lines returns visible text with at most n bytes. It keeps line breaks and tabs.
func lines(s string, n int) string {
	return deadletter.Cut(deadletter.VisibleLines(deadletter.Cut(s, n)), n)
}

// linkName returns the text of a link to a page. For the page of a group, it contains the id of the
// group.
func linkName(url string) string {
	if i := strings.LastIndex(url, "/groups/G-"); i >= 0 &&
		strings.Trim(url[i+len("/groups/G-"):], "0123456789") == "" {
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

const keyBytes = 255 // maximum length of a dedup_key of PagerDuty

// boundKey returns the key unchanged if the key is short and visible. Otherwise it returns a hash
// of the key.
func boundKey(key string) string {
	if key != "" && len(key) <= keyBytes && deadletter.Visible(key) == key {
		return key
	}
	return "dlo-" + digestOf(key)
}
