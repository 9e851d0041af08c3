package view

import (
	"net/url"
	"strconv"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// QueuesPage lists the inboxes and the queues that letters died in, with the reasons why retries
// are stopped.
type QueuesPage struct {
	Shell
	Queues   []QueueRow // queues of this page; queues with stopped retries come first
	Total    int
	From     int // number of queues on the pages before
	PageSize int
	Inboxes  []InboxRow
	Rights   []RightRow
	Unasked  []string // brokers without a configured management API
	Several  bool     // several brokers or vhosts: a queue name alone is ambiguous
	Asked    bool     // brokers can report facts about queues
	NotAsked int      // number of queues that were not asked about, because there are too many
	Problem  string   // why the last request failed

	Faults     []Fault // faults of the dead-letter paths, the most urgent first
	FaultsLeft int     // number of faults for which the page has no room
	Looks      []PathLook
	Adopted    []AdoptedPolicy // set by dlo
	Watched    WatchedQueues
}

// QueueRow is a queue that letters died in.
type QueueRow struct {
	Broker, VHost, Queue  string
	Scheduled, Dead, Held QueueCount
	Guard                 deadletter.Guard   // no state: retries are running
	Away                  string             // why nothing can be sent to its broker now; "" = it can
	Groups                []deadletter.Guard // groups of the queue with stopped retries
	Facts                 deadletter.QueueFacts
}

// QueueCount is the number of letters of a queue in one state, with a link to these letters.
type QueueCount struct {
	Letters int
	Link    string
}

// InboxRow is a dead-letter queue that dlo drains.
type InboxRow struct {
	Broker, VHost, Queue string
	Up                   bool   // the inbox's broker is connected
	Why                  string // why the broker is not connected
	Draining             bool
	Note                 string // why the inbox is not drained; if it is drained, a warning about it
	Facts                deadletter.QueueFacts
}

// RightRow is a permission that dlo's user needs on a broker.
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
	Guard deadletter.Guard // no state: not paused
	Queue deadletter.Guard // guard of the group's queue
	Away  string           // why nothing can be sent to its broker now; "" = it can
}

// QueuesURL returns the URL of a page of the list of queues. The argument "from" is the number of
// queues on earlier pages.
func QueuesURL(from int) string {
	if from <= 0 {
		return "/queues"
	}
	return "/queues?from=" + strconv.Itoa(from)
}

// place encodes the queue's name for a form, byte by byte. A browser would otherwise change line
// ends and text that is not UTF-8.
func (q QueueRow) place() string {
	return PlaceOf(deadletter.Origin{Broker: q.Broker, VHost: q.VHost, Queue: q.Queue})
}

// PlaceOf encodes a queue for a form.
func PlaceOf(o deadletter.Origin) string {
	return url.Values{"broker": {o.Broker}, "vhost": {o.VHost}, "queue": {o.Queue}}.Encode()
}

// depth returns the number of messages that are ready in a queue.
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

// observed is the pill for queues whose letters are only observed.
var observed = mark{"Observed", "search", "accent"}

// waiting is the pill for retries that only wait for their broker.
var waiting = mark{"Waiting", "clock", "warn"}

// guardMark returns the state of retries as a pill. The zero Guard means that retries are running.
func guardMark(g deadletter.Guard) mark { return markOf(guardMarks, g.State) }

// guardWords returns the facts that the pill does not show: who stopped the retries and why, or the
// next event.
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

// mayPause and mayResume report which buttons a queue has. If a person paused the queue, it can
// only be resumed. If a breaker stopped the queue, it can also be paused.
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

// inboxMark shows whether an inbox is connected and drained.
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

// unasked returns a sentence with the names of the brokers whose policies dlo cannot check.
func unasked(brokers []string) string {
	names := make([]string, len(brokers))
	for i, b := range brokers {
		names[i] = line(b, 40)
	}
	return "dlo cannot tell whether a policy deletes letters from its own queues on " + enumerated(names) + ": no management API is configured."
}
