package view

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/topology"
)

// WatchedQueues is one page of the list of all queues that dlo knows.
type WatchedQueues struct {
	Queues   []WatchedQueue // the queues of this page
	Total    int            // the number of queues that match the filter
	From     int            // the number of queues on earlier pages
	PageSize int
	Filter   string // a part of the name, or a glob
	ShowOwn  bool   // queues of dlo itself are listed, even if no letter died in them
	Own      int    // the number of these queues that match the filter
	Only     string // OnlyLosing, OnlyLetters, or "" for all queues
}

// These are the values of WatchedQueues.Only.
const (
	OnlyLosing  = "losing"
	OnlyLetters = "letters"
)

// WatchedQueue is a queue of a broker with its dead-letter path.
type WatchedQueue struct {
	deadletter.Origin
	topology.Described                  // what dlo last read
	State              deadletter.Queue // its letters and retries; zero if no letter died in it
	Gone               bool             // the broker no longer has the queue
	Observed           bool             // letters of the queue are only observed, so nothing is sent
	Rule               string           // the rule for a letter that a consumer rejects; "" if unknown
	Week               int              // the number of letters received in the last 7 days
}

// IsOwn reports whether the queue is an inbox, or another queue of dlo.
func (q WatchedQueue) IsOwn() bool { return q.Own || q.Inbox }

// URL returns the URL of one page of the list of all queues.
func (w WatchedQueues) URL(from int) string {
	at, own := "", ""
	if from > 0 {
		at = strconv.Itoa(from)
	}
	if w.ShowOwn {
		own = "1"
	}
	return address("/queues", "name", w.Filter, "only", w.Only, "own", own, "from", at) + "#all-queues"
}

// otherURL returns the URL of the list that also has the queues of dlo itself, or that omits them.
func (w WatchedQueues) otherURL() string {
	w.ShowOwn = !w.ShowOwn
	return w.URL(0)
}

// QueueURL returns the URL of the page of a queue. The names may contain any bytes.
func QueueURL(o deadletter.Origin) string {
	return "/queues/one?" + PlaceOf(o)
}

// deadLetterExchange returns the name of the exchange as people call it. The default exchange,
// which has no name, is called "default exchange".
func deadLetterExchange(c topology.Route) string {
	return queueName(cmp.Or(c.Exchange, "default exchange"))
}

// routeTone returns the icon and the colour of the mark for a dead-letter path.
func routeTone(c topology.Route) (icon, tone string) {
	switch {
	case !c.Known || !c.Judged:
		return "info", "faint"
	case c.Lost != "":
		return "stop", "bad"
	case c.Guarantee == "at-most-once":
		return "warn", "warn"
	}
	return "check", "good"
}

// routeNote returns a remark about a dead-letter path, for example "letters stay here".
func routeNote(c topology.Route) string {
	switch {
	case !c.Known:
		return "unknown"
	case !c.Judged:
		return "not judged: it does not dead-letter, or is deleted with its connection"
	case c.Lost != "":
		return line(c.Lost, 160)
	case !c.Set:
		return "letters stay here"
	}
	return line(c.Guarantee, 40)
}

// read formats a number that dlo has read from a broker, and that may be unknown.
func read(f topology.Figure) string {
	if !f.Known {
		return figure(-1)
	}
	return figure(int(f.N))
}

// figure formats a number that may be unknown.
func figure(n int) string {
	if n < 0 {
		return "unknown"
	}
	return Count(n)
}

// perSecond formats a rate of messages per second.
func perSecond(n float64) string {
	switch {
	case n <= 0:
		return "–"
	case n < 10:
		return strconv.FormatFloat(n, 'f', 1, 64) + "/s"
	}
	return Count(int(n+0.5)) + "/s"
}

// rates formats the rates at which messages come into the queue and leave it.
func (q WatchedQueue) rates() string {
	switch {
	case q.Published < 0:
		return "unknown"
	case q.Published == 0 && q.Acked == 0:
		return "–"
	}
	return perSecond(q.Published) + " in, " + perSecond(q.Acked) + " out"
}

// kindWords describes the type of the queue. It also says whether the queue belongs to dlo and
// whether it is gone.
func (q WatchedQueue) kindWords() string {
	var parts []string
	if q.Kind != "" {
		parts = append(parts, line(q.Kind, 40))
	}
	switch {
	case q.Inbox:
		parts = append(parts, "inbox")
	case q.Own:
		parts = append(parts, "a queue of dlo")
	}
	if q.Gone {
		parts = append(parts, "not on the broker at the last look")
	}
	return strings.Join(parts, ", ")
}
