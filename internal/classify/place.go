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
//  1. x-death, which the broker writes and no consumer can get wrong: the newest death outside of
//     our own queues.
//  2. Of a letter without it, what l.Origin has: the queue that dlo had sent it to, or the origin
//     that its inbox was given.
//  3. Otherwise the queue that the framework says it failed in. Error queues of frameworks are
//     filled by publishing anew, which takes x-death off, so that nothing else can say it.
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
// letter may be sent to its origin.
func place(l *deadletter.Letter, f *deadletter.Failure, v *deadletter.Classified) {
	ours := func(queue string) bool { return queue == l.Inbox || deadletter.OwnQueue(queue) }
	deaths, origin := deadletter.ReadDeaths(l.Arrived.Headers, ours)
	if origin.Queue != "" {
		v.Reason, v.DiedAt = deadletter.LastDeath(l.Arrived.Headers, deaths, origin.Queue)
		v.Repeated = deadletter.Repeated(deaths, origin.Queue)
	}
	told := f.Queue != "" && !ours(f.Queue)
	delayed := told && f.Said() && v.Reason == "expired" && f.Queue != origin.Queue && (f.FailedAt.IsZero() || v.DiedAt.IsZero() || !v.DiedAt.After(f.FailedAt.Add(skew)))
	switch {
	case origin.Queue != "" && !delayed:
	case delayed, l.Origin.Queue == "" && told:
		origin = deadletter.Origin{Queue: f.Queue, Exchange: f.Exchange, RoutingKey: f.RoutingKey}
		v.Reason, v.DiedAt = refused(f)
	default:
		origin = l.Origin
		if origin.Exchange == "" && origin.RoutingKey == "" {
			origin.Exchange, origin.RoutingKey = f.Exchange, f.RoutingKey
		}
		if f.By != failure.Plain && (f.Queue == "" || f.Queue == origin.Queue) {
			v.Reason, v.DiedAt = refused(f)
		}
	}
	origin.Broker, origin.VHost = l.Origin.Broker, l.Origin.VHost
	if origin.Queue == l.Origin.Queue && origin.Queue != "" && (l.Origin.Exchange != "" || l.Origin.RoutingKey != "") { // it came back from dlo's own requeue: how it was first published is what people and bindings know it by
		origin.Exchange, origin.RoutingKey = l.Origin.Exchange, l.Origin.RoutingKey
	}
	if l.Imported != "" && l.Origin.Queue != "" { // where it comes from they knew its latest death; its headers here are those of its first
		origin = l.Origin
		v.Reason, v.DiedAt = cmp.Or(l.Reason, v.Reason), latest(l.DiedAt, v.DiedAt)
	}
	v.Origin = origin
}

// refused is the reason and the time of a death that a framework tells of.
func refused(f *deadletter.Failure) (reason string, at time.Time) {
	if !f.Said() {
		return "", time.Time{}
	}
	return "rejected", f.FailedAt.Truncate(time.Second)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
