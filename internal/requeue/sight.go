package requeue

import (
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	// time until a second look may confirm the first; figures of the management API are up to 6 s
	// old
	lookAgain = 10 * time.Second
	lookedFor = 10 * time.Minute // an unconfirmed look is forgotten after this time
)

// sights contains the queues in which dlo cannot observe what happens to letters. The key is the
// name of the queue. The value contains the reason, and the time of the first look at the queue.
type sights map[string]deadletter.Unseen

// look checks whether dlo can observe what happens to the letters in a queue. If dlo can observe
// it, u.Why is "". Otherwise u.Why is the reason why not.
//
// The result "confirmed" is true if look found the same reason twice, with at least lookAgain
// between the two checks, and no other result between them. In that case, the reason applies to all
// letters that were in the queue at the first check.
func (s sights) look(queue string, f deadletter.QueueFacts, now time.Time) (u deadletter.Unseen, confirmed bool) {
	u = unseenReason(deadletter.Visible(queue), f)
	u.Since = now
	first, ok := s[queue]
	switch {
	case u.Why == "":
		delete(s, queue)
		return u, false
	case !ok || first.Why != u.Why:
		s[queue] = u
		return u, false
	case now.Sub(first.Since) < lookAgain:
		return u, false
	}
	s[queue] = u
	u.Since = first.Since
	return u, true
}

// forget removes what dlo found out about queues longer ago than lookedFor, unless dlo has
// confirmed it since then.
func (s sights) forget(now time.Time) {
	for queue, u := range s {
		if now.Sub(u.Since) > lookedFor {
			delete(s, queue)
		}
	}
}

// replacedReason returns the reason for letters that were in a queue before the queue was deleted
// and declared again with other properties. The parameter "since" is the time of the first look
// that found the new properties.
func replacedReason(queue string, since time.Time) deadletter.Unseen {
	return deadletter.Unseen{
		Since: since,
		Why: fmt.Sprintf("queue %s was deleted, with everything in it, and declared again with other properties, "+
			"and it is unknown whether this letter was handled before", deadletter.Visible(queue)),
	}
}

// unseenReason looks at the facts about a queue to which dlo has sent letters that did not come
// back. These facts may show that dlo cannot find out what happened to the letters, for example
// because the queue is gone. unseenReason then returns the reason. Otherwise, the field Why is "".
func unseenReason(queue string, f deadletter.QueueFacts) deadletter.Unseen {
	empty := f.Exists && f.Consumers == 0 && f.Ready == 0 && f.Unacked == 0
	switch {
	case f.Silent:
		return deadletter.Unseen{
			Why: fmt.Sprintf(
				"the management API does not answer, so dlo cannot see who took this letter out of queue %s", queue,
			),
			Settles: true,
		}
	case f.Known && !f.Exists:
		return deadletter.Unseen{
			Why: fmt.Sprintf(
				"queue %s is gone, with everything in it, and it is unknown whether this letter was handled before",
				queue,
			),
		}
	case f.Stream:
		return deadletter.Unseen{
			Why: fmt.Sprintf(
				"queue %s is a stream, and reading takes nothing out of a stream, so dlo cannot see whether this letter was handled",
				queue,
			),
			SettlesRedirected: true,
		}
	case f.Exists && (f.Consumers < 0 || f.Ready < 0):
		// the management API has no figures for a queue that is only a few seconds old
		return deadletter.Unseen{
			Why: fmt.Sprintf(
				"the management API shows no figures of queue %s, so dlo cannot see who took this letter out", queue,
			),
			Settles: true,
		}
	case empty && f.TTL > 0:
		return deadletter.Unseen{
			Why: fmt.Sprintf(
				"messages in queue %s expire after %s, and the queue is empty and has no consumer, so it is unknown whether this letter was handled or has expired",
				queue, f.TTL,
			),
			SettlesRedirected: !f.LeadsOn,
		}
	case empty && f.TTL == 0:
		return deadletter.Unseen{
			Why: fmt.Sprintf(
				"queue %s is empty and has no consumer, so dlo cannot see who took this letter out", queue,
			),
			Settles: true,
		}
	}
	return deadletter.Unseen{}
}
