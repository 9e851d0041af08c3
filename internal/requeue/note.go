package requeue

import (
	"context"
	"errors"
	"fmt"

	"github.com/deadletteroffice/dlo/internal/deadletter"
)

// noteProgress records how far the store has got, both in the broker and in a note beside the
// store's file. If the store is later replaced by an older copy, dlo can detect this. The
// dispatcher calls noteProgress before it sends letters that the store has claimed. One of the two
// records is enough. If noteProgress returns an error, nothing may be sent.
func (d *Dispatcher) noteProgress(ctx context.Context) (deadletter.Noted, error) {
	at := d.store.Progress()
	beside := make(chan error, 1)
	go func() { beside <- d.store.Note(at) }()
	there, without := d.noteThere(ctx, at)
	err := <-beside
	p, now := &d.proof, d.o.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case there == nil:
		delete(p.problems, deadletter.ProblemNoProgress)
	case err == nil && without:
		p.addProblem(now, d.unnotedProblem("written", there))
		return deadletter.Noted{}, nil
	default:
		if without {
			p.addProblem(now, d.nowhereProblem(there))
		}
		return deadletter.Noted{}, fmt.Errorf("how far the store has got cannot be noted: %w", errors.Join(there, err))
	}
	return deadletter.Noted{Broker: d.o.Broker, VHost: d.o.VHost, Claims: at.Claims}, nil
}

// noteThere writes the store's mark to the broker: a message that says how far the store has got.
// If that fails, the result "sendWithout" says whether letters may be sent without the mark.
func (d *Dispatcher) noteThere(ctx context.Context, at deadletter.Progress) (err error, sendWithout bool) {
	p := &d.proof
	p.mu.Lock()
	session, now := p.session, d.o.Now()
	wait := p.trouble != 0 && now.Before(p.next)
	sendWithout = p.sendsWithoutMark(now)
	p.mu.Unlock()
	if wait || session == 0 {
		return errUnnoted, sendWithout
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
	p.markFailed(session, d.o.Now())
	return err, p.sendsWithoutMark(d.o.Now())
}

var errUnnoted = errors.New("the broker has not answered lately")
