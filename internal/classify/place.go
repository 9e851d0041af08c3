package classify

import (
	"cmp"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
	"github.com/deadletteroffice/dlo/internal/failure"
)

// skew is how much the clocks of a broker and a consumer may differ.
const skew = time.Minute

// place finds out where, why and when a letter died, and puts this into the verdict. It uses the
// first of these sources that says so:
//
//  1. The origin that the configuration assigns to the inbox. Whoever wrote it knows the consumer.
//  2. x-death, which the broker writes and no consumer can get wrong: the newest death outside
//     dlo's own queues, unless it happened in a delay queue. In that case, see rejectingQueue.
//  3. Without x-death, l.Origin: the queue to which dlo had sent the letter, or the origin given
//     for a drain.
//  4. Otherwise, the queue in which the framework says the letter failed. To fill their error
//     queues, frameworks publish the message again. That removes x-death, so nothing else can
//     name the queue.
//
// There is one exception. The framework takes precedence over x-death if the newest death is
// "expired" and in a queue other than the framework's. In that case, the message expired in the
// delay queue of a retry recipe, returned to its queue, and failed for good in the framework's
// queue. However, x-death still applies if its death is later than the failure. In that case,
// somebody moved the message on after the failure, and it expired there.
//
// If a framework reports an error, a consumer rejected the message. If x-death gives no reason, the
// reason is therefore "rejected". Headers that belong to no particular framework give no reason,
// because they may come from an earlier life of the message. The caller checks whether a letter may
// be sent to its origin. The result "question" is a question that only people can answer, or "".
func (c *Classifier) place(
	l *deadletter.Letter, f *deadletter.Failure, v *deadletter.Classified, k *known,
) (question string) {
	ours := func(queue string) bool {
		return queue == l.Inbox || deadletter.NoOrigin(queue) || f.By == deadletter.Dramatiq && queue == f.Queue+".XQ"
	}
	deaths, origin := deadletter.ReadDeaths(l.Arrived.Headers, ours)
	newest, mayDelay := deadletter.Newest(l.Arrived.Headers, deaths, ours)
	home := l.Origin()
	given := c.o.Given(l.Broker, l.VHost, l.Inbox)
	if given != "" && given != home.Queue {
		home.Queue, home.Exchange, home.RoutingKey = given, "", ""
	}
	told := f.Queue != "" && !ours(f.Queue)
	ofFramework := f.By != failure.Plain && f.By != failure.Mapped
	said := told && f.Said() && ofFramework && newest.Reason == deadletter.ReasonExpired
	delayed := said && f.Queue != newest.Queue &&
		(f.FailedAt.IsZero() || newest.FirstAt.IsZero() || !newest.FirstAt.After(f.FailedAt.Add(skew)))
	var d deathOf
	switch {
	case given != "" && newest.Queue != "":
		if d = inQueue(
			given, deaths, &newest,
		); d.reason == "" && ofFramework && (f.Queue == "" || f.Queue == given) {
			d.reason, d.at = reportedDeath(f)
		}
	case given == "" && delayed, home.Queue == "" && newest.Queue == "" && told:
		d.origin = deadletter.Origin{Queue: f.Queue, Exchange: f.Exchange, RoutingKey: f.RoutingKey}
		d.reason, d.at = reportedDeath(f)
	case said:
		d = deathOfEntry(&newest)
	case mayDelay:
		d = c.rejectingQueue(l, k, deaths, &newest, origin.Queue)
	case newest.Queue != "":
		d.origin, d.repeated = origin, deadletter.Repeated(deaths, origin.Queue)
		d.reason, d.at = deadletter.LastDeath(l.Arrived.Headers, deaths, origin.Queue)
	default:
		d.origin = home
		if d.origin.Exchange == "" && d.origin.RoutingKey == "" {
			d.origin.Exchange, d.origin.RoutingKey = f.Exchange, f.RoutingKey
		}
		if ofFramework && (f.Queue == "" || f.Queue == home.Queue) {
			d.reason, d.at = reportedDeath(f)
		}
	}
	origin, v.Reason, v.DiedAt, v.Repeated = d.origin, d.reason, d.at, d.repeated
	origin.Broker, origin.VHost = l.Broker, l.VHost
	// the letter died again after dlo had requeued it, but people and bindings know it by the way
	// it was first published
	if origin.Queue == l.Queue && origin.Queue != "" && (l.Exchange != "" || l.RoutingKey != "") {
		origin.Exchange, origin.RoutingKey = l.Exchange, l.RoutingKey
	}
	// the other dlo knew the latest death of the letter; the headers here describe the first one
	if l.Imported != "" && l.Queue != "" {
		origin = l.Origin()
		v.Reason, v.DiedAt = cmp.Or(l.Reason, v.Reason), latest(l.DiedAt, v.DiedAt)
	}
	v.Origin = origin
	return d.question
}

// reportedDeath returns the reason and the time of a death that a framework reports.
func reportedDeath(f *deadletter.Failure) (reason string, at time.Time) {
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
