package classify

import (
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// deathOf says where, why and when a letter died, according to x-death and the broker.
type deathOf struct {
	origin   deadletter.Origin
	reason   string
	at       time.Time
	repeated bool
	question string // a question about the death that people have to answer; "" = none
}

// deathOfEntry returns the death that one entry of x-death describes.
func deathOfEntry(d *deadletter.Death) deathOf {
	return deathOf{origin: d.Origin(), reason: d.Reason, at: d.FirstAt, repeated: d.Count > 1}
}

// inQueue returns the death of a letter that a consumer of the given queue rejected. The caller
// knows of this rejection from another source. It is possible that x-death does not record the
// rejection: if the letter had left a delay queue, the consumer may then have published the letter
// to the inbox itself. inQueue nevertheless returns the reason "rejected", because only a consumer
// publishes to the inbox.
func inQueue(queue string, deaths []deadletter.Death, newest *deadletter.Death) deathOf {
	d, ok := deadletter.DiedIn(deaths, queue)
	switch {
	case ok && (newest.Queue == queue || d.Refused()):
		return deathOfEntry(&d)
	case newest.Reason == deadletter.ReasonExpired:
		return deathOf{origin: deadletter.Origin{Queue: queue}, reason: deadletter.ReasonRejected}
	}
	return deathOf{origin: deadletter.Origin{Queue: queue}}
}

// rejectingQueue finds the queue that rejected a letter whose newest death may have happened in a
// delay queue. It asks the broker about the queue of the newest death. If that queue has a
// consumer, the letter died there. If that queue leads to the inbox, and x-death has no earlier
// rejection, the letter also died there. If x-death has an earlier rejection, the letter died in
// the queue of that rejection (the parameter "chain"). Otherwise, the letter died in the queue to
// which the delay queue leads, or in the queue to which dlo had sent the letter. If neither is
// known, the result contains a question for people.
func (c *Classifier) rejectingQueue(
	l *deadletter.Letter, k *known, deaths []deadletter.Death, newest *deadletter.Death, chain string,
) deathOf {
	on := k.askOnward(l, newest)
	switch home := l.Queue; {
	case on.Consumed, on.Ends && !newest.RejectedBefore:
		return deathOfEntry(newest)
	case newest.RejectedBefore:
		d, _ := deadletter.DiedIn(deaths, chain)
		return deathOfEntry(&d)
	case on.Queue != "":
		return inQueue(on.Queue, deaths, newest)
	case home != "":
		return inQueue(home, deaths, newest)
	}
	d, queue := deathOfEntry(newest), deadletter.Visible(newest.Queue)
	d.question = fmt.Sprintf("which queue rejected it? It expired in %s, and that may be a queue that only delays retries: %s. "+
		"Give inbox %s an origin in the configuration, send it to the queue where it failed, or release it if it failed in %s", queue, on.Why, deadletter.Visible(l.Inbox), queue)
	return d
}

// asked identifies a question to the broker about a queue in which a letter died. It consists of
// this queue, and of the route by which the letter left the queue.
type asked struct {
	queue deadletter.Origin
	route deadletter.Route
}

// maxAsked is the maximum number of queues about which one batch asks the broker. It is high enough
// for real retry recipes, which have a few delay queues. Only hostile letters name hundreds of
// queues.
const maxAsked = 50

// askOnward asks the broker about the queue of a death. It asks only once for each queue of a
// batch.
func (k *known) askOnward(l *deadletter.Letter, d *deadletter.Death) deadletter.Onward {
	if k.c.o.Onward == nil || k.reports == nil {
		return deadletter.Onward{Why: "nobody can be asked"}
	}
	var q asked
	q.queue = d.Origin()
	q.queue.Broker, q.queue.VHost, q.queue.Exchange = l.Broker, l.VHost, ""
	if l.Attempts == 0 { // for a letter that came back, only its first route is known
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
