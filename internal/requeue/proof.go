package requeue

import (
	"context"
	"sync"
	"time"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// proof is what shows that the store is no older copy of itself, so that it may send: the mark that
// the broker has of it, and the note beside its file. Each connection is asked again, as its broker
// may be another.
type proof struct {
	mu       sync.Mutex
	session  int64     // of the broker: its mark was read over that connection, and shows that the store may send
	judged   bool      // the store may send, over some connection
	trouble  int64     // session whose mark cannot be read or written
	since    time.Time // it cannot, over this connection and those before it
	next     time.Time // when it is tried again
	problems map[deadletter.ProblemKind]deadletter.Problem
}

const (
	markWait  = 30 * time.Second // without a mark; then the note beside the store decides alone
	markAsk   = 5 * time.Second  // for one answer
	markAgain = 30 * time.Second // between two tries, once letters go without
)

// verdict is what a mark and a note say of a store.
type verdict int

const (
	proven   verdict = iota // the store is as new as what was noted
	restored                // it is older
	replaced                // the broker is older than the store, or another one
	unproved                // nothing is left to compare with
)

// judge compares what a store remembers with the mark of a broker, nil for none: the table of
// docs/reliability.md.
func judge(m *deadletter.Remembered, mark *deadletter.Progress) verdict {
	if mark != nil && mark.Store != m.Store {
		mark = nil // somebody else wrote it
	}
	switch {
	case mark != nil && mark.Claims > m.Claims:
		return restored
	case mark != nil && mark.Claims >= m.Marked:
		return proven
	case m.Unproved: // what is beside the store now was written since
		return unproved
	case mark == nil && m.Marked < 0:
		return proven // nothing was noted there yet
	case m.Beside:
		return replaced
	}
	return unproved
}

// proven says whether letters may be sent now. Where the store turns out to be a copy, it holds
// what may have been sent first.
func (d *Dispatcher) proven(ctx context.Context) (bool, error) {
	p := &d.proof
	p.mu.Lock()
	defer p.mu.Unlock()
	session, now := d.broker.Session(), d.o.Now()
	if session == p.session || session == 0 {
		return session != 0, nil
	}
	m, err := d.store.Remembered(ctx, d.o.Broker, d.o.VHost)
	if err != nil {
		return false, err
	}
	m.Beside = m.Beside || p.judged // what this process was shown once, it knows
	if p.trouble == session && now.Before(p.next) {
		return p.without(now) && judge(&m, nil) != unproved, nil
	}
	asking, cancel := context.WithTimeout(ctx, markAsk)
	defer cancel()
	mark, err := d.broker.ReadMark(asking, m.Store, m.Marked >= 0)
	if err == nil {
		return d.judged(ctx, &m, mark, session)
	}
	p.fails(session, now)
	if !p.without(now) {
		return false, nil
	}
	if judge(&m, nil) == unproved {
		return false, d.asked(ctx, &m)
	}
	delete(p.problems, deadletter.ProblemStoreUnproved)
	p.say(now, d.unnoted("read", err))
	p.judged = true
	return true, nil
}

// judged acts on what a mark says.
func (d *Dispatcher) judged(ctx context.Context, m *deadletter.Remembered, mark *deadletter.Progress, session int64) (bool, error) {
	p, now := &d.proof, d.o.Now()
	delete(p.problems, deadletter.ProblemNoProgress)
	switch judge(m, mark) {
	case restored:
		if err := d.store.Restored(ctx, *mark); err != nil {
			return false, err
		}
	case unproved:
		p.fails(session, now)
		return false, d.asked(ctx, m)
	case replaced:
		d.o.Log.Warn("the broker is older than what it has confirmed to this store", "broker", d.o.Broker)
		p.say(now, d.replaced(mark))
	}
	if m.Unproved {
		if err := d.store.Unproved(ctx, d.o.Broker, d.o.VHost, false); err != nil {
			return false, err
		}
	}
	delete(p.problems, deadletter.ProblemStoreUnproved)
	p.session, p.trouble, p.judged = session, 0, true
	return true, nil
}

// asked asks people whether the store is current, and looks each second whether they have said it.
func (d *Dispatcher) asked(ctx context.Context, m *deadletter.Remembered) error {
	now := d.o.Now()
	d.proof.next = now.Add(time.Second)
	d.proof.say(now, d.unproved())
	if m.Unproved {
		return nil
	}
	d.o.Log.Warn("nothing proves that this store is not an older copy; nothing is sent until someone says so", "broker", d.o.Broker)
	return d.store.Unproved(ctx, d.o.Broker, d.o.VHost, true)
}

// afterProof waits until the store was judged: before, nothing is known of what happened to letters
// that it takes for requeued.
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

// fails notes that the mark of a connection cannot be had.
func (p *proof) fails(session int64, now time.Time) {
	if p.trouble == 0 {
		p.since = now
	}
	p.trouble = session
	p.next = now.Add(time.Second)
	if p.without(now) {
		p.next = now.Add(markAgain)
	}
}

// without says whether letters go without a mark, as there was none for so long.
func (p *proof) without(now time.Time) bool {
	return p.trouble != 0 && now.Sub(p.since) >= markWait
}
