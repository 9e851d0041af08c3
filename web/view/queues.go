package view

import (
	"net/url"
	"strconv"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// QueuesPage lists the queues that letters died in, with what keeps their retries back, and the
// inboxes.
type QueuesPage struct {
	Shell
	Queues   []QueueRow // of this page; those whose retries are kept back are first
	Total    int
	From     int // how many stand on the pages before
	PageSize int
	Inboxes  []InboxRow
	Rights   []RightRow
	Unasked  []string // brokers without a management API in the configuration
	Several  bool     // brokers or vhosts: a queue is not named by its name alone
	Asked    bool     // brokers can be asked about queues
	NotAsked int      // queues that no broker was asked about, as they are too many
	Problem  string   // why what was asked for was not done
}

// QueueRow is a queue that letters died in.
type QueueRow struct {
	Broker, VHost, Queue  string
	Scheduled, Dead, Held QueueCount
	Guard                 deadletter.Guard   // without a state its retries are running
	Away                  string             // why nothing can be sent to its broker now; "" = it can
	Groups                []deadletter.Guard // groups of it whose retries are held back
	Facts                 deadletter.QueueFacts
}

// QueueCount is how many letters of a queue are in a state, and the list of them.
type QueueCount struct {
	Letters int
	Link    string
}

// InboxRow is a dead-letter queue that dlo drains.
type InboxRow struct {
	Broker, VHost, Queue string
	Up                   bool   // its broker is connected
	Why                  string // why it is not
	Draining             bool
	Note                 string // why it is not drained; of one that is, what may go wrong with it
	Facts                deadletter.QueueFacts
}

// RightRow is what the user of dlo has to be allowed to do with a broker.
type RightRow struct {
	Broker, User string
	deadletter.Right
}

var rightMarks = map[deadletter.RightState]mark{
	deadletter.RightProved:  {"Works", "check", "good"},
	deadletter.RightRefused: {"Refused", "stop", "bad"},
	deadletter.RightAssumed: {"Assumed", "clock", ""},
}

// GroupGuard is the state of the retries of a group.
type GroupGuard struct {
	Group deadletter.GroupID
	Guard deadletter.Guard // without a state they are not paused
	Queue deadletter.Guard // of the queue of the group
	Away  string           // why nothing can be sent to its broker now; "" = it can
}

// QueuesURL is the page of queues after the first so many.
func QueuesURL(from int) string {
	if from <= 0 {
		return "/queues"
	}
	return "/queues?from=" + strconv.Itoa(from)
}

// place names a queue in a form, to the byte: a browser would change line ends and what is no
// UTF-8.
func (q QueueRow) place() string {
	return url.Values{"broker": {q.Broker}, "vhost": {q.VHost}, "queue": {q.Queue}}.Encode()
}

// depth says how many messages wait in a queue.
func depth(f deadletter.QueueFacts) string {
	switch {
	case f.Known && !f.Exists:
		return "no such queue"
	case f.Ready < 0:
		return "unknown"
	}
	return Count(f.Ready)
}

func consumers(f deadletter.QueueFacts) string {
	switch {
	case f.Known && !f.Exists:
		return ""
	case f.Consumers < 0:
		return "unknown"
	}
	return Count(f.Consumers)
}

var guardMarks = map[deadletter.GuardState]mark{
	"":                      {"Running", "check", "good"},
	deadletter.GuardPaused:  {"Paused", "pause", "warn"},
	deadletter.GuardTripped: {"Tripped", "stop", "bad"},
	deadletter.GuardProbing: {"Probing", "search", "accent"},
	deadletter.GuardRamping: {"Ramping", "up", "accent"},
}

// waiting is the pill of retries that nothing keeps back but their broker.
var waiting = mark{"Waiting", "clock", "warn"}

// guardMark is the state of retries as a pill; the zero Guard is that of retries that are running.
func guardMark(g deadletter.Guard) mark { return markOf(guardMarks, g.State) }

// guardWords says what the pill does not: by whom and why, or what comes next.
func guardWords(now time.Time, g deadletter.Guard) string {
	why := ""
	if g.Why != "" {
		why = ": " + line(g.Why, 300)
	}
	switch g.State {
	case deadletter.GuardPaused:
		return "by " + line(g.By, 60) + why
	case deadletter.GuardTripped:
		text := "almost all came back"
		if g.Why != "" {
			text = line(g.Why, 300)
		}
		if g.Until.IsZero() {
			return text
		}
		if !g.Until.After(now) {
			return text + ", next probe now"
		}
		return text + ", next probe " + When(now, g.Until)
	case deadletter.GuardProbing:
		return "a few letters were sent and are being watched" + why
	case deadletter.GuardRamping:
		return "the rate is rising to its limit"
	}
	return ""
}

// mayPause and mayResume say which buttons a queue has: one that a person paused is only resumed,
// one that a breaker holds can be paused as well.
func mayPause(g deadletter.Guard) bool { return g.State != deadletter.GuardPaused }

func mayResume(g deadletter.Guard) bool {
	return g.State == deadletter.GuardPaused || g.State == deadletter.GuardTripped || g.State == deadletter.GuardProbing
}

func groupsHeldBack(n int) string { return Number(n, "group held back", "groups held back") }

func guardedTitle(g deadletter.Guard) string {
	if g.Title == "" {
		return g.Group.String()
	}
	return g.Group.String() + " " + line(g.Title, 60)
}

func groupAction(g deadletter.GroupID, what string) string {
	return "/groups/" + g.String() + "/" + what
}

// inboxMark says whether an inbox is drained.
func inboxMark(i InboxRow) mark {
	switch {
	case !i.Up:
		return mark{"Not connected", "stop", "bad"}
	case !i.Draining:
		return mark{"Not drained", "warn", "warn"}
	}
	return mark{"Connected", "check", "good"}
}

func inboxNote(i InboxRow) string {
	if !i.Up && i.Why != "" {
		return line(i.Why, 300)
	}
	return line(i.Note, 300)
}

// unasked says of which brokers nobody can ask what policies do.
func unasked(brokers []string) string {
	names := make([]string, len(brokers))
	for i, b := range brokers {
		names[i] = line(b, 40)
	}
	return "dlo cannot tell whether a policy deletes letters from its own queues on " + enumerated(names) + ": no management API is configured."
}
