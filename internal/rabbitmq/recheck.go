package rabbitmq

import (
	"slices"

	"github.com/deadletteroffice/dlo/internal/topology"
)

// watched is what a session knows about the settings of its inbox, so that a later look can end the
// session if they have changed.
type watched struct {
	facts   inboxFacts
	changed chan string // gets the reason why the session has to end
}

// watch begins to compare the settings of an inbox with those that a session has found. The
// returned channel gets the reason if the session has to end because they have changed.
func (l *Link) watch(queue string, facts inboxFacts) <-chan string {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := watched{facts, make(chan string, 1)}
	l.watched[queue] = w
	return w.changed
}

// recheck ends the session of an inbox if the broker now treats the inbox in a way in which the
// session would not have begun.
func (l *Link) recheck(queue string, e *topology.Effect) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w, ok := l.watched[queue]
	if !ok {
		return
	}
	now := w.facts
	now.judge(e, l.status.Version)
	reason := ""
	switch {
	case now.limited && !w.facts.limited && !slices.Contains(l.broker.AcceptLimited, queue):
		reason = "a policy has given it a delivery limit"
	case now.delay != w.facts.delay:
		reason = "a policy has changed its delayed retry"
	default:
		return
	}
	delete(l.watched, queue)
	w.changed <- reason
}
