package requeue

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// proof contains the evidence that the store is not an older copy of itself, so that letters may be
// sent. The evidence is the mark of the store in the broker, and the note beside the store's file.
// dlo checks it again for each connection, because a connection may lead to another broker.
type proof struct {
	mu       sync.Mutex
	session  int64     // number of the broker session in which a mark proved that letters may be sent
	judged   bool      // true once a check over any connection has shown that letters may be sent
	trouble  int64     // number of the broker session in which the mark cannot be read or written; 0 = none
	since    time.Time // when the failures began, over this connection and earlier ones
	next     time.Time // time of the next try
	problems map[deadletter.ProblemKind]deadletter.Problem
	lock     atomic.Pointer[lock]
}

const (
	markWait  = 30 * time.Second // after this time without a mark, only the note beside the store decides
	markAsk   = 5 * time.Second  // timeout of one request
	markAgain = 30 * time.Second // time between two tries while letters are sent without a mark
)

// verdict is the answer to the question whether a store is current or an older copy. dlo finds it
// by the records of the store's progress in the broker and in the note beside the file.
type verdict int

const (
	proven   verdict = iota // the store is as new as the recorded progress
	restored                // the store is older than the recorded progress
	replaced                // the broker is older than the store, or a different one
	unproved                // no evidence is left
)

// judge decides whether a store is current or an older copy. It compares the progress of the store
// with the mark, which is the progress that the broker has recorded for it. For example, the store
// is an older copy if the mark knows of more claims. judge follows the table in
// docs/reliability.md. If "mark" is nil, the broker has no mark.
func judge(m *deadletter.Remembered, mark *deadletter.Progress) verdict {
	if mark != nil && mark.Store != m.Store {
		mark = nil // another store wrote this mark
	}
	switch {
	case mark != nil && mark.Claims > m.Claims:
		return restored
	case mark != nil && mark.Claims >= m.Marked:
		return proven
	case m.Unproved: // people were asked earlier, and the note beside the store was written after that
		return unproved
	case mark == nil && m.Marked < 0:
		return proven // nothing was recorded in the broker yet
	case m.Beside:
		return replaced
	}
	return unproved
}

// maySend returns the number of the broker session over which letters may be sent now; 0 = none. If
// the store is an older copy, it first holds the letters that may already have been sent.
func (d *Dispatcher) maySend(ctx context.Context) (int64, error) {
	p := &d.proof
	p.mu.Lock()
	defer p.mu.Unlock()
	session, now := d.broker.Session(), d.o.Now()
	if session == 0 || session == p.session && !p.lock.Load().askAgain(now) {
		return session, nil
	}
	m, err := d.store.Remembered(ctx, d.o.Broker, d.o.VHost)
	if err != nil {
		return 0, err
	}
	if !d.lockStore(ctx, session, m.Lock) {
		return 0, nil
	}
	if session == p.session {
		return session, nil
	}
	send, err := d.isCurrent(ctx, &m, session)
	if !send || err != nil {
		return 0, err
	}
	return session, nil
}

// isCurrent reports whether the store is current, or has become so because dlo has held the letters
// that may already have been sent.
func (d *Dispatcher) isCurrent(ctx context.Context, m *deadletter.Remembered, session int64) (bool, error) {
	p, now := &d.proof, d.o.Now()
	m.Beside = m.Beside || p.judged // this process has already seen a proof
	if p.trouble == session && now.Before(p.next) {
		return p.sendsWithoutMark(now) && judge(m, nil) != unproved, nil
	}
	asking, cancel := context.WithTimeout(ctx, markAsk)
	defer cancel()
	mark, err := d.broker.ReadMark(asking, m.Store, m.Marked >= 0)
	if err == nil {
		return d.applyVerdict(ctx, m, mark, session)
	}
	p.markFailed(session, now)
	if !p.sendsWithoutMark(now) {
		return false, nil
	}
	if judge(m, nil) == unproved {
		return false, d.askPeople(ctx, m)
	}
	delete(p.problems, deadletter.ProblemStoreUnproved)
	p.addProblem(now, d.unnotedProblem("read", err))
	p.judged = true
	return true, nil
}

// applyVerdict compares the store with its mark in the broker, decides whether the store is
// current, and acts on the result. For example, it holds letters if the store is an older copy. It
// reports whether letters may be sent now.
func (d *Dispatcher) applyVerdict(
	ctx context.Context, m *deadletter.Remembered, mark *deadletter.Progress, session int64,
) (bool, error) {
	p, now := &d.proof, d.o.Now()
	delete(p.problems, deadletter.ProblemNoProgress)
	switch judge(m, mark) {
	case restored:
		if d.unlockStore(session) {
			return false, nil
		}
		if err := d.store.Restored(ctx, *mark, p.judged); err != nil {
			return false, err
		}
	case unproved:
		p.markFailed(session, now)
		return false, d.askPeople(ctx, m)
	case replaced:
		d.o.Log.Warn("the broker is older than its last confirm to this store", "broker", d.o.Broker)
		p.addProblem(now, d.replacedProblem(mark))
	}
	if m.Unproved {
		if err := d.store.Unproved(ctx, d.o.Broker, d.o.VHost, false); err != nil {
			return false, err
		}
	}
	if err := d.store.BeginTurn(ctx); err != nil {
		return false, err
	}
	delete(p.problems, deadletter.ProblemStoreUnproved)
	p.session, p.trouble, p.judged = session, 0, true
	l := *p.lock.Load()
	l.waited = false
	p.lock.Store(&l)
	return true, nil
}

// askPeople asks people whether the store is current. After that, dlo checks every second whether
// somebody has answered.
func (d *Dispatcher) askPeople(ctx context.Context, m *deadletter.Remembered) error {
	now := d.o.Now()
	d.proof.next = now.Add(time.Second)
	d.proof.addProblem(now, d.unprovedProblem())
	if m.Unproved {
		return nil
	}
	d.o.Log.Warn(
		"nothing proves that this store is not an older copy; nothing is sent until someone says on a page whether it is current",
		"broker", d.o.Broker,
	)
	return d.store.Unproved(ctx, d.o.Broker, d.o.VHost, true)
}

// afterProof waits until dlo has found out whether the store is current or an older copy of itself.
// Until then, dlo cannot rely on the store's record of which letters are requeued.
func (d *Dispatcher) afterProof(ctx context.Context) {
	for ctx.Err() == nil {
		d.proof.mu.Lock()
		judged := d.proof.judged
		d.proof.mu.Unlock()
		if judged {
			return
		}
		select {
		case <-time.After(tick):
		case <-ctx.Done():
		}
	}
}

// markFailed records that the mark could not be read or written over a connection, and sets the
// time of the next try.
func (p *proof) markFailed(session int64, now time.Time) {
	if p.trouble == 0 {
		p.since = now
	}
	p.trouble = session
	p.next = now.Add(time.Second)
	if p.sendsWithoutMark(now) {
		p.next = now.Add(markAgain)
	}
}

// sendsWithoutMark reports whether letters may be sent although dlo could not read or write the
// mark, which is the record of the store's progress in the broker. They may be sent if dlo has
// tried in vain for at least 30 s (markWait).
func (p *proof) sendsWithoutMark(now time.Time) bool {
	return p.trouble != 0 && now.Sub(p.since) >= markWait
}
