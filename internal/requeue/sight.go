package requeue

import (
	"fmt"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

const (
	lookAgain = 10 * time.Second // a second look has to confirm the first: management API figures are up to 6 s old
	lookedFor = 10 * time.Minute // a look that was not confirmed is forgotten
)

// sights holds, by name, the queues in which the fate of letters cannot be observed, and since
// when.
type sights map[string]deadletter.Unseen

// look explains why the fate of letters in a queue cannot be observed; Why is "" if it can. again
// reports whether an earlier look, at least lookAgain ago, had the same result and no look since
// had another one. The result then applies to letters that were in the queue at that earlier look.
func (s sights) look(queue string, f deadletter.QueueFacts, now time.Time) (u deadletter.Unseen, again bool) {
	u = unseen(deadletter.Visible(queue), f)
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

// forget drops looks that were not confirmed.
func (s sights) forget(now time.Time) {
	for queue, u := range s {
		if now.Sub(u.Since) > lookedFor {
			delete(s, queue)
		}
	}
}

// unseen evaluates what the facts of a queue reveal about letters that are or were in it and did
// not come back.
func unseen(queue string, f deadletter.QueueFacts) deadletter.Unseen {
	empty := f.Exists && f.Consumers == 0 && f.Ready == 0 && f.Unacked == 0
	switch {
	case f.Silent:
		return deadletter.Unseen{Why: fmt.Sprintf("the management API does not answer, so dlo cannot see who took this letter out of queue %s", queue), Settles: true}
	case f.Known && !f.Exists:
		return deadletter.Unseen{Why: fmt.Sprintf("queue %s is gone, with everything in it, and it is unknown whether this letter was handled before", queue)}
	case f.Stream:
		return deadletter.Unseen{Why: fmt.Sprintf("queue %s is a stream, and reading takes nothing out of a stream, so dlo cannot see whether this letter was handled", queue), SettlesRedirected: true}
	case f.Exists && (f.Consumers < 0 || f.Ready < 0): // the management API has no figures for a queue a few seconds old
		return deadletter.Unseen{Why: fmt.Sprintf("the management API shows no figures of queue %s, so dlo cannot see who took this letter out", queue), Settles: true}
	case empty && f.TTL > 0:
		return deadletter.Unseen{Why: fmt.Sprintf("queue %s gives up on messages after %s, and is empty without a consumer, so it is unknown whether this letter was handled or has expired", queue, f.TTL), SettlesRedirected: !f.LeadsOn}
	case empty && f.TTL == 0:
		return deadletter.Unseen{Why: fmt.Sprintf("queue %s is empty and has no consumer, so dlo cannot see who took this letter out", queue), Settles: true}
	}
	return deadletter.Unseen{}
}
