package requeue

import (
	"context"
	"errors"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// lock is what is known of the lock by which only one dlo sends letters from a store and from its
// copies. dlo takes it for each connection, before it looks at the mark of the store.
type lock struct {
	answer  answer
	session int64     // number of the broker session that the answer is about
	since   time.Time // since when the answer is the same
	next    time.Time // time of the next request, except over a new connection
	held    bool      // this process has had the lock
	waited  bool      // dlo has given the lock back because its store is behind, and has waited since then
}

// answer is the reply to the last request for the lock.
type answer int

const (
	unasked    answer = iota
	unanswered        // the broker did not reply
	refused           // another connection has the lock
	taken             // dlo has the lock
	unguarded         // the broker cannot keep the lock, so that dlo sends without it
)

const (
	lockAsk   = time.Second      // timeout of one request
	lockSure  = 2 * time.Second  // a connection that still has the lock after this time is not one that is just ending
	lockAgain = 5 * time.Second  // time between two requests for a lock that another dlo has
	lockFree  = 5 * time.Minute  // time between two requests while letters are sent without a lock
	lockBack  = 20 * time.Second // two heartbeats: in this time, a broker notices that a connection has ended
	// three heartbeats: for this long, an ended connection of this process may still have the lock
	lockLost  = 30 * time.Second
	lockFirst = 10 * time.Second // no notices are sent for this long, while the broker has not been asked yet
)

// sends reports whether letters may be sent over a session, as far as the lock is concerned.
func (l *lock) sends(session int64) bool {
	return l.session == session && (l.answer == taken || l.answer == unguarded)
}

// askAgain reports whether dlo must ask for the lock although it may send without it.
func (l *lock) askAgain(now time.Time) bool { return l.answer == unguarded && !now.Before(l.next) }

// lockStore takes the lock of the store and reports whether dlo may look at the mark now, and send
// letters. The mark must be read again after the lock was taken, because another dlo may have sent
// letters until then.
func (d *Dispatcher) lockStore(ctx context.Context, session int64, name string) bool {
	p, l, now := &d.proof, d.proof.lock.Load(), d.o.Now()
	switch {
	case l.sends(session) && !l.askAgain(now):
		return true
	case l.answer != unguarded && now.Before(l.next):
		return false
	}
	asking, cancel := context.WithTimeout(ctx, lockAsk)
	defer cancel()
	err := d.broker.LockStore(asking, session, name)
	now = d.o.Now()
	var twice deadletter.StoreTwice
	n := &lock{session: session, since: now, next: now.Add(time.Second), held: l.held, waited: l.waited}
	switch {
	case err == nil:
		n.answer, n.held, n.next = taken, true, time.Time{}
		delete(p.problems, deadletter.ProblemStoreTwice)
	case errors.Is(err, deadletter.ErrUnguarded):
		n.answer, n.next = unguarded, now.Add(lockFree)
		p.addProblem(now, d.unguardedProblem(err))
	case errors.As(err, &twice):
		n.answer, n.waited = refused, false
		if l.answer == refused {
			n.since = l.since
		} else {
			d.o.Log.Warn(
				"nothing is sent, because another connection has the lock of this store", "broker", d.o.Broker, "other",
				string(twice),
			)
		}
		if now.Sub(n.since) >= lockAgain {
			n.next = now.Add(lockAgain)
		}
		p.addProblem(now, d.twiceProblem(twice))
	case l.session == session && l.answer == unguarded:
		return true
	case l.session == session && l.answer == refused: // the broker is slow
		n.answer, n.since = refused, l.since
	default:
		n.answer = unanswered
	}
	p.lock.Store(n)
	if n.answer == taken || n.answer == refused {
		delete(p.problems, deadletter.ProblemStoreUnguarded)
	}
	if l.answer != n.answer || l.session != session {
		p.session = 0
	}
	return n.sends(session)
}

// unlockStore gives the lock back, because the store is an older copy: the dlo that has the current
// store may be about to ask for the lock. It returns false if there is no lock, or if dlo has given
// it back before and nobody has taken it since.
func (d *Dispatcher) unlockStore(session int64) bool {
	if l := d.proof.lock.Load(); l.answer != taken || l.waited {
		return false
	}
	d.broker.UnlockStore(session)
	d.proof.lock.Store(&lock{answer: unanswered, waited: true, next: d.o.Now().Add(lockBack)})
	return true
}

// Standing is what a dispatcher knows about other dlo that work with the same store.
type Standing int

const (
	// Unknown means that the broker cannot be asked.
	Unknown Standing = iota
	// Pending means that dlo starts and has not asked the broker yet, or that the connection that has
	// the lock may be an earlier one of this process, or of one that was killed.
	Pending
	// Alone means that no other dlo can send letters from the store.
	Alone
	// Twice means that another dlo works with the same store or with a copy of it. Then dlo sends
	// nothing, tells nobody anything, and accepts no decisions.
	Twice
	// Behind means that the store is an older copy, and dlo has just given the lock back to a dlo that
	// may have the current one. Then dlo tells nobody anything, and accepts no decisions.
	Behind
)

// Standing returns what this dispatcher knows about other dlo that work with the same store.
func (d *Dispatcher) Standing() Standing {
	l, now, status := d.proof.lock.Load(), d.o.Now(), d.broker.Status()
	switch {
	case l.answer == unasked && status.NextTry.IsZero() && now.Sub(d.began) < lockFirst:
		return Pending
	case l.waited && l.session == 0 && now.Before(l.next):
		return Behind
	case !status.Connected:
		return Unknown
	case l.answer == taken || l.answer == unguarded:
		return Alone
	case l.answer == refused && now.Sub(
		l.since,
	) >= lockLost, l.answer == refused && !l.held && now.Sub(l.since) >= lockSure:
		return Twice
	case l.answer == refused && !l.held:
		return Pending
	}
	return Unknown
}

func (d *Dispatcher) twiceProblem(other deadletter.StoreTwice) deadletter.Problem {
	return deadletter.Problem{
		Kind: deadletter.ProblemStoreTwice, Severity: deadletter.SeverityPage, Broker: d.o.Broker, VHost: d.o.VHost,
		Title: "Another dlo works with this store or a copy of it, so this one sends nothing to broker " + d.o.Broker +
			".",
		Text: "It also sends no notices and accepts no decisions. " + string(other) +
			" Just after a restart, it can be the last connection of this dlo, whose end the broker notices within 30 s.",
		Cure: "Find out which of the two has the current store, and stop the other one. The one that stays goes on by itself.",
	}
}

func (d *Dispatcher) unguardedProblem(err error) deadletter.Problem {
	return deadletter.Problem{
		Kind:     deadletter.ProblemStoreUnguarded,
		Severity: deadletter.SeverityNotify,
		Broker:   d.o.Broker,
		VHost:    d.o.VHost,
		Title:    "Nothing keeps a second dlo on a copy of this store from sending to broker " + d.o.Broker + ".",
		Text:     "Letters are still sent. " + deadletter.Visible(err.Error()) + ".",
		Cure:     "Check whether dlo's user may configure and read the queues dlo.epoch.*, and whether the nodes of the cluster are up.",
	}
}
