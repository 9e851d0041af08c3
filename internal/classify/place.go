package classify

import (
	"cmp"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/failure"
)

// skew is how far the clocks of a broker and of a consumer may be apart.
const skew = time.Minute

// place fills in where a letter died, of what and when. In this order:
//
//  1. The origin that the configuration gives to its inbox: whoever wrote that knows the worker.
//  2. x-death, which the broker writes and no consumer can get wrong: the newest death outside of
//     our own queues, unless it is that of a delay queue; then see behind.
//  3. Of a letter without it, what l.Origin has: the queue that dlo had sent it to, or the origin
//     that was given to a drain.
//  4. Otherwise the queue that the framework says it failed in. Error queues of frameworks are
//     filled by publishing again, which takes x-death off, so that nothing else can say it.
//
// But one death of x-death tells less than the framework: when the newest is "expired", in another
// queue than the one the framework names. That is the delay queue of a retry recipe: the message
// waited there, went back to work, and failed for good in the framework's queue. Unless the death
// is the later of the two: then somebody had moved the message on after the failure, and it expired
// there.
//
// A framework that reports an error had it from a consumer that refused the message; so where
// x-death does not say why, the reason is "rejected". Headers that are nobody's in particular may
// be from an earlier life of the message: they give no reason. It is the caller who asks whether a
// letter may be sent to its origin. place returns what only people can say of it, "" = nothing.
func (c *Classifier) place(l *deadletter.Letter, f *deadletter.Failure, v *deadletter.Classified, k *known) (question string) {
	ours := func(queue string) bool { return queue == l.Inbox || deadletter.NoOrigin(queue) }
	deaths, origin := deadletter.ReadDeaths(l.Arrived.Headers, ours)
	newest, mayDelay := deadletter.Newest(l.Arrived.Headers, deaths, ours)
	home := l.Origin
	given := c.o.Given(l.Origin.Broker, l.Origin.VHost, l.Inbox)
	if given != "" && given != home.Queue {
		home.Queue, home.Exchange, home.RoutingKey = given, "", ""
	}
	told := f.Queue != "" && !ours(f.Queue)
	said := told && f.Said() && newest.Reason == deadletter.ReasonExpired
	delayed := said && f.Queue != newest.Queue && (f.FailedAt.IsZero() || newest.FirstAt.IsZero() || !newest.FirstAt.After(f.FailedAt.Add(skew)))
	var d deathOf
	switch {
	case given != "" && newest.Queue != "":
		if d = inQueue(given, deaths, &newest); d.reason == "" && f.By != failure.Plain && (f.Queue == "" || f.Queue == given) {
			d.reason, d.at = refused(f)
		}
	case given == "" && delayed, home.Queue == "" && newest.Queue == "" && told:
		d.origin = deadletter.Origin{Queue: f.Queue, Exchange: f.Exchange, RoutingKey: f.RoutingKey}
		d.reason, d.at = refused(f)
	case said:
		d = by(&newest)
	case mayDelay:
		d = c.behind(l, k, deaths, &newest, origin.Queue)
	case newest.Queue != "":
		d.origin, d.repeated = origin, deadletter.Repeated(deaths, origin.Queue)
		d.reason, d.at = deadletter.LastDeath(l.Arrived.Headers, deaths, origin.Queue)
	default:
		d.origin = home
		if d.origin.Exchange == "" && d.origin.RoutingKey == "" {
			d.origin.Exchange, d.origin.RoutingKey = f.Exchange, f.RoutingKey
		}
		if f.By != failure.Plain && (f.Queue == "" || f.Queue == home.Queue) {
			d.reason, d.at = refused(f)
		}
	}
	origin, v.Reason, v.DiedAt, v.Repeated = d.origin, d.reason, d.at, d.repeated
	origin.Broker, origin.VHost = l.Origin.Broker, l.Origin.VHost
	if origin.Queue == l.Origin.Queue && origin.Queue != "" && (l.Origin.Exchange != "" || l.Origin.RoutingKey != "") { // it came back from dlo's own requeue: how it was first published is what people and bindings know it by
		origin.Exchange, origin.RoutingKey = l.Origin.Exchange, l.Origin.RoutingKey
	}
	if l.Imported != "" && l.Origin.Queue != "" { // where it comes from they knew its latest death; its headers here are those of its first
		origin = l.Origin
		v.Reason, v.DiedAt = cmp.Or(l.Reason, v.Reason), latest(l.DiedAt, v.DiedAt)
	}
	v.Origin = origin
	return d.question
}

// refused is the reason and the time of a death that a framework tells of.
func refused(f *deadletter.Failure) (reason string, at time.Time) {
	if !f.Said() {
		return "", time.Time{}
	}
	return deadletter.ReasonRejected, f.FailedAt.Truncate(time.Second)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
