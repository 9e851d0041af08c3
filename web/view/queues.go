package view

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/query"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// QueuesPage lists the queues that dlo knows, and the faults of their dead-letter paths.
type QueuesPage struct {
	Shell
	Several bool   // there are several brokers or vhosts, so the name of a queue alone is ambiguous
	Problem string // why the last request failed

	Faults     []Fault // the faults of the dead-letter paths; the most urgent comes first
	FaultsLeft int     // the number of faults for which the page has no room
	Looks      []topology.Report
	Adopted    []topology.Adopted // the policies that dlo has set
	Watched    WatchedQueues
}

// GroupGuard says whether the automatic retries of a group are running, paused or stopped.
type GroupGuard struct {
	Group deadletter.GroupID
	Guard deadletter.Guard // if it has no state, the retries are not paused
	Queue deadletter.Guard // the same for the queue of the group
	Away  string           // why nothing can be sent to the broker of the queue now, or ""
}

// PlaceOf returns the broker, the vhost and the name of a queue, encoded for a form byte by byte.
// Without that, a browser would change line ends and text that is not UTF-8.
func PlaceOf(o deadletter.Origin) string {
	return url.Values{"broker": {o.Broker}, "vhost": {o.VHost}, "queue": {o.Queue}}.Encode()
}

// QueueQuery returns the query for the letters of a queue. If the name of the queue alone may be
// ambiguous, the query also has the broker and the vhost.
func QueueQuery(o deadletter.Origin, ambiguous bool) query.Query {
	q := (query.Query{}).With(query.Queue, o.Queue)
	if ambiguous {
		q = q.With(query.Broker, o.Broker).With(query.VHost, o.VHost)
	}
	return q
}

// depth returns words for the number of messages that are ready in a queue.
func depth(n deadletter.Amount, gone bool) string {
	if gone {
		return "no such queue"
	}
	return figure(int(n))
}

var guardMarks = map[deadletter.GuardState]mark{
	"":                      {"Running", "check", "good"},
	deadletter.GuardPaused:  {"Paused", "pause", "warn"},
	deadletter.GuardTripped: {"Tripped", "stop", "bad"},
	deadletter.GuardProbing: {"Probing", "search", "accent"},
	deadletter.GuardRamping: {"Ramping", "up", "accent"},
}

// observed is the mark of a queue whose letters dlo only stores and shows, but does not send.
var observed = mark{"Observed", "search", "accent"}

// waiting is the mark of a queue whose retries are not paused, but cannot be sent now because the
// broker accepts no letters.
var waiting = mark{"Waiting", "clock", "warn"}

// guardMark returns the coloured mark that shows whether the retries of a queue are running. For
// the zero Guard, the mark says that they are running.
func guardMark(g deadletter.Guard) mark { return markOf(guardMarks, g.State) }

// guardWords returns a text that stands beside the mark of held-back retries. It says who stopped
// the retries and why. If a breaker stopped them, it also says what happens next, for example when
// the breaker sends the next probe.
func guardWords(ctx context.Context, now time.Time, g deadletter.Guard) string {
	why := ""
	if g.Why != "" {
		why = ": " + line(g.Why, 300)
	}
	switch g.State {
	case deadletter.GuardPaused:
		return "by " + person(ctx, g.By) + why
	case deadletter.GuardTripped:
		text := cmp.Or(line(g.Why, 300), "almost all came back")
		switch {
		case g.Until.IsZero():
			return text
		case !g.Until.After(now):
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

// mayPause and mayResume report whether a queue has the button "Pause" or "Resume". If a person
// paused the queue, it can only be resumed. If a circuit breaker stopped its retries, it can also
// be paused.
func mayPause(g deadletter.Guard) bool { return g.State != deadletter.GuardPaused }

func mayResume(g deadletter.Guard) bool {
	return g.State == deadletter.GuardPaused || g.State == deadletter.GuardTripped || g.State == deadletter.GuardProbing
}

func guardedTitle(g deadletter.Guard) string {
	return strings.TrimSpace(g.Group.String() + " " + line(g.Title, 60))
}

func groupAction(g deadletter.GroupID, what string) string {
	return "/groups/" + g.String() + "/" + what
}
