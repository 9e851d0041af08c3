package view

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// WatchedQueues is one page of the list of all queues that dlo knows.
type WatchedQueues struct {
	Queues   []WatchedQueue // the queues of this page
	Total    int            // the number of queues that match the filter
	From     int            // the number of queues on earlier pages
	PageSize int
	Filter   string // a part of the name, or a glob
	Only     string // OnlyLosing, OnlyLetters, or "" for all queues
}

// These are the values of WatchedQueues.Only.
const (
	OnlyLosing  = "losing"
	OnlyLetters = "letters"
)

// WatchedQueue is a queue of a broker with its dead-letter path.
type WatchedQueue struct {
	Origin    deadletter.Origin
	Gone      bool    // the broker no longer has the queue
	Own       string  // why the queue belongs to dlo, for example as an inbox; "" if it does not
	Kind      string  // the type of the queue; "" if unknown
	Ready     int     // -1 if unknown
	Unacked   int     // -1 if unknown
	Consumers int     // -1 if unknown
	Published float64 // messages per second; -1 if unknown
	Acked     float64 // messages per second
	Chain     Chain
	Observed  bool   // letters of the queue are only observed, so nothing is sent
	Rule      string // the rule for a letter that a consumer rejects; "" if unknown
	Week      int    // the number of letters received in the last 7 days
	Dead      int
	Scheduled int
}

// Chain is the path that the dead letters of a queue take.
type Chain struct {
	Known     bool
	Judged    bool // false for a queue that is exclusive, deleted automatically, or a stream
	Set       bool
	Exchange  string
	Key       string // "" is the routing key of the message
	From      string // the setting that names the exchange
	Queues    []string
	More      int
	Lost      string // why dead letters are lost, or ""
	Guarantee string
}

// WatchedURL returns the URL of one page of the list of all queues.
func (w WatchedQueues) WatchedURL(from int) string {
	v := url.Values{}
	for key, value := range map[string]string{"name": w.Filter, "only": w.Only} {
		if value != "" {
			v.Set(key, value)
		}
	}
	if from > 0 {
		v.Set("at", strconv.Itoa(from))
	}
	if len(v) == 0 {
		return "/queues#all-queues"
	}
	return "/queues?" + v.Encode() + "#all-queues"
}

// QueueURL returns the URL of the page of a queue. The names may contain any bytes.
func QueueURL(o deadletter.Origin) string {
	return "/queues/one?" + url.Values{"broker": {o.Broker}, "vhost": {o.VHost}, "queue": {o.Queue}}.Encode()
}

// exchange returns the name of the exchange as people call it. The default exchange, which has no
// name, is called "default exchange".
func (c Chain) exchange() string {
	if c.Exchange == "" {
		return "default exchange"
	}
	return queueName(c.Exchange)
}

// tone returns the icon and the colour of the mark for a dead-letter path.
func (c Chain) tone() (icon, tone string) {
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

// note returns a remark about the dead-letter path of a queue, for example "letters stay here".
func (c Chain) note() string {
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
	for _, part := range []string{q.Kind, q.Own} {
		if part != "" {
			parts = append(parts, line(part, 40))
		}
	}
	if q.Gone {
		parts = append(parts, "not on the broker at the last look")
	}
	return strings.Join(parts, ", ")
}
