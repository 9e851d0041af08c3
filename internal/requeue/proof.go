package requeue

import (
	"context"
	"errors"
	"fmt"
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
	said      = 24 * time.Hour   // how long it is said that a broker is older than the store
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
	d.o.Log.Warn("nothing shows that this store is no older copy: nothing is sent until people say so", "broker", d.o.Broker)
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

// note writes down in the broker, and beside the store, how far the store has got, before anything
// that it has claimed is sent. The error says why nothing may be sent yet.
func (d *Dispatcher) note(ctx context.Context) (deadletter.Noted, error) {
	at := d.store.Progress()
	beside := make(chan error, 1)
	go func() { beside <- d.store.Note(at) }()
	there, without := d.noteThere(ctx, at)
	err := <-beside
	p, now := &d.proof, d.o.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case there == nil && err == nil:
		delete(p.problems, deadletter.ProblemNoProgress)
	case there == nil:
		p.say(now, d.unwritten(err))
	case err == nil && without:
		p.say(now, d.unnoted("written", there))
		return deadletter.Noted{}, nil
	default:
		return deadletter.Noted{}, fmt.Errorf("how far the store has got cannot be noted: %w", errors.Join(there, err))
	}
	return deadletter.Noted{Broker: d.o.Broker, VHost: d.o.VHost, Claims: at.Claims}, nil
}

// noteThere writes the mark of a broker. without says whether letters may go although it cannot.
func (d *Dispatcher) noteThere(ctx context.Context, at deadletter.Progress) (err error, without bool) {
	p := &d.proof
	p.mu.Lock()
	session, now := p.session, d.o.Now()
	wait := p.trouble != 0 && now.Before(p.next)
	without = p.without(now)
	p.mu.Unlock()
	if wait || session == 0 {
		return errUnnoted, without
	}
	writing, cancel := context.WithTimeout(ctx, markAsk)
	defer cancel()
	err = d.broker.WriteMark(writing, session, at)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		p.trouble = 0
		return nil, false
	}
	p.fails(session, d.o.Now())
	return err, p.without(d.o.Now())
}

var errUnnoted = errors.New("the broker has not answered lately")

// say adds a problem, or keeps the moment since when there is one of its kind.
func (p *proof) say(now time.Time, problem deadletter.Problem) {
	problem.Since = now
	if was, ok := p.problems[problem.Kind]; ok {
		problem.Since = was.Since
	}
	p.problems[problem.Kind] = problem
}

// Problems are what keeps letters from being sent, or from being sent safely, as far as the
// progress of the store goes.
func (d *Dispatcher) Problems() []deadletter.Problem {
	p := &d.proof
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []deadletter.Problem
	for _, kind := range []deadletter.ProblemKind{deadletter.ProblemStoreUnproved, deadletter.ProblemBrokerReplaced, deadletter.ProblemNoProgress} {
		problem, ok := p.problems[kind]
		if ok && (kind != deadletter.ProblemBrokerReplaced || d.o.Now().Sub(problem.Since) < said) {
			list = append(list, problem)
		}
	}
	return list
}

func (d *Dispatcher) unproved() deadletter.Problem {
	return deadletter.Problem{
		Kind: deadletter.ProblemStoreUnproved, Severity: deadletter.SeverityPage, Broker: d.o.Broker, VHost: d.o.VHost,
		Title: "Nothing is sent to broker " + d.o.Broker + ": nothing shows that this store is current.",
		Text:  "What was noted in the broker, and beside the file of the store, is gone. If the file is an older copy, what is due in it may have been sent already.",
		Cure:  "Say on any page whether it is current or a copy. To start dlo once with --accept-store says that it is current.",
	}
}

func (d *Dispatcher) replaced(mark *deadletter.Progress) deadletter.Problem {
	what := "has no mark of this store any more"
	if mark != nil {
		what = "has a mark of this store of " + mark.At.UTC().Format(time.DateTime) + " UTC, which is older than the last one it had confirmed"
	}
	return deadletter.Problem{
		Kind: deadletter.ProblemBrokerReplaced, Severity: deadletter.SeverityNotify, Broker: d.o.Broker, VHost: d.o.VHost,
		Title: "Broker " + d.o.Broker + " is older than what it had confirmed.",
		Text:  "It " + what + ": it was restored from a backup or replaced, or its queues were purged. The store is current and goes on. What was in the queues of the broker, and letters that were sent there, may be gone, or there again.",
		Cure:  "Look at the letters that were requeued lately: state:requeued,settled since:1d. Requeue those whose work was not done.",
	}
}

// unnoted says that the mark of a broker cannot be read or written.
func (d *Dispatcher) unnoted(verb string, err error) deadletter.Problem {
	return deadletter.Problem{
		Kind: deadletter.ProblemNoProgress, Severity: deadletter.SeverityNotify, Broker: d.o.Broker, VHost: d.o.VHost,
		Title: "The mark of this store cannot be " + verb + " in broker " + d.o.Broker + ".",
		Text:  "Letters are sent; only the note beside the store shows now whether the store is an older copy. " + deadletter.Visible(err.Error()) + ".",
		Cure:  "See whether the user of dlo may configure, write and read the queues dlo.epoch.*, and whether the node of the queue runs.",
	}
}

// unwritten says that nothing can be noted beside the store.
func (d *Dispatcher) unwritten(err error) deadletter.Problem {
	return deadletter.Problem{
		Kind: deadletter.ProblemNoProgress, Severity: deadletter.SeverityNotify, Broker: d.o.Broker, VHost: d.o.VHost,
		Title: "What is sent cannot be noted beside the store.",
		Text:  "Letters are sent; only the mark in broker " + d.o.Broker + " shows now whether the store is an older copy. " + deadletter.Visible(err.Error()) + ".",
		Cure:  "See whether the directory of the store can be written to, and has room.",
	}
}
