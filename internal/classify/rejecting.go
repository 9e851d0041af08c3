package classify

import (
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// deathOf is where and of what a letter died, as far as x-death and its broker tell.
type deathOf struct {
	origin   deadletter.Origin
	reason   string
	at       time.Time
	repeated bool
	question string // what nobody knows of it, and people have to say; "" = nothing
}

// by is what one entry of x-death tells.
func by(d *deadletter.Death) deathOf {
	return deathOf{origin: d.Origin(), reason: d.Reason, at: d.FirstAt, repeated: d.Count > 1}
}

// inQueue is the death of a letter in a queue which, as others say, rejected it. Where x-death has
// no word of that, the letter was published to its inbox after it had come back out of a delay
// queue: only a consumer does that.
func inQueue(queue string, deaths []deadletter.Death, newest *deadletter.Death) deathOf {
	d, ok := deadletter.DiedIn(deaths, queue)
	switch {
	case ok && (newest.Queue == queue || d.Refused()):
		return by(&d)
	case newest.Reason == deadletter.ReasonExpired:
		return deathOf{origin: deadletter.Origin{Queue: queue}, reason: deadletter.ReasonRejected}
	}
	return deathOf{origin: deadletter.Origin{Queue: queue}}
}

// behind finds the queue that rejected a letter whose newest death may be that of a delay queue. It
// asks the broker about that queue: one that is consumed, or that leads to the inbox, is where the
// letter died. Otherwise it is the queue that x-death has behind it, or else the one that it leads
// to, or that dlo had sent the letter to.
func (c *Classifier) behind(l *deadletter.Letter, k *known, deaths []deadletter.Death, newest *deadletter.Death, chain string) deathOf {
	on := k.onward(l, newest)
	switch home := l.Origin.Queue; {
	case on.Consumed, on.Ends && !newest.RejectedBefore:
		return by(newest)
	case newest.RejectedBefore:
		d, _ := deadletter.DiedIn(deaths, chain)
		return by(&d)
	case on.Queue != "":
		return inQueue(on.Queue, deaths, newest)
	case home != "":
		return inQueue(home, deaths, newest)
	}
	d, queue := by(newest), deadletter.Visible(newest.Queue)
	d.question = fmt.Sprintf("which queue rejected it? It expired in %s, and that may be a queue that only delays retries: %s. "+
		"Give inbox %s an origin in the configuration, send it to the queue where it failed, or release it if it failed in %s", queue, on.Why, deadletter.Visible(l.Inbox), queue)
	return d
}

// asked is a question about a queue, and how the letter came from there.
type asked struct {
	queue deadletter.Origin
	route deadletter.Route
}

// maxAsked is how many queues one batch may ask about. Recipes have a few delay queues, and only
// hostile letters have hundreds.
const maxAsked = 50

// onward asks about the queue of a death, once for each batch.
func (k *known) onward(l *deadletter.Letter, d *deadletter.Death) deadletter.Onward {
	if k.c.o.Onward == nil || k.reports == nil {
		return deadletter.Onward{Why: "nobody can be asked"}
	}
	var q asked
	q.queue = d.Origin()
	q.queue.Broker, q.queue.VHost, q.queue.Exchange = l.Origin.Broker, l.Origin.VHost, ""
	if l.Attempts == 0 { // of a letter that came back only its first way is known
		q.route.Exchange = l.ArrivedBy.Exchange
	}
	on, ok := k.leads[q]
	switch {
	case ok:
	case len(k.leads) >= maxAsked:
		return deadletter.Onward{Why: "too many queues would have to be looked up at once"}
	default:
		on = k.c.o.Onward(k.ctx, q.queue, q.route)
		k.leads[q] = on
	}
	return on
}
