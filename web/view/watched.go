package view

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// WatchedQueues is a part of all queues that dlo knows.
type WatchedQueues struct {
	Queues   []WatchedQueue // of this page
	Total    int            // that match the filter
	From     int            // number of queues on the pages before
	PageSize int
	Filter   string // a part of the name, or a glob
	Only     string // OnlyLosing, OnlyLetters, or "" = all
}

// Values of WatchedQueues.Only.
const (
	OnlyLosing  = "losing"
	OnlyLetters = "letters"
)

// WatchedQueue is a queue of a broker with its dead-letter path.
type WatchedQueue struct {
	Origin    deadletter.Origin
	Gone      bool   // the broker does not have it any more
	Own       string // why it is a queue of dlo: inbox, or a queue of its own; "" = it is not
	Kind      string // its type; "" = unknown
	Ready     int    // -1 = unknown
	Unacked   int    // -1 = unknown
	Consumers int    // -1 = unknown
	Published float64
	Acked     float64
	Chain     Chain
	Observed  bool   // its letters are only observed: nothing is sent
	Rule      string // that decides about a letter that a consumer rejects; "" = unknown
	Week      int    // letters received in the last 7 days
	Dead      QueueCount
	Scheduled QueueCount
}

// Chain is the way of a queue's dead letters.
type Chain struct {
	Known     bool
	Judged    bool // false for queues that are exclusive, deleted automatically, or streams
	Set       bool
	Exchange  string
	Key       string // "" = that of the message
	From      string // what sets the exchange
	Queues    []string
	More      int
	Lost      string // why dead letters are lost; "" = they are not
	Guarantee string
}

// WatchedURL returns the URL of a page of all queues.
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

// QueueURL returns the URL of the page of a queue. Names may have any bytes.
func QueueURL(o deadletter.Origin) string {
	return "/queues/one?" + url.Values{"broker": {o.Broker}, "vhost": {o.VHost}, "queue": {o.Queue}}.Encode()
}

// exchange returns the name of the exchange for people; the default exchange has none.
func (c Chain) exchange() string {
	if c.Exchange == "" {
		return "default exchange"
	}
	return queueName(c.Exchange)
}

// tone returns the icon and the tone of a chain.
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

// note returns what a chain says besides its way.
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

// figure returns a number that may be unknown.
func figure(n int) string {
	if n < 0 {
		return "unknown"
	}
	return Count(n)
}

// perSecond returns messages per second. The broker reports no rate that was never above zero.
func perSecond(n float64) string {
	switch {
	case n <= 0:
		return "–"
	case n < 10:
		return strconv.FormatFloat(n, 'f', 1, 64) + "/s"
	}
	return Count(int(n+0.5)) + "/s"
}

// rates returns the rates of a queue: in and out.
func (q WatchedQueue) rates() string {
	if q.Published <= 0 && q.Acked <= 0 {
		return "–"
	}
	return perSecond(q.Published) + " in, " + perSecond(q.Acked) + " out"
}

// kindWords describes what kind of queue it is.
func (q WatchedQueue) kindWords() string {
	var parts []string
	for _, part := range []string{q.Kind, q.Own} {
		if part != "" {
			parts = append(parts, line(part, 40))
		}
	}
	if q.Gone {
		parts = append(parts, "no longer on the broker")
	}
	return strings.Join(parts, ", ")
}
